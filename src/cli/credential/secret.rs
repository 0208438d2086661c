//! A credential's secret, either random or chosen by a person, and its hash.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::crypto::ring;

use crate::{
    bot::{SALT, SecretHash},
    config::Proxy,
};

/// A secret in clear text.
pub(super) enum Secret {
    Random(String),
    Given(String),
}

/// Why a secret cannot be used or created. Never quotes the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SecretError {
    #[error("the system provides no random numbers")]
    Random,
    #[error(
        "the secret on standard input has fewer than {MIN_GIVEN} characters; without --stdin the command creates a \
         good one"
    )]
    Short,
    #[error("the secret on standard input has more than {MAX_GIVEN} bytes; give a shorter one")]
    Long,
    #[error("the secret on standard input has more than one line, or a control character such as a tab")]
    Control,
}

// === impl Secret ===

impl Secret {
    /// Generates a secret of 256 random bits, written in characters that need no escape in a URL.
    pub(super) fn random() -> Result<Self, SecretError> {
        Ok(Self::Random(BASE64URL_NOPAD.encode(&random::<32>()?)))
    }

    /// Checks a secret that a person has chosen, and removes the line end.
    pub(super) fn given(input: &str) -> Result<Self, SecretError> {
        let text = input.strip_suffix('\n').unwrap_or(input);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.chars().any(char::is_control) {
            return Err(SecretError::Control);
        }
        if text.chars().count() < MIN_GIVEN {
            return Err(SecretError::Short);
        }
        if text.len() > MAX_GIVEN {
            return Err(SecretError::Long);
        }
        Ok(Self::Given(text.to_owned()))
    }

    pub(super) fn hash(&self) -> Result<SecretHash, SecretError> {
        let (Self::Random(text) | Self::Given(text)) = self;
        Ok(SecretHash::new(random::<SALT>()?, text.as_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn random<const N: usize>() -> Result<[u8; N], SecretError> {
    let mut bytes = [0; N];
    let random = ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| SecretError::Random)?;
    Ok(bytes)
}

/// Returns the URL of the proxy with `name` and `secret` as user and password. If the proxy listens on all interfaces
/// or on port 0, the host is the placeholder `PROXY`.
pub(super) fn url(name: &str, secret: &str, proxy: &Proxy) -> String {
    let (scheme, listen) = match &proxy.tls {
        Some(tls) => ("https", &tls.listen),
        None => ("http", &proxy.listen),
    };
    let host = match listen.first() {
        Some(address) if address.port() != 0 && !address.ip().is_unspecified() => address.to_string(),
        Some(address) if address.port() != 0 => format!("PROXY:{}", address.port()),
        _ => "PROXY".to_owned(),
    };
    format!("{scheme}://{}:{secret}@{host}", utf8_percent_encode(name, RESERVED))
}

/// Characters to percent-escape: all except the unreserved ones (RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Minimum length of a chosen secret, in characters: the length of 128 random bits in base64.
const MIN_GIVEN: usize = 22;
/// Maximum length of a chosen secret, in bytes. The proxy rejects a credential if `name:secret` has more than 1024
/// bytes.
const MAX_GIVEN: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Tls};

    #[test]
    fn random_secrets_differ_and_are_safe_in_a_url() {
        let (Secret::Random(a), Secret::Random(b)) = (Secret::random().unwrap(), Secret::random().unwrap()) else {
            panic!("they were not given")
        };
        assert_ne!(a, b);
        for secret in [a, b] {
            let escaped = utf8_percent_encode(&secret, RESERVED).to_string();
            assert_eq!((secret.len(), escaped), (43, secret.clone()));
        }
    }

    #[test]
    fn a_given_secret_must_be_one_line_of_22_to_512_characters() {
        let long = "x".repeat(22);
        for (input, error) in [
            (long.clone(), None),
            (format!("{long}\n"), None),
            (format!("{long}\r\n"), None),
            (format!("two words: {long}"), None),
            ("x".repeat(21), Some(SecretError::Short)),
            (String::new(), Some(SecretError::Short)),
            (format!("{}\n", "x".repeat(21)), Some(SecretError::Short)),
            (format!("{long}\n{long}\n"), Some(SecretError::Control)),
            (format!("{long}\u{0}"), Some(SecretError::Control)),
            ("x".repeat(513), Some(SecretError::Long)),
        ] {
            assert_eq!(Secret::given(&input).err(), error, "{input:?}");
        }
        let Ok(Secret::Given(text)) = Secret::given(&format!("{long}\n")) else {
            panic!("it is good")
        };
        assert_eq!(text, long);
        assert_eq!(format!("{:?}", Secret::Given(text)), "Secret(..)");
    }

    #[test]
    fn the_printed_url_is_escaped_for_clients() {
        for (name, listen, url_of) in [
            ("AcmeBot", "127.0.0.1:3128", "http://AcmeBot:S@127.0.0.1:3128"),
            ("a/b@c", "[::1]:3128", "http://a%2Fb%40c:S@[::1]:3128"),
            ("\u{fc}", "[::]:8080", "http://%C3%BC:S@PROXY:8080"),
            ("a", "127.0.0.1:0", "http://a:S@PROXY"),
        ] {
            let mut proxy = Config::default().proxy;
            proxy.listen = vec![listen.parse().unwrap()];
            assert_eq!(url(name, "S", &proxy), url_of);
            proxy.tls = Some(Tls {
                listen: std::mem::replace(&mut proxy.listen, vec!["127.0.0.1:1".parse().unwrap()]),
                certificate: "proxy.pem".into(),
                key: "proxy-key.pem".into(),
                client_roots: [].into(),
            });
            assert_eq!(url(name, "S", &proxy), url_of.replace("http:", "https:"));
        }
    }
}
