//! The settings of a fleet: how a robotgate reaches the fleet's server, the secrets, and how fast it sends requests
//! while the server cannot be used.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use serde::Deserialize;

use super::{
    FleetError,
    connection::{Endpoint, FleetServer},
};
use crate::{pace::MAX_GAP, pem};

/// What a robotgate needs to join a fleet, with the contents of the configured files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetSettings {
    pub address: Address,
    pub username: Option<Secret>,
    pub password: Option<Secret>,
    /// The certificate authorities for the fleet server's certificate, in PEM. `None` for those that the system trusts.
    pub ca: Option<Secret>,
    /// The key with which the robotgates check that a copy or a message comes from one of them.
    pub key: Option<Secret>,
    /// What the names of the fleet's Redis keys and of its channel begin with.
    pub prefix: String,
    /// Maximum time for which a bot's request waits for one answer of the fleet's server.
    pub call_timeout: Duration,
}

/// How fast a robotgate sends requests to a site while the fleet's server cannot be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLoss {
    /// Each robotgate multiplies its gaps by the number of robotgates, so that all together send no more requests than
    /// one robotgate may. But no gap is longer than [`MAX_GAP`].
    #[default]
    Share,
    /// Each robotgate keeps its gaps as they are, so all together may send more requests than one robotgate may.
    Local,
    /// A robotgate refuses all requests that need a turn.
    Refuse,
}

/// The address of the fleet's server, without a user name and password.
#[derive(Clone, Debug)]
pub struct Address {
    url: String,
    /// The name for which the server's certificate must be valid. `None` without TLS.
    tls_name: Option<ServerName<'static>>,
    /// The same address for the crate `redis`. It never says that the connection uses TLS, because the crate accepts
    /// that only with its own TLS feature, which robotgate does not use.
    info: ConnectionInfo,
}

/// Why a text is not a valid [`Address`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("it must begin with redis://, rediss:// or unix://")]
    Scheme,
    #[error(
        "it contains a user or a password; put them into files, and name the files in username-file and password-file"
    )]
    Credentials,
    #[error(
        "it must not contain ? or #; write the number of a database as in redis://HOST:PORT/1 (not possible with \
         unix://)"
    )]
    Rest,
    #[error("{0:?} is not a valid host name or IP address; write an international name in its xn-- form")]
    Host(String),
    #[error("write the whole path of the socket, as in unix:///run/redis.sock")]
    Socket,
    #[error("{0}")]
    Other(String),
}

/// The contents of a file with a secret, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<[u8]>);

// === impl FleetSettings ===

impl FleetSettings {
    /// The default for `call_timeout`.
    pub const CALL_TIMEOUT: Duration = Duration::from_millis(50);

    pub(super) fn server(&self) -> Result<FleetServer, FleetError> {
        let info = &self.address.info;
        // With RESP3, one connection can be used for calls and for a subscription.
        let mut login = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        if let Some(username) = &self.username {
            login = login.set_username(username.text());
        }
        if let Some(password) = &self.password {
            login = login.set_password(password.text());
        }
        let endpoint = match (info.addr(), &self.address.tls_name) {
            (ConnectionAddr::Tcp(host, port), None) => Endpoint::Tcp(host.clone(), *port),
            (ConnectionAddr::Tcp(host, port), Some(name)) => Endpoint::Tls {
                host: host.clone(),
                port: *port,
                name: name.clone(),
                tls: Arc::new(self.tls()?),
            },
            (ConnectionAddr::Unix(path), _) => Endpoint::Unix(path.clone()),
            _ => unreachable!("`Address::from_str` accepts no other kind of address"),
        };
        Ok(FleetServer { endpoint, login })
    }

