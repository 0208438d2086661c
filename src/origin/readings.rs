//! The ways to read a request's path and query: as sent, as normalized by RFC 3986, and, with `robots.strict-paths` or
//! for FTP, as common servers interpret them (`strict`). The proxy decides on all of these readings, so that no
//! spelling that the readings cover evades a rule. Over HTTP, it forwards the bytes as sent.

mod strict;

use std::borrow::Cow;

use self::strict::PathFeatures;
pub use self::strict::Strict;

/// The readings of one request's path and query, without the fragment, which is not sent to the origin (RFC 9110 §7.1).
/// Each begins with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings<'a> {
    /// The path and query as sent, except that an empty path becomes `/`, as in Google's parser (`GetPathParamsQuery`).
    pub sent: Cow<'a, [u8]>,
    /// The normalized path (RFC 3986 §6.2.2): `%7e` becomes `~`, `%2f` becomes `%2F`, `é` becomes `%C3%A9`, and `/./`
    /// and `/../` are resolved. `None` if that changes nothing.
    pub resolved: Option<Vec<u8>>,
    /// The same as `resolved`, but `%7e` becomes `%7E` and not `~`, for rules with such a needless escape. `None` if it
    /// equals `sent` or `resolved`.
    pub upper: Option<Vec<u8>>,
    /// What the path contains that servers read differently. `None` if there are no strict readings.
    features: Option<PathFeatures>,
}

/// One of the [`Readings`] of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The path as sent ([`Readings::sent`]).
    Sent,
    /// The normalized path ([`Readings::resolved`]).
    Resolved,
    /// The normalized path with needless escapes ([`Readings::upper`]).
    Upper,
    /// The path as a certain kind of server interprets it.
    Strict(Strict),
}

/// What [`resolve`] does with escapes of characters that need none, such as `%7E` for `~`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreserved {
    Decode,
    Keep,
}

/// Returns the readings of `path_and_query`, the part of a URL after the host. Includes strict readings only if
/// `strict` is set.
pub fn readings(path_and_query: &[u8], strict: bool) -> Readings<'_> {
    let sent = rooted(before_fragment(path_and_query));
    let (mut resolved, mut upper) = (None, None);
    if changes(&sent) {
        resolved = Some(resolve(&sent, Unreserved::Decode)).filter(|resolved| **resolved != *sent);
        upper =
            Some(resolve(&sent, Unreserved::Keep)).filter(|upper| **upper != *sent && resolved.as_ref() != Some(upper));
    }
    Readings {
        features: strict.then(|| PathFeatures::of(&sent)).flatten(),
        sent,
        resolved,
        upper,
    }
}

/// Returns whether `path_and_query` is the path of the site's robots.txt.
pub fn asks_for_robots_txt(path_and_query: &[u8]) -> bool {
    before_fragment(path_and_query) == b"/robots.txt"
}

// === impl Readings ===

impl Readings<'_> {
    /// Iterates over all readings, starting with the path as sent.
    pub fn all(&self) -> impl Iterator<Item = Reading> {
        let resolved = self.resolved.as_ref().map(|_| Reading::Resolved);
        let upper = self.upper.as_ref().map(|_| Reading::Upper);
        let strict = self
            .features
            .into_iter()
            .flat_map(PathFeatures::readings)
            .map(Reading::Strict);
        [Some(Reading::Sent), resolved, upper]
            .into_iter()
            .flatten()
            .chain(strict)
    }

    /// Returns the path and query in `reading`. A strict reading is computed on each call.
    pub fn text(&self, reading: Reading) -> Cow<'_, [u8]> {
        let usual = match reading {
            Reading::Strict(strict) => return Cow::Owned(strict.read(&self.sent)),
            Reading::Sent => None,
            Reading::Resolved => self.resolved.as_deref(),
            Reading::Upper => self.upper.as_deref(),
        };
        Cow::Borrowed(usual.unwrap_or(&self.sent))
    }
}

// === impl Reading ===

