//! Normalizes patterns and paths, so that they can be compared byte by byte (RFC 9309 §2.2.2).
//!
//! Google's parser changes only patterns: it writes escapes in upper case and escapes non-ASCII octets. The RFC profile
//! makes an escape such as `%62` equal to its character, but keeps `%2A` and `%24`, because an escaped `*` or `$` is
//! never a wildcard.

use std::borrow::Cow;

use super::Profile;

/// Returns `pattern` in its normalized form, which is ASCII.
pub(super) fn of_pattern(profile: Profile, pattern: &[u8]) -> Cow<'_, str> {
    if let Ok(plain) = std::str::from_utf8(pattern)
        && plain.is_ascii()
        && is_compared_as_written(profile, pattern)
    {
        return Cow::Borrowed(plain);
    }
    let (inner, anchor) = match (profile, pattern) {
        (Profile::Rfc9309, [inner @ .., b'$']) => (inner, "$"),
        _ => (pattern, ""),
    };
    let mut spelled = String::with_capacity(pattern.len() + 16);
    let mut in_query = false;
    for unit in Units(inner) {
        in_query |= matches!(unit, Unit::Raw(b'?'));
        match (profile, unit) {
            // This `$` is not at the end of the pattern, so it is an ordinary character.
            (Profile::Rfc9309, Unit::Raw(b'$')) => push_escaped(&mut spelled, b'$'),
            (Profile::Rfc9309, Unit::Escaped(octet)) if is_the_same_plain(octet, in_query) => {
                spelled.push(octet.into())
            }
            (_, Unit::Raw(octet @ ..=0x7F)) => spelled.push(octet.into()),
            (_, Unit::Raw(octet) | Unit::Escaped(octet)) => push_escaped(&mut spelled, octet),
        }
    }
    spelled.push_str(anchor);
    Cow::Owned(spelled)
}

/// Returns `path` in its normalized form. Allocates only in the RFC profile, and only for a path with a `%`, a `*`, a
/// `$` or a non-ASCII octet.
pub(super) fn of_path(profile: Profile, path: &[u8]) -> Cow<'_, [u8]> {
    let special = |octet: &u8| matches!(octet, b'%' | b'*' | b'$' | 0x80..);
    if profile == Profile::Google || !path.iter().any(special) {
        return Cow::Borrowed(path);
    }
    let mut spelled = String::with_capacity(path.len() + 16);
    let mut in_query = false;
    for unit in Units(path) {
        in_query |= matches!(unit, Unit::Raw(b'?'));
        match unit {
            Unit::Escaped(octet) if is_the_same_plain(octet, in_query) => spelled.push(octet.into()),
            Unit::Raw(octet @ ..=0x7F) if !matches!(octet, b'*' | b'$') => spelled.push(octet.into()),
            Unit::Raw(octet) | Unit::Escaped(octet) => push_escaped(&mut spelled, octet),
        }
    }
    Cow::Owned(spelled.into_bytes())
}

pub(super) enum Unit {
    Raw(u8),
    Escaped(u8),
}

pub(super) struct Units<'a>(pub(super) &'a [u8]);

// === impl Units ===

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let (unit, rest) = match self.0 {
            [b'%', high, low, rest @ ..] if let Some(octet) = octet(*high, *low) => (Unit::Escaped(octet), rest),
            [octet, rest @ ..] => (Unit::Raw(*octet), rest),
            [] => return None,
        };
        self.0 = rest;
        Some(unit)
    }
}

fn octet(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// Returns whether a character means the same with and without its escape: unreserved characters (RFC 3986 §2.3) and
/// most reserved ones do (RFC 9309 §2.2.2). `/`, `?` and `#` do only in the query, `*` and `$` never.
fn is_the_same_plain(octet: u8, in_query: bool) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~:[]@!&'()+,;=".contains(&octet) || in_query && b"/?#".contains(&octet)
}

/// Returns true only if an ASCII pattern is normalized already.
fn is_compared_as_written(profile: Profile, pattern: &[u8]) -> bool {
    match profile {
        Profile::Google => is_upper(pattern),
        Profile::Rfc9309 => {
            let inner = pattern.strip_suffix(b"$").unwrap_or(pattern);
            memchr::memchr2(b'%', b'$', inner).is_none()
        }
    }
}

fn is_upper(pattern: &[u8]) -> bool {
    let mut rest = pattern;
    while let Some(at) = memchr::memchr(b'%', rest) {
        rest = match &rest[at + 1..] {
            [high, low, rest @ ..] if octet(*high, *low).is_some() => {
                if high.is_ascii_lowercase() || low.is_ascii_lowercase() {
                    return false;
                }
                rest
            }
            rest => rest,
        };
    }
    true
}

fn push_escaped(spelled: &mut String, octet: u8) {
    spelled.push('%');
    for nibble in [octet >> 4, octet & 0x0F] {
        spelled.push(char::from(b"0123456789ABCDEF"[usize::from(nibble)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn google_changes_only_hex_case_and_non_ascii_of_patterns() {
        for (pattern, spelled) in [
            (&b"/a%2fb"[..], "/a%2Fb"),
            ("/\u{30c4}".as_bytes(), "/%E3%83%84"),
            (b"/\xFF%c3", "/%FF%C3"),
            (b"/%zz%a%%aa%", "/%zz%a%%AA%"),
            (b"/%61*$ \x7F", "/%61*$ \x7F"),
        ] {
            assert_eq!(of_pattern(Profile::Google, pattern), spelled);
        }
        assert_eq!(&*of_path(Profile::Google, b"/%61*$\xFF"), b"/%61*$\xFF");
    }

    #[test]
    fn in_the_rfc9309_profile_spellings_of_a_path_are_equal() {
        for (pattern, path, spelled) in [
            (&b"/%62%61%7A"[..], &b"/ba%7a"[..], "/baz"),
            (b"/?u=http://x", b"/?u=http%3A%2f%2Fx", "/?u=http://x"),
            ("/\u{30c4}".as_bytes(), b"/%e3%83%84", "/%E3%83%84"),
            (b"/%2a", b"/*", "/%2A"),
            (b"/%24", b"/$", "/%24"),
            (b"/$x", b"/%24x", "/%24x"),
            (b"/%zz%", b"/%zz%", "/%zz%"),
            (b"/%25%20%7b", b"/%25%20%7B", "/%25%20%7B"),
            (b"/a%2fb", b"/a%2Fb", "/a%2Fb"),
            (b"/a%3fb", b"/a%3Fb", "/a%3Fb"),
            (b"/a%3a;", b"/a:%3b", "/a:;"),
        ] {
            assert_eq!(of_pattern(Profile::Rfc9309, pattern), spelled);
            assert_eq!(String::from_utf8_lossy(&of_path(Profile::Rfc9309, path)), spelled);
        }
        assert_eq!(of_pattern(Profile::Rfc9309, b"/*%61$"), "/*a$", "wildcards stay");
    }

    #[test]
    fn a_normalized_text_is_borrowed() {
        for profile in [Profile::Google, Profile::Rfc9309] {
            assert!(matches!(of_pattern(profile, b"/a*b$"), Cow::Borrowed(_)));
            assert!(matches!(of_pattern(profile, b""), Cow::Borrowed(_)));
            assert!(matches!(of_path(profile, b"/a?b=c"), Cow::Borrowed(_)));
        }
        assert!(matches!(of_pattern(Profile::Google, b"/a%2Fb%z"), Cow::Borrowed(_)));
    }
}
