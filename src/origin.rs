//! The **origin** that a robots.txt applies to: scheme, host and port (RFC 6454 §4, RFC 9309 §2.3).
//!
//! Hosts are normalized here, so that they can be compared byte by byte. This module resolves no name.

mod ftp;
mod host_port;
mod pattern;
mod readings;
mod target;

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
    str::FromStr,
    sync::Arc,
};

pub use self::{
    ftp::{FtpPath, FtpPathError},
    host_port::{HostPort, HostPortError},
    pattern::{HostPattern, HostPatternError},
    readings::{MAX_TARGET, Reading, Readings, Strict, asks_for_robots_txt, readings, unsendable},
    target::{MAX_METHOD, Target, TargetError, TargetForm, split_login},
};
use crate::text::words;

words! {
    /// The scheme of an origin. robotgate supports robots.txt only for these schemes.
    #[derive(PartialOrd, Ord)]
    pub enum Scheme {
        Http = "http",
        Https = "https",
        Ftp = "ftp",
    }
}

/// A normalized host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A name in lower-case ASCII (punycode), without a trailing dot.
    Name(Arc<str>),
    /// An IP address, however it was written.
    Ip(IpAddr),
}

/// The schemes of [`Scheme`], for error messages.
pub(crate) const SCHEMES: &str = "http, https and ftp";

/// Scheme, host and port: the scope of a robots.txt (RFC 9309 §2.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
}

// === impl Scheme ===

impl Scheme {
    /// Returns the port to use for a URL that names no port (RFC 9110 §4.2, RFC 1738 §3.2).
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Ftp => 21,
        }
    }

    /// Returns whether requests go over HTTP, with or without TLS.
    pub fn is_web(self) -> bool {
        match self {
            Scheme::Http | Scheme::Https => true,
            Scheme::Ftp => false,
        }
    }

    /// Returns whether a URL of this scheme may name a user before the host (RFC 1738 §3.2.1, RFC 9110 §4.2.4).
    pub fn allows_login(self) -> bool {
        match self {
            Scheme::Http | Scheme::Https => false,
            Scheme::Ftp => true,
        }
    }

    /// Parses a scheme, ignoring ASCII case (RFC 3986 §3.1).
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let is_same = |scheme: &Self| bytes.eq_ignore_ascii_case(scheme.as_str().as_bytes());
        Self::ALL.into_iter().find(is_same)
    }
}

// === impl Host ===

impl Host {
    /// Returns whether `text` is any spelling of this host.
    pub fn matches(&self, text: &str) -> bool {
        HostPort::parse(text.as_bytes()).is_ok_and(|authority| authority.host == *self && authority.port.is_none())
    }
}

impl fmt::Display for Host {
    /// Writes the host as in a URL, with IPv6 addresses in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

// === impl Origin ===

impl Origin {
    /// Creates an origin, with the scheme's default port if `authority` has none.
    pub fn new(scheme: Scheme, authority: HostPort) -> Self {
        Self {
            scheme,
            port: authority.port.unwrap_or(scheme.default_port()),
            host: authority.host,
        }
    }

    /// Returns the URL of this origin's robots.txt (RFC 9309 §2.3).
    pub fn robots_url(&self) -> String {
        let mut url = String::with_capacity(128);
        // Writing to a string never fails.
        let _ = write!(url, "{self}/robots.txt");
        url
    }

    /// Returns the value of a `Host` field for this origin (RFC 9110 §7.2), without a default port.
    pub fn host_field(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Returns whether this is the proxy's internal site, with any scheme and port. Public DNS will never have this
    /// name, because ICANN reserved `.internal`.
    pub fn is_internal_site(&self) -> bool {
        matches!(&self.host, Host::Name(name) if **name == *INTERNAL_SITE)
    }

    /// Returns whether `authority` names this origin. A missing port is the default port of the origin's scheme.
    pub fn is_named_by(&self, authority: &HostPort) -> bool {
        self.host == authority.host && self.port == authority.port.unwrap_or(self.scheme.default_port())
    }
}

impl fmt::Display for Origin {
    /// Writes the origin as in a URL (RFC 6454 §6.2), without a default port.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme.as_str())?;
        f.write_str("://")?;
        fmt::Display::fmt(&self.host, f)?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

impl FromStr for Origin {
    type Err = HostPortError;

    /// Parses a scheme, a host and an optional port. Fails if there is a path.
    fn from_str(text: &str) -> Result<Self, HostPortError> {
        let (scheme, authority) = text.split_once("://").ok_or(HostPortError::NoHost)?;
        let scheme = Scheme::parse(scheme.as_bytes()).ok_or(HostPortError::NoHost)?;
        Ok(Self::new(scheme, HostPort::parse(authority.as_bytes())?))
    }
}

const INTERNAL_SITE: &str = "robotgate.internal";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_parsed_and_printed() {
        for text in [
            "https://a.example",
            "http://a.example:8080",
            "http://[::1]",
            "ftp://a.example",
            "ftp://a.example:2121",
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), text);
        }
        assert_eq!(
            "HTTPS://A.example:443".parse::<Origin>().unwrap().to_string(),
            "https://a.example"
        );
        for text in [
            "",
            "a.example",
            "gopher://a.example",
            "https://",
            "https://a.example/",
            "https://a/b",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
