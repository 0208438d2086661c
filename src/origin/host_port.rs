//! Parses the `host[:port]` of a URL, a `Host` field or a CONNECT (RFC 3986 §3.2) into a normalized [`Host`] and a
//! port. All spellings of an address or a name become one form, as in the URL standard. Parsing fails if the text has
//! user information, or an invalid host or port. This module resolves no name.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use super::Host;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    pub host: Host,
    pub port: Option<u16>,
}

/// Why a host and port are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPortError {
    #[error("the host is missing")]
    NoHost,
    #[error("remove the user name before the host")]
    UserInfo,
    #[error("put the IPv6 address in brackets, as in [::1]")]
    NoBrackets,
    #[error("the host is neither a name like shop.example nor an address")]
    Host,
    #[error("the host has the character '{0}', which robotgate does not accept")]
    Character(char),
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

// === impl HostPort ===

impl HostPort {
    /// Parses `bytes` as `host[:port]`.
    ///
    /// # Errors
    /// Fails if the host is neither a name nor an address by the URL standard, if a name is too long, has an empty label
    /// or a character that RFC 3986 §3.2.2 does not allow, if there is a user name (RFC 9110 §4.2.4), or if the port is
    /// outside 1–65535.
    pub fn parse(bytes: &[u8]) -> Result<Self, HostPortError> {
        if bytes.contains(&b'@') {
            return Err(HostPortError::UserInfo);
        }
        let (host, port) = split_port(bytes)?;
        if host.is_empty() {
            return Err(HostPortError::NoHost);
        }
        Ok(Self {
            host: parse_host(host)?,
            port: port.map(parse_port).transpose()?,
        })
    }
}

/// Splits off the port, which may be empty (RFC 3986 §3.2.3). An IPv6 address keeps its brackets.
fn split_port(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), HostPortError> {
    let host_end = match bytes.first() {
        Some(b'[') => 1 + memchr::memchr(b']', bytes).ok_or(HostPortError::Host)?,
        _ => memchr::memchr(b':', bytes).unwrap_or(bytes.len()),
    };
    let (host, rest) = bytes.split_at(host_end);
    match rest {
        [] | [b':'] => Ok((host, None)),
        [b':', port @ ..] if port.contains(&b':') && is_ipv6(bytes) => Err(HostPortError::NoBrackets),
        [b':', port @ ..] => Ok((host, Some(port))),
        _ => Err(HostPortError::Host),
    }
}

/// Returns whether the bytes are an IPv6 address without brackets, perhaps with a port.
fn is_ipv6(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let without_port = text.rsplit_once(':').map_or("", |(address, _)| address);
    [text, without_port].iter().any(|text| text.parse::<Ipv6Addr>().is_ok())
}

fn parse_port(digits: &[u8]) -> Result<u16, HostPortError> {
    // `u16::from_str` would accept a sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(HostPortError::Port);
    }
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .filter(|port| *port != 0)
        .ok_or(HostPortError::Port)
}

fn parse_host(bytes: &[u8]) -> Result<Host, HostPortError> {
    let text = std::str::from_utf8(bytes).map_err(|_| HostPortError::Host)?;
    if is_plain_name(bytes) {
        return Ok(Host::Name(Arc::from(text)));
    }
    // All parsers agree that four decimal numbers without leading zeros are an IPv4 address.
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(IpAddr::V4(address)));
    }
    check_characters(text)?;
    // The crate url also reads escapes, international names, and IPv4 addresses such as `0x7f.1`, which browsers and C
    // libraries accept.
    match url::Host::parse(text).map_err(|_| HostPortError::Host)? {
        url::Host::Ipv4(address) => Ok(Host::Ip(IpAddr::V4(address))),
        url::Host::Ipv6(address) => Ok(Host::Ip(IpAddr::V6(address))),
        url::Host::Domain(name) => {
            check_characters(&name).and_then(|()| match name.strip_suffix('.').unwrap_or(&name) {
                "" => Err(HostPortError::NoHost),
                name if name.split('.').any(str::is_empty) || name.len() > MAX_NAME => Err(HostPortError::Host),
                name => Ok(Host::Name(Arc::from(name))),
            })
        }
    }
}

