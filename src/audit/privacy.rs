//! Removes parts of the client's address, the query and the User-Agent from what is logged or shown (`[audit]`).
//! Decisions use the request as it was received.

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::bot::products;

/// The privacy settings of the audit log. They also apply to the operational log, the operators' page and the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Privacy {
    /// `None` shows the address and the port.
    pub mask_client: Option<ClientMask>,
    pub redact_query: RedactQuery,
    pub user_agent: LoggedUserAgent,
}

/// How many leading bits of a client's address are shown. The other bits and the port become 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientMask {
    /// Number of bits, from 0 to 32.
    pub ipv4: u8,
    /// Number of bits, from 0 to 128.
    pub ipv6: u8,
}

/// What is left out of the query of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RedactQuery {
    #[default]
    Nothing,
    /// The values of the parameters with these names.
    Values(Box<[String]>),
    All,
}

/// How much of a User-Agent is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoggedUserAgent {
    #[default]
    Keep,
    /// Only the product tokens, without versions. Of a comment, only the product after `compatible;`.
    Product,
}

// === impl Privacy ===

impl Privacy {
    /// Returns a client's address, masked as configured.
    pub fn client(&self, client: SocketAddr) -> SocketAddr {
        self.mask_client.map_or(client, |mask| mask.client(client))
    }

    /// Returns a client's IP address, masked as configured.
    pub fn ip(&self, client: IpAddr) -> IpAddr {
        self.mask_client.map_or(client, |mask| mask.ip(client))
    }

    /// Returns a User-Agent with the configured parts removed.
    pub fn user_agent<'u>(&self, user_agent: &'u str) -> Cow<'u, str> {
        match self.user_agent {
            LoggedUserAgent::Keep => user_agent.into(),
            LoggedUserAgent::Product => products(user_agent.as_bytes()).collect::<Vec<_>>().join(" ").into(),
        }
    }
}

// === impl ClientMask ===

impl ClientMask {
    pub fn client(self, client: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.ip(client.ip()), 0)
    }

    /// An IPv4 address in IPv6 form (`::ffff:192.0.2.1`) is masked as IPv4.
    pub fn ip(self, client: IpAddr) -> IpAddr {
        // For a mask that keeps no bit, `checked_shl` returns `None`.
        match client.to_canonical() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(u32::from(32 - self.ipv4.min(32))).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(u32::from(128 - self.ipv6.min(128))).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

// === impl RedactQuery ===

impl RedactQuery {
    /// Replaces the hidden part of the query of `url` by `redacted`. `url` can also be a path with a query.
    pub fn url<'u>(&self, url: Cow<'u, str>) -> Cow<'u, str> {
        match self {
            Self::Nothing => url,
            Self::All => match url.split_once('?') {
                Some((path, _)) => format!("{path}?{REDACTED}").into(),
                None => url,
            },
            Self::Values(names) => without_values(&url, names).map_or(url, Cow::Owned),
        }
    }

    /// Returns whether `url` has a parameter whose value is replaced. With [`All`](Self::All), returns `false`.
    pub fn hides_value(&self, url: &str) -> bool {
        match self {
            Self::Nothing | Self::All => false,
            Self::Values(names) => without_values(url, names).is_some(),
        }
    }
}

/// Returns `None` if no parameter of `url` has one of these names.
fn without_values(url: &str, names: &[String]) -> Option<String> {
    let (path, query) = url.split_once('?')?;
    let mut found = false;
    let parameters = query.split('&').map(|parameter| match value_at(parameter, names) {
        Some(value) => {
            found = true;
            Cow::Owned(format!("{}{REDACTED}", &parameter[..value]))
        }
        None => Cow::Borrowed(parameter),
    });
    let query = parameters.collect::<Vec<_>>().join("&");
    found.then(|| format!("{path}?{query}"))
}

/// Returns the index in `parameter` from which everything is replaced. A name can also follow a `?`, a `#`, or a `;`,
/// which some servers use instead of `&`.
fn value_at(parameter: &str, names: &[String]) -> Option<usize> {
    let mut end = 0;
    parameter.split_inclusive([';', '?', '#']).find_map(|piece| {
        let start = end;
        end += piece.len();
        let (name, _) = piece.split_once('=')?;
        let is_named = names.iter().any(|hidden| percent_decode_str(name).eq(hidden.bytes()));
        is_named.then_some(start + name.len() + 1)
    })
}