impl Reading {
    /// Returns the name of the reading in the log and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Reading::Sent => "sent",
            Reading::Resolved | Reading::Upper => "normalized",
            Reading::Strict(_) => "strict",
        }
    }

    /// Returns how the path was read, as a phrase to show before the path. `None` for the path as sent.
    pub fn phrase(self) -> Option<&'static str> {
        match self {
            Reading::Sent => None,
            Reading::Resolved | Reading::Upper => Some("the path, normalized"),
            Reading::Strict(_) => Some("the path as servers read it"),
        }
    }
}

/// Returns the first character for which the proxy rejects a target: a control character or a space, which breaks the
/// request line, or a character that pingora does not forward.
pub fn unsendable(target: &[u8]) -> Option<u8> {
    let query = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(query);
    let never = |byte: &u8| *byte <= b' ' || matches!(byte, 0x7F | b'<' | b'>');
    let in_path = path.iter().find(|byte| never(byte) || **byte == b'`');
    let in_query = || query.iter().find(|byte| never(byte) || **byte == b'"');
    in_path.or_else(in_query).copied()
}

fn before_fragment(target: &[u8]) -> &[u8] {
    &target[..memchr::memchr(b'#', target).unwrap_or(target.len())]
}

fn rooted(path_and_query: &[u8]) -> Cow<'_, [u8]> {
    if path_and_query.starts_with(b"/") {
        Cow::Borrowed(path_and_query)
    } else {
        let mut rooted = Vec::with_capacity(path_and_query.len() + 1);
        rooted.push(b'/');
        rooted.extend_from_slice(path_and_query);
        Cow::Owned(rooted)
    }
}

fn changes(target: &[u8]) -> bool {
    let is_changed = |(at, byte): (usize, &u8)| {
        let escape = target.get(at + 1..).filter(|_| *byte == b'%');
        match escape.and_then(|escape| Some((escaped_octet(escape)?, escape))) {
            Some((octet, escape)) => is_unreserved(octet) || escape[..2].iter().any(u8::is_ascii_lowercase),
            None => !byte.is_ascii_graphic(),
        }
    };
    let mut path = target
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default()
        .split(|byte| *byte == b'/');
    target.iter().enumerate().any(is_changed) || path.any(|segment| matches!(segment, b"." | b".."))
}

fn resolve(target: &[u8], unreserved: Unreserved) -> Vec<u8> {
    let decoded = decode(target, unreserved);
    let path_end = memchr::memchr(b'?', &decoded).unwrap_or(decoded.len());
    let (path, query) = decoded.split_at(path_end);
    let mut resolved = remove_dot_segments(path, unreserved);
    resolved.extend_from_slice(query);
    resolved
}

/// Normalizes escapes (RFC 3986 §6.2.2.1 and, with [`Unreserved::Decode`], §6.2.2.2), and escapes all octets that are
/// not visible ASCII characters.
fn decode(target: &[u8], unreserved: Unreserved) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(target.len());
    let mut rest = target;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match escaped_octet(rest) {
            Some(octet) if *first == b'%' => {
                rest = &rest[2..];
                if unreserved == Unreserved::Decode && is_unreserved(octet) {
                    decoded.push(octet);
                } else {
                    push_escaped(&mut decoded, octet);
                }
            }
            _ if !first.is_ascii_graphic() => push_escaped(&mut decoded, *first),
            _ => decoded.push(*first),
        }
    }
    decoded
}