    /// Accepts only server certificates of the configured authorities or, if none are configured, of the system's.
    fn tls(&self) -> Result<ClientConfig, rustls::Error> {
        let mut roots = RootCertStore::empty();
        // `pem::roots` does not fail here, because the file was checked when the configuration was read.
        match self.ca.as_ref().and_then(|ca| pem::roots(ca.bytes()).ok()) {
            Some(ca) => roots.add_parsable_certificates(ca),
            None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

// === impl OnLoss ===

impl OnLoss {
    /// Returns the gap that one of the `size` robotgates of a fleet keeps while the fleet's server cannot be used.
    /// `None` for [`Refuse`](Self::Refuse).
    pub(crate) fn gap(self, gap: Duration, size: u32) -> Option<Duration> {
        match self {
            // A longer gap would be of no use: the limiter may forget the last request after `MAX_GAP`.
            Self::Share => Some(gap.saturating_mul(size).min(MAX_GAP)),
            Self::Local => Some(gap),
            Self::Refuse => None,
        }
    }
}

// === impl Address ===

impl Address {
    pub fn is_tls(&self) -> bool {
        self.tls_name.is_some()
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url = url::Url::parse(text).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => AddressError::Scheme,
            error => AddressError::Other(error.to_string()),
        })?;
        if !["redis", "rediss", "unix"].contains(&url.scheme()) {
            return Err(AddressError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError::Rest);
        }
        let plain = match url.as_str().strip_prefix("rediss:") {
            Some(rest) => format!("redis:{rest}"),
            None => url.as_str().to_owned(),
        };
        let info = plain.into_connection_info().map_err(|error| match url.scheme() {
            "unix" => AddressError::Socket,
            // The crate `redis` appends the kind of the error to the text.
            _ => AddressError::Other(error.to_string().replace(" - InvalidClientConfig", "")),
        })?;
        let tls_name = match info.addr() {
            ConnectionAddr::Tcp(host, _) if url.scheme() == "rediss" => {
                Some(ServerName::try_from(host.clone()).map_err(|_| AddressError::Host(host.clone()))?)
            }
            ConnectionAddr::Tcp(..) | ConnectionAddr::Unix(_) => None,
            _ => return Err(AddressError::Scheme),
        };
        Ok(Self {
            url: text.to_owned(),
            tls_name,
            info,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for Address {}

// === impl Secret ===

impl Secret {
    pub fn new(contents: &[u8]) -> Self {
        Self(contents.into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_without_credentials() {
        for url in [
            "redis://cache.example",
            "redis://10.0.0.5:6380/3",
            "redis://[::1]:6379",
            "rediss://cache.example:6380",
            "unix:///run/redis.sock",
        ] {
            let address: Address = url.parse().expect(url);
            assert_eq!(address.to_string(), url);
            assert_eq!(address.is_tls(), url.starts_with("rediss"), "{url}");
        }
        for (url, error) in [
            ("http://cache.example", AddressError::Scheme),
            ("valkey://cache.example", AddressError::Scheme),
            ("10.0.0.5:6379", AddressError::Scheme),
            ("/run/redis.sock", AddressError::Scheme),
            ("unix://run/redis.sock", AddressError::Socket),
            (
                "redis://cache.example/many",
                AddressError::Other("Invalid database number".to_owned()),
            ),
            ("redis://user@cache.example", AddressError::Credentials),
            ("redis://:secret@cache.example", AddressError::Credentials),
            ("redis://cache.example?protocol=2", AddressError::Rest),
            ("rediss://cache.example/#insecure", AddressError::Rest),
            (
                "rediss://cache..example",
                AddressError::Host("cache..example".to_owned()),
            ),
        ] {
            assert_eq!(url.parse::<Address>(), Err(error), "{url}");
        }
        for url in ["cache.example:6379", "redis://"] {
            assert!(url.parse::<Address>().is_err(), "{url}");
        }
    }

    #[test]
    fn on_loss_sets_the_gap_of_a_gate_without_the_server() {
        let [none, gap] = [Duration::ZERO, Duration::from_millis(200)];
        for (on_loss, configured, size, kept) in [
            (OnLoss::Share, gap, 3, Some(3 * gap)),
            (OnLoss::Share, gap, 1, Some(gap)),
            (OnLoss::Share, none, 3, Some(none)),
            (OnLoss::Local, gap, 3, Some(gap)),
            (OnLoss::Refuse, gap, 3, None),
            (OnLoss::Refuse, none, 3, None),
        ] {
            assert_eq!(on_loss.gap(configured, size), kept, "{on_loss:?} {configured:?} {size}");
        }
        assert_eq!(OnLoss::default(), OnLoss::Share);
    }

    #[test]
    fn debug_output_hides_the_secret() {
        assert_eq!(format!("{:?}", Secret::new(b"hidden")), "(secret)");
    }
}
