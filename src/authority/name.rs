//! Which host names a leaf certificate can contain.

use std::net::Ipv4Addr;

use thiserror::Error;

use crate::origin::Host;

/// Why a certificate cannot contain a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than 253 octets (RFC 1035 section 2.3.4)")]
    Long,
    #[error("it has an empty label")]
    EmptyLabel,
    #[error("it has a label longer than 63 octets (RFC 1035 section 2.3.4)")]
    LongLabel,
    #[error("it has a character other than a-z, 0-9, `-`, `_` and `.`")]
    Character,
    #[error("it is an IP address")]
    Address,
}

/// Checks whether a certificate can contain the name of `host` (RFC 5280 §4.2.1.6).
///
/// Refuses wildcards, and NUL, which some clients treat as the end of the name. Accepts `_`, and hyphens at the ends of
/// a label: RFC 1123 forbids them, but some real hosts have such names.
pub(super) fn check(host: &Host) -> Result<(), NameError> {
    let Host::Name(name) = host else {
        return Ok(());
    };
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_NAME {
        return Err(NameError::Long);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(NameError::EmptyLabel);
        }
        if label.len() > MAX_LABEL {
            return Err(NameError::LongLabel);
        }
        if !label.bytes().all(is_name_octet) {
            return Err(NameError::Character);
        }
    }
    // Clients treat a name like `192.0.2.1` as an address, and compare it only with iPAddress entries (RFC 9110
    // §4.3.5).
    if name.parse::<Ipv4Addr>().is_ok() {
        return Err(NameError::Address);
    }
    Ok(())
}

fn is_name_octet(octet: u8) -> bool {
    matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
}

const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str) -> Result<(), NameError> {
        super::check(&Host::Name(name.into()))
    }

    #[test]
    fn names_in_common_use_are_accepted() {
        for name in [
            "example.com",
            "localhost",
            "foo_bar.example",
            "_dmarc.example",
            "-edge-.example",
            "xn--bcher-kva.example",
            "1.2.3",
            "a.b.c.d.e.f",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        assert_eq!(check(&"a".repeat(63)), Ok(()));
        assert_eq!(check(&vec!["a".repeat(63); 4].join(".")[..253]), Ok(()));
    }

    #[test]
    fn each_invalid_name_gets_the_matching_error() {
        assert_eq!(check(""), Err(NameError::Empty));
        assert_eq!(check("example.com."), Err(NameError::EmptyLabel));
        assert_eq!(check(".example.com"), Err(NameError::EmptyLabel));
        assert_eq!(check("a..b"), Err(NameError::EmptyLabel));
        assert_eq!(check(&"a".repeat(64)), Err(NameError::LongLabel));
        assert_eq!(check(&["a"; 128].join(".")), Err(NameError::Long));
        assert_eq!(check("127.0.0.1"), Err(NameError::Address));
        for name in [
            "*.example.com",
            "*",
            "Example.com",
            "a b",
            "a\0b",
            "bücher.example",
            "[::1]",
            "a/b",
            "a:1",
        ] {
            assert_eq!(check(name), Err(NameError::Character), "{name}");
        }
    }
}