pub(super) fn escaped_octet(after_percent: &[u8]) -> Option<u8> {
    let [high, low, ..] = after_percent else {
        return None;
    };
    let high = char::from(*high).to_digit(16)?;
    let low = char::from(*low).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

fn push_escaped(out: &mut Vec<u8>, octet: u8) {
    out.push(b'%');
    out.push(HEX[usize::from(octet >> 4)]);
    out.push(HEX[usize::from(octet & 0xF)]);
}

/// Resolves `/./` and `/../` in a path that begins with `/` (RFC 3986 §5.2.4).
fn remove_dot_segments(path: &[u8], unreserved: Unreserved) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match dots(segment, unreserved) {
            Some(dots) => {
                if dots == 2 {
                    let parent = memchr::memrchr(b'/', &out).unwrap_or(0);
                    out.truncate(parent);
                }
                if last {
                    out.push(b'/');
                }
            }
            None => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    out
}

/// Returns the number of dots if the segment is `.` or `..`. After [`Unreserved::Decode`], a `%2E` comes from text such
/// as `%2%45` and is not a dot.
fn dots(mut segment: &[u8], unreserved: Unreserved) -> Option<usize> {
    let mut dots = 0;
    while !segment.is_empty() {
        segment = match segment {
            [b'.', rest @ ..] => rest,
            [b'%', b'2', b'E', rest @ ..] if unreserved == Unreserved::Keep => rest,
            _ => return None,
        };
        dots += 1;
    }
    matches!(dots, 1 | 2).then_some(dots)
}

/// Maximum length of a request target, in bytes, because long ones take long to decide. RFC 9110 §4.1 recommends at
/// least 8,000.
pub const MAX_TARGET: usize = 16 * 1024;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_that_cannot_be_sent_raw_are_found() {
        for (target, found) in [
            ("/a?b", None),
            ("/é\"'{}|\\^?`", None),
            ("/a b", Some(b' ')),
            ("/a?\u{1b}", Some(0x1B)),
            ("/\u{7f}", Some(0x7F)),
            ("/<", Some(b'<')),
            ("/?>", Some(b'>')),
            ("/`", Some(b'`')),
            ("/?\"", Some(b'"')),
        ] {
            assert_eq!(unsendable(target.as_bytes()), found, "{target:?}");
        }
    }

    #[test]
    fn odd_spellings_have_the_expected_readings() {
        for (target, sent, resolved) in [
            ("/a", "/a", None),
            ("", "/", None),
            ("?q=1", "/?q=1", None),
            ("/a?", "/a?", None),
            ("/a;b=c", "/a;b=c", None),
            ("//a", "//a", None),
            ("/a//b", "/a//b", None),
            ("/%61", "/%61", Some("/a")),
            ("/%7euser", "/%7euser", Some("/~user")),
            ("/a%2fb", "/a%2fb", Some("/a%2Fb")),
            ("/a%2Fb", "/a%2Fb", None),
            ("/%e3%83%84", "/%e3%83%84", Some("/%E3%83%84")),
            ("/ツ", "/ツ", Some("/%E3%83%84")),
            ("/./a", "/./a", Some("/a")),
            ("/x/../a", "/x/../a", Some("/a")),
            ("/x/%2e%2E/a", "/x/%2e%2E/a", Some("/a")),
            ("/../../a", "/../../a", Some("/a")),
            ("/a/..", "/a/..", Some("/")),
            ("/a/.", "/a/.", Some("/a/")),
            ("/.well-known/x", "/.well-known/x", None),
            ("/a?x=/../b", "/a?x=/../b", None),
            ("/a?x=%61", "/a?x=%61", Some("/a?x=a")),
            ("/a#b", "/a", None),
            ("/x#/../a", "/x", None),
            ("/a/../b#/../c", "/a/../b", Some("/b")),
            ("/%61#/../c", "/%61", Some("/a")),
            ("#?/../a", "/", None),
            ("/a?b#c?d", "/a?b", None),
            ("/a/%2%45/b", "/a/%2%45/b", Some("/a/%2E/b")),
            ("/...", "/...", None),
            ("/100%", "/100%", None),
            ("/%zz", "/%zz", None),
        ] {
            let read = readings(target.as_bytes(), true);
            assert_eq!(String::from_utf8_lossy(&read.sent), sent, "{target} as sent");
            assert_eq!(
                read.resolved.as_deref().map(String::from_utf8_lossy).as_deref(),
                resolved,
                "{target} resolved"
            );
        }
    }

    #[test]
    fn a_reading_with_upper_case_escapes_is_added_if_needed() {
        for (target, upper) in [
            ("/%7Euser", None),
            ("/%7euser", Some("/%7Euser")),
            ("/x/../%7Euser", Some("/%7Euser")),
            ("/x/%2e%2e/%7Euser", Some("/%7Euser")),
            ("/a%2eb", Some("/a%2Eb")),
            ("/x/%2e%2e/a%2eb", Some("/a%2Eb")),
            ("/x/%2E./%2e/%2e%2e%2e", Some("/%2E%2E%2E")),
            ("/%41b", None),
            ("/a%2fb", None),
        ] {
            let read = readings(target.as_bytes(), true);
            assert_eq!(
                read.upper.as_deref().map(String::from_utf8_lossy).as_deref(),
                upper,
                "{target}"
            );
        }
    }

    fn spelt(letter: char) -> impl Strategy<Value = String> {
        let escape = u32::from(letter);
        prop_oneof![
            Just(letter.to_string()),
            Just(format!("%{escape:02x}")),
            Just(format!("%{escape:02X}")),
        ]
    }

    fn spelt_dots(dots: usize) -> impl Strategy<Value = String> {
        proptest::collection::vec(spelt('.'), dots).prop_map(|dots| dots.concat())
    }

    /// Generates path segments that cancel each other out, such as `/a/..`. With `at_root`, also a `..` alone.
    fn detour(at_root: bool) -> impl Strategy<Value = String> {
        let nowhere = spelt_dots(1).prop_map(|dot| format!("/{dot}"));
        let there_and_back = ("[a-z;=]{1,3}", spelt_dots(2)).prop_map(|(step, dots)| format!("/{step}/{dots}"));
        let up = spelt_dots(2).prop_map(move |dots| if at_root { format!("/{dots}") } else { String::new() });
        prop_oneof![4 => Just(String::new()), 1 => nowhere, 1 => there_and_back, 1 => up]
    }

    proptest! {
        #[test]
        fn every_spelling_of_a_path_resolves_to_the_plain_path(
            (plain, spelt) in proptest::collection::vec("[a-zA-Z0-9_~-]{1,5}", 1..5).prop_flat_map(|segments| {
                let spelt: Vec<_> = segments
                    .iter()
                    .enumerate()
                    .map(|(n, segment)| {
                        let letters: Vec<_> = segment.chars().map(spelt).collect();
                        (detour(n == 0), letters).prop_map(|(detour, letters)| format!("{detour}/{}", letters.concat()))
                    })
                    .collect();
                let plain: String = segments.iter().map(|segment| format!("/{segment}")).collect();
                (Just(plain), spelt.prop_map(|segments| segments.concat()))
            }),
            tail in prop::sample::select(&["", "?", "?/../x", "?q=1", "#", "#/../x", "?#/.."][..]),
        ) {
            let wanted = [&plain, tail.split('#').next().unwrap_or_default()].concat();
            let target = [&*spelt, tail].concat();
            let read = readings(target.as_bytes(), true);
            let resolved = read.resolved.as_deref().unwrap_or(&read.sent);
            prop_assert_eq!(String::from_utf8_lossy(resolved), wanted, "{}", target);
        }

        #[test]
        fn changes_reports_whether_normalizing_changes_a_path(
            parts in proptest::collection::vec(prop::sample::select(&["%", "2", "e", "E", "F", "61", "%2F", "%2f", "%2E", ".", "..", "/", "?", "a", "\u{e9}"][..]), 0..8),
        ) {
            let target = format!("/{}", parts.concat()).into_bytes();
            let differs = |unreserved| resolve(&target, unreserved) != target;
            prop_assert_eq!(changes(&target), differs(Unreserved::Decode) || differs(Unreserved::Keep));
        }

        #[test]
        fn resolved_readings_are_absolute_and_have_no_dot_segments(tail in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut target = b"/".to_vec();
            target.extend(tail);
            let read = readings(&target, true);
            prop_assert!(read.sent.starts_with(b"/"));
            if let Some(resolved) = read.resolved {
                prop_assert!(resolved.starts_with(b"/"));
                prop_assert!(resolved.iter().all(u8::is_ascii_graphic));
                let path = resolved.split(|byte| *byte == b'?').next().unwrap_or_default();
                prop_assert!(!path.split(|byte| *byte == b'/').any(|segment| segment == b"." || segment == b".."));
            }
        }
    }
}