const REDACTED: &str = "redacted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_prefix_and_no_port() {
        for (ipv4, ipv6, client, shown) in [
            (24, 64, "192.0.2.77:40000", "192.0.2.0:0"),
            (32, 64, "192.0.2.77:40000", "192.0.2.77:0"),
            (0, 64, "192.0.2.77:40000", "0.0.0.0:0"),
            (20, 64, "192.0.255.77:1", "192.0.240.0:0"),
            (24, 64, "[2001:db8:1:2:3:4:5:6]:1", "[2001:db8:1:2::]:0"),
            (24, 48, "[2001:db8:1:2:3:4:5:6]:1", "[2001:db8:1::]:0"),
            (24, 0, "[2001:db8:1:2:3:4:5:6]:1", "[::]:0"),
            (24, 128, "[2001:db8::6]:1", "[2001:db8::6]:0"),
            (24, 128, "[::ffff:192.0.2.77]:1", "192.0.2.0:0"),
        ] {
            let privacy = Privacy {
                mask_client: Some(ClientMask { ipv4, ipv6 }),
                ..Privacy::default()
            };
            let client: SocketAddr = client.parse().expect("an address");
            assert_eq!(privacy.client(client).to_string(), shown, "/{ipv4} /{ipv6} {client}");
            assert_eq!(privacy.ip(client.ip()), privacy.client(client).ip());
            assert_eq!(Privacy::default().client(client), client);
        }
        let scoped = SocketAddr::V6(std::net::SocketAddrV6::new("fe80::1".parse().expect("one"), 1, 2, 3));
        let mask = ClientMask { ipv4: 24, ipv6: 64 };
        assert_eq!(
            mask.client(scoped).to_string(),
            "[fe80::]:0",
            "the interface is left out too"
        );
    }

    #[test]
    fn only_the_values_of_named_parameters_are_left_out() {
        let redact = RedactQuery::Values(["token", "a key", "ké"].map(str::to_owned).into());
        for (why, url, shown) in [
            ("a value", "/x?token=s3cret", Some("/x?token=redacted")),
            (
                "others stay",
                "/x?a=1&token=s3cret&b=2",
                Some("/x?a=1&token=redacted&b=2"),
            ),
            (
                "each of several",
                "/x?token=s3cret&token=s3cret",
                Some("/x?token=redacted&token=redacted"),
            ),
            ("an empty value", "/x?token=", Some("/x?token=redacted")),
            ("a value with an =", "/x?token=a=s3cret", Some("/x?token=redacted")),
            ("an encoded name", "/x?t%6Fke%6e=s3cret", Some("/x?t%6Fke%6e=redacted")),
            ("an encoded space", "/x?a%20key=s3cret", Some("/x?a%20key=redacted")),
            (
                "beyond ASCII, encoded",
                "/x?k%C3%A9=s3cret",
                Some("/x?k%C3%A9=redacted"),
            ),
            ("beyond ASCII, as sent", "/x?ké=s3cret", Some("/x?ké=redacted")),
            (
                "after a semicolon",
                "/x?a=1;token=s3cret&b=2",
                Some("/x?a=1;token=redacted&b=2"),
            ),
            (
                "a semicolon inside",
                "/x?token=s3;cret&b=2",
                Some("/x?token=redacted&b=2"),
            ),
            (
                "a second question mark",
                "/x?a?token=s3cret",
                Some("/x?a?token=redacted"),
            ),
            ("a fragment", "/x?a#token=s3cret", Some("/x?a#token=redacted")),
            (
                "a whole URL",
                "http://a.example/x?token=s3cret",
                Some("http://a.example/x?token=redacted"),
            ),
            (
                "empty parameters stay",
                "/x?&&token=s3cret&",
                Some("/x?&&token=redacted&"),
            ),
            ("no value", "/x?token", None),
            ("another case", "/x?Token=1", None),
            ("a longer name", "/x?mytoken=1&token2=1", None),
            ("a plus is no space", "/x?a+key=1", None),
            ("encoded twice", "/x?t%256Fken=1", None),
            ("in the path", "/token=1", None),
            ("no query", "/x", None),
        ] {
            assert_eq!(redact.url(url.into()), shown.unwrap_or(url), "{why}");
            assert_eq!(redact.hides_value(url), shown.is_some(), "{why}");
            assert!(matches!(RedactQuery::Nothing.url(url.into()), Cow::Borrowed(same) if same == url));
        }
    }

    #[test]
    fn a_whole_query_is_left_out() {
        for (url, shown) in [
            ("/x?token=s3cret&b", "/x?redacted"),
            ("/x?", "/x?redacted"),
            ("/x?a?b", "/x?redacted"),
            ("/x", "/x"),
        ] {
            assert_eq!(RedactQuery::All.url(url.into()), shown);
        }
    }

    #[test]
    fn a_user_agent_is_reduced_to_its_product_names() {
        let privacy = Privacy {
            user_agent: LoggedUserAgent::Product,
            ..Privacy::default()
        };
        for (why, user_agent, shown) in [
            ("a version", "AcmeBot/2.1", "AcmeBot"),
            (
                "a comment",
                "AcmeBot/2.1 (+https://acme.example/; ops@acme.example)",
                "AcmeBot",
            ),
            (
                "a bot that a browser's comment names",
                "Mozilla/5.0 (compatible; AcmeBot/2.1; +https://acme.example/bot)",
                "Mozilla AcmeBot",
            ),
            (
                "a browser's platform",
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36",
                "Mozilla AppleWebKit Chrome Safari",
            ),
            ("no product", "(jane@acme.example) 42", ""),
            ("an address beside the product", "AcmeBot jane@acme.example", "AcmeBot"),
            ("two fields", "AcmeBot/1 | OtherBot/2 (x)", "AcmeBot OtherBot"),
            ("an unclosed comment", "AcmeBot (jane", "AcmeBot"),
        ] {
            assert_eq!(privacy.user_agent(user_agent), shown, "{why}");
            assert_eq!(Privacy::default().user_agent(user_agent), user_agent);
        }
    }
}
