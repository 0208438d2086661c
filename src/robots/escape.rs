//! Brings a pattern into the one spelling that paths are compared with (RFC 9309 §2.2.2, as far as
//! Google's parser follows it: hex digits in upper case, non-ASCII octets escaped).
//!
//! Never decodes, and never touches paths: those come escaped.

use std::borrow::Cow;

/// `pattern` with the hex digits of its `%xx` in upper case and each octet from 0x80 up as `%XX`.
/// The result is ASCII.
pub(super) fn escape(pattern: &[u8]) -> Cow<'_, str> {
    if let Ok(plain) = std::str::from_utf8(pattern)
        && plain.is_ascii()
        && is_upper(pattern)
    {
        return Cow::Borrowed(plain);
    }
    let mut escaped = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    loop {
        rest = match rest {
            [b'%', a, b, rest @ ..] if is_hex(*a, *b) => {
                escaped.push('%');
                escaped.push(a.to_ascii_uppercase().into());
                escaped.push(b.to_ascii_uppercase().into());
                rest
            }
            [byte @ ..=0x7F, rest @ ..] => {
                escaped.push((*byte).into());
                rest
            }
            [byte, rest @ ..] => {
                escaped.push('%');
                escaped.push(hex_digit(byte >> 4));
                escaped.push(hex_digit(byte & 0x0F));
                rest
            }
            [] => return Cow::Owned(escaped),
        };
    }
}

/// Whether no `%xx` has a lower-case digit.
fn is_upper(pattern: &[u8]) -> bool {
    let mut rest = pattern;
    while let Some(at) = memchr::memchr(b'%', rest) {
        rest = match &rest[at + 1..] {
            [a, b, rest @ ..] if is_hex(*a, *b) => {
                if a.is_ascii_lowercase() || b.is_ascii_lowercase() {
                    return false;
                }
                rest
            }
            rest => rest,
        };
    }
    true
}

fn is_hex(a: u8, b: u8) -> bool {
    a.is_ascii_hexdigit() && b.is_ascii_hexdigit()
}

fn hex_digit(nibble: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(nibble & 0x0F)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hex_case_and_non_ascii_change() {
        assert_eq!(escape(b"/a%2fb"), "/a%2Fb");
        assert_eq!(escape("/\u{30c4}".as_bytes()), "/%E3%83%84");
        assert_eq!(escape(b"/\xFF%c3"), "/%FF%C3");
        assert_eq!(escape(b"/%zz%a%%aa%"), "/%zz%a%%AA%");
        assert_eq!(escape(b"/%61*$ \x7F"), "/%61*$ \x7F");
    }

    #[test]
    fn what_is_right_already_is_borrowed() {
        assert!(matches!(escape(b"/a%2Fb%z"), Cow::Borrowed(_)));
        assert!(matches!(escape(b""), Cow::Borrowed(_)));
    }
}
