//! Parses one line as a key and a value (RFC 9309 §2.2). In Google's profile, it accepts typos, longer words that begin
//! with a key, and missing colons, as Google's parser does.

use memchr::{memchr, memchr2};

use super::{Profile, RuleKind};

#[derive(Debug)]
pub(super) struct GroupLine<'a> {
    pub(super) key: LineKey,
    pub(super) value: &'a [u8],
    /// The whole line, without its comment and surrounding white space. It ends with `value`.
    pub(super) text: &'a [u8],
}

/// The key and value of any line, whatever the key means, without surrounding white space.
pub(super) struct KeyValue<'a> {
    /// The whole line; see [`GroupLine::text`].
    pub(super) text: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LineKey {
    UserAgent,
    Rule(RuleKind),
}

// === impl GroupLine ===

impl<'a> GroupLine<'a> {
    /// Returns `None` if the line is neither a user-agent line nor a rule. Such a line does not end a group.
    pub(super) fn read(profile: Profile, line: &'a [u8]) -> Option<Self> {
        let KeyValue { text, key, value } = KeyValue::read(profile, line)?;
        let key = LineKey::read(profile, key)?;
        Some(Self { key, value, text })
    }
}

// === impl KeyValue ===

impl<'a> KeyValue<'a> {
    /// Parses a line. Returns `None` if the line has no colon and no white space that can replace the colon.
    pub(super) fn read(profile: Profile, line: &'a [u8]) -> Option<Self> {
        let text = trim(memchr(b'#', line).map_or(line, |at| &line[..at]));
        let at = separator(profile, text)?;
        Some(Self {
            text,
            key: trim(&text[..at]),
            value: trim(&text[at + 1..]),
        })
    }
}

// === impl LineKey ===

impl LineKey {
    pub(super) fn read(profile: Profile, text: &[u8]) -> Option<Self> {
        if profile == Profile::Rfc9309 {
            let is = |spelling: &[u8]| text.eq_ignore_ascii_case(spelling);
            return GRAMMAR.iter().find_map(|&(spelling, key)| is(spelling).then_some(key));
        }
        SPELLINGS
            .iter()
            .find_map(|&(spelling, key)| begins(text, spelling).then_some(key))
    }
}

/// Returns whether `text` begins with `start`, ignoring case.
pub(super) fn begins(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start))
}

/// Returns where the key ends: at the first colon. In Google's profile, white space can replace the colon, but only
/// between exactly two words, so that prose is not mistaken for a rule.
fn separator(profile: Profile, text: &[u8]) -> Option<usize> {
    if let Some(colon) = memchr(b':', text) {
        return Some(colon);
    }
    if profile == Profile::Rfc9309 {
        return None;
    }
    let blank = memchr2(b' ', b'\t', text)?;
    let second = text[blank..].iter().position(|b| !is_blank(*b))?;
    let words_end = memchr2(b' ', b'\t', &text[blank + second..]);
    words_end.is_none().then_some(blank)
}

/// Returns whether a byte separates words. Other white space is trimmed, but does not separate words.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns whether C's `isspace` takes a byte for white space. Unlike `u8::is_ascii_whitespace`, this includes the
/// vertical tab.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_space(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_space(*last)
    {
        bytes = rest;
    }
    bytes
}

const ALLOW: LineKey = LineKey::Rule(RuleKind::Allow);
const DISALLOW: LineKey = LineKey::Rule(RuleKind::Disallow);

/// The keys of RFC 9309 §2.2.
const GRAMMAR: &[(&[u8], LineKey)] = &[
    (b"user-agent", LineKey::UserAgent),
    (b"allow", ALLOW),
    (b"disallow", DISALLOW),
];

/// The spellings that Google's parser accepts. A key only needs to *begin* with one of them, ignoring case.
const SPELLINGS: &[(&[u8], LineKey)] = &[
    (b"user-agent", LineKey::UserAgent),
    (b"useragent", LineKey::UserAgent),
    (b"user agent", LineKey::UserAgent),
    (b"allow", ALLOW),
    (b"disallow", DISALLOW),
    (b"dissallow", DISALLOW),
    (b"dissalow", DISALLOW),
    (b"disalow", DISALLOW),
    (b"diasllow", DISALLOW),
    (b"disallaw", DISALLOW),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(LineKey, &str)> {
        let record = GroupLine::read(Profile::Google, line.as_bytes())?;
        let value = std::str::from_utf8(record.value).expect("the tests are text");
        Some((record.key, value))
    }

    #[test]
    fn keys_match_by_prefix_in_any_case_and_with_known_typos() {
        assert_eq!(read("DisAllowed: /x"), Some((DISALLOW, "/x")));
        assert_eq!(read("User-agents: a"), Some((LineKey::UserAgent, "a")));
        assert_eq!(read("user agent: a"), Some((LineKey::UserAgent, "a")));
        assert_eq!(read("Allows: /"), Some((ALLOW, "/")));
        assert_eq!(read("Disallaw: /"), Some((DISALLOW, "/")));
        assert_eq!(read("Disalow /"), Some((DISALLOW, "/")));
        assert_eq!(read("Disllow: /"), None);
        assert_eq!(read("xDisallow: /"), None);
        assert_eq!(read("Sitemap: /"), None);
    }

    #[test]
    fn the_rfc9309_profile_accepts_no_typos_and_no_missing_colons() {
        let read = |line: &'static str| Some(GroupLine::read(Profile::Rfc9309, line.as_bytes())?.key);
        assert_eq!(read(" DISALLOW\t: /x # why"), Some(DISALLOW));
        assert_eq!(read("user-agent:a"), Some(LineKey::UserAgent));
        assert_eq!(read("Allow:"), Some(ALLOW));
        for line in [
            "Disalow: /x",
            "Disallowed: /x",
            "useragent: a",
            "user agent: a",
            "allow /x",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn white_space_separates_exactly_two_words() {
        assert_eq!(read("allow /x"), Some((ALLOW, "/x")));
        assert_eq!(read("allow \t /x # why"), Some((ALLOW, "/x")));
        assert_eq!(read("allow /x /y"), None);
        assert_eq!(read("allow"), None);
        assert_eq!(read("allow\x0b/x"), None);
        assert_eq!(read("allow \x0b/x"), Some((ALLOW, "/x")));
    }

    #[test]
    fn a_colon_anywhere_is_the_separator() {
        assert_eq!(read("disallow /a http://b"), Some((DISALLOW, "//b")));
        assert_eq!(read("disallow : : "), Some((DISALLOW, ":")));
        assert_eq!(read(": /x"), None);
    }

    #[test]
    fn comments_and_white_space_are_not_part_of_the_text() {
        let record = GroupLine::read(Profile::Google, b" \x0c Allow : /x y \x0b # /z").expect("a record");
        assert_eq!(record.text, b"Allow : /x y");
        assert_eq!(record.value, b"/x y");
    }
}