/// Refuses characters that RFC 3986 prohibits in a host. The URL standard allows some of these.
fn check_characters(host: &str) -> Result<(), HostPortError> {
    let prohibited = host.chars().find(|character| "\"`{}<>".contains(*character));
    prohibited.map_or(Ok(()), |character| Err(HostPortError::Character(character)))
}

/// Returns whether the bytes are a name that needs no normalizing, as nearly all hosts are. Returns false for punycode,
/// which needs a full check, and if the last label does not begin with a letter, because the host could be an address.
fn is_plain_name(bytes: &[u8]) -> bool {
    let mut last_label = bytes;
    for label in bytes.split(|byte| *byte == b'.') {
        let plain = !label.is_empty()
            && !label.starts_with(b"xn--")
            && label
                .iter()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        if !plain {
            return false;
        }
        last_label = label;
    }
    bytes.len() <= MAX_NAME && last_label.first().is_some_and(u8::is_ascii_lowercase)
}

/// Maximum length of a name in its text form (RFC 1035 §3.1).
const MAX_NAME: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(String, Option<u16>), HostPortError> {
        HostPort::parse(text.as_bytes()).map(|authority| (authority.host.to_string(), authority.port))
    }

    #[test]
    fn all_spellings_of_a_host_are_normalized() {
        for (spelling, host) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com", "example.com"),
            ("example.com.", "example.com"),
            ("exam%70le.com", "example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("ｅｘａｍｐｌｅ.com", "example.com"),
            ("localhost", "localhost"),
            ("foo_bar.example", "foo_bar.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("0177.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ] {
            assert_eq!(parsed(spelling), Ok((host.to_owned(), None)), "{spelling}");
        }
    }

    #[test]
    fn no_spelling_of_an_address_passes_for_a_name() {
        for (spelling, host) in [
            ("127.0.0.1", Some("127.0.0.1")),
            ("127.0.0.1.", Some("127.0.0.1")),
            ("127.0.0.1..", None),
            ("127.0.1", Some("127.0.0.1")),
            ("127.1", Some("127.0.0.1")),
            ("127.1.", Some("127.0.0.1")),
            ("127", Some("0.0.0.127")),
            ("0", Some("0.0.0.0")),
            ("0x", Some("0.0.0.0")),
            ("2130706433", Some("127.0.0.1")),
            ("017700000001", Some("127.0.0.1")),
            ("0x7f000001", Some("127.0.0.1")),
            ("0X7F000001", Some("127.0.0.1")),
            ("0x7f.0x0.0x0.0x1", Some("127.0.0.1")),
            ("0177.0.0x0.1", Some("127.0.0.1")),
            ("127.0.0.01", Some("127.0.0.1")),
            ("0000127.0.0.1", Some("87.0.0.1")),
            ("10.0x1", Some("10.0.0.1")),
            ("4294967296", None),
            ("127.0.0.256", None),
            ("127.0.0.0.1", None),
            ("08.0.0.1", None),
            ("1.2.3.4.5", None),
            ("a.0x7f", None),
            ("a.1", None),
            ("127.0.0.1 ", None),
            (" 127.0.0.1", None),
            ("127.0.0.1\t", None),
            ("127.0.0.1%00", None),
            ("127.0.0.1%2e", Some("127.0.0.1")),
            ("%31%32%37%2E0.0.1", Some("127.0.0.1")),
            ("%2531", None),
            ("１２７.0.0.1", Some("127.0.0.1")),
            ("127。0．0｡1", Some("127.0.0.1")),
            ("①②⑦.0.0.①", Some("127.0.0.1")),
            ("127.0.0.1\u{ad}", Some("127.0.0.1")),
            ("127.0.0.1\u{200b}", Some("127.0.0.1")),
            ("١٢٧.٠.٠.١", None),
            ("%e3%80%82", None),
            ("[::1]", Some("[::1]")),
            ("[::0001]", Some("[::1]")),
            ("[0::1]", Some("[::1]")),
            ("[::127.0.0.1]", Some("[::7f00:1]")),
            ("[::ffff:127.0.0.1]", Some("[::ffff:127.0.0.1]")),
            ("[::FFFF:7F00:1]", Some("[::ffff:127.0.0.1]")),
            ("[64:ff9b::10.0.0.1]", Some("[64:ff9b::a00:1]")),
            ("[::ffff:127.1]", None),
            ("[::ffff:0x7f.0.0.1]", None),
            ("[::ffff:0177.0.0.1]", None),
            ("[fe80::1%eth0]", None),
            ("[fe80::1%25eth0]", None),
            ("[fe80::1%251]", None),
            ("[127.0.0.1]", None),
            ("[localhost]", None),
            ("[v1.fe80::a+en1]", None),
            ("[]", None),
            ("[::1].", None),
            ("[[::1]]", None),
            ("%5B::1%5D", None),
            ("::ffff:127.0.0.1", None),
            ("LOCALHOST", Some("localhost")),
            ("localhost.", Some("localhost")),
            ("ｌｏｃａｌｈｏｓｔ", Some("localhost")),
            ("lo\u{ad}calhost", Some("localhost")),
            ("127.0.0.1\\@a.example", None),
            ("127.0.0.1#a.example", None),
            ("127.0.0.1?a.example", None),
            ("a.example\\.127.0.0.1", None),
        ] {
            let found = parsed(spelling).ok().map(|(host, _)| host);
            assert_eq!(found.as_deref(), host, "{spelling:?}");
            if let Ok(HostPort {
                host: Host::Name(name), ..
            }) = HostPort::parse(spelling.as_bytes())
            {
                assert_eq!(&*name, "localhost", "{spelling:?}");
            }
        }
    }

    #[test]
    fn a_character_that_no_host_may_have_is_named() {
        for (host, character) in [
            ("{shop}.example", '{'),
            ("shop%7Beu%7d.example:80", '{'),
            ("<host>", '<'),
            ("a`b.example", '`'),
            ("\"a.example", '"'),
        ] {
            assert_eq!(parsed(host), Err(HostPortError::Character(character)), "{host}");
        }
    }

    #[test]
    fn only_exact_port_numbers_are_accepted() {
        assert_eq!(parsed("a.example:8080"), Ok(("a.example".into(), Some(8080))));
        assert_eq!(parsed("a.example:"), Ok(("a.example".into(), None)));
        assert_eq!(parsed("[::1]:443"), Ok(("[::1]".into(), Some(443))));
        for port in ["0", "65536", "+80", "80a", "8 0", "-1"] {
            let authority = format!("a.example:{port}");
            assert_eq!(parsed(&authority), Err(HostPortError::Port), "{port}");
        }
    }

    #[test]
    fn an_ambiguous_host_or_port_is_refused() {
        for (authority, error) in [
            ("", HostPortError::NoHost),
            (":80", HostPortError::NoHost),
            (".", HostPortError::NoHost),
            ("user@a.example", HostPortError::UserInfo),
            ("user:secret@a.example:80", HostPortError::UserInfo),
            ("a.example:80:90", HostPortError::Port),
            ("[::1", HostPortError::Host),
            ("[::1]x", HostPortError::Host),
            ("::1", HostPortError::NoBrackets),
            ("::1:443", HostPortError::NoBrackets),
            ("2001:db8::1:443", HostPortError::NoBrackets),
            ("1:2:3:4:5:6:7:8:443", HostPortError::NoBrackets),
            ("10.0.0.1:80:90", HostPortError::Port),
            ("a b.example", HostPortError::Host),
            ("a/b.example", HostPortError::Host),
            ("a..example", HostPortError::Host),
            ("300.0.0.1", HostPortError::Host),
            ("a%00.example", HostPortError::Host),
            ("xn--a", HostPortError::Host),
        ] {
            assert_eq!(parsed(authority), Err(error), "{authority:?}");
        }
    }

    #[test]
    fn a_name_too_long_for_dns_is_refused() {
        let name = format!("{}.example", "a.".repeat(130));
        assert_eq!(parsed(&name), Err(HostPortError::Host));
    }
}
