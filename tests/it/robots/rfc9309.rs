//! The part of the model that follows RFC 9309 to the letter: the keys of lines (§2.2) and how octets are compared
//! (§2.2.2).
//!
//! RFC 9309 and Google's parser agree on lines, groups and product tokens, so [`super::model`] parses these.

use super::model::{Interpretation, Key, path, trim};

/// Returns whether `agent` may fetch `url`, and the line that decides (0 if no rule does).
pub fn decide(body: &[u8], agent: &str, url: &[u8]) -> (bool, u32) {
    // RFC 9309 §2.2.2: the robots.txt itself is implicitly allowed.
    if *path(url) == *b"/robots.txt" {
        return (true, 0);
    }
    READING.decide(body, agent, url)
}

const READING: Interpretation = Interpretation {
    key,
    pattern,
    path: spelled,
    index_pages: false,
};

/// Parses `startgroupline` and `rule` of the grammar: one of three words in any case, white space, a colon.
fn key(line: &[u8]) -> Option<(Key, usize)> {
    let colon = line.iter().position(|b| *b == b':')?;
    let key = match &*trim(&line[..colon]).to_ascii_lowercase() {
        b"user-agent" => Key::Agent,
        b"allow" => Key::Allow,
        b"disallow" => Key::Disallow,
        _ => return None,
    };
    Some((key, colon))
}

/// Normalizes a pattern. A `$` that is not at the end has no special meaning (§2.2.3), so it equals the octet `%24`.
fn pattern(value: &[u8]) -> Vec<u8> {
    let (text, end) = match value.split_last() {
        Some((b'$', text)) => (text, &b"$"[..]),
        _ => (value, &b""[..]),
    };
    let mut start = 0;
    let pieces = text.split(|b| *b == b'*').map(|piece| {
        let before = &text[..start];
        start += piece.len() + 1;
        spelled_after(before, piece)
    });
    [pieces.collect::<Vec<_>>().join(&b'*'), end.to_vec()].concat()
}

/// Normalizes all spellings that §2.2.2 treats as equal, and escapes `*` and `$` as §2.2.3 requires.
///
/// URL delimiters (RFC 3986 §2.2) stay escaped if decoding them would change their meaning: a `/`, `?` or `#` before
/// the query.
fn spelled(text: &[u8]) -> Vec<u8> {
    spelled_after(b"", text)
}

fn spelled_after(before: &[u8], text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let escape = text.get(at..at + 3).and_then(escaped);
        let octet = escape.unwrap_or(text[at]);
        let for_itself = b"*$".contains(&octet);
        let as_is = match escape {
            Some(b'/' | b'?' | b'#') => before.contains(&b'?') || text[..at].contains(&b'?'),
            Some(octet) => UNRESERVED.contains(&octet) || RESERVED.contains(&octet),
            None => octet.is_ascii(),
        };
        if as_is && !for_itself {
            out.push(octet);
        } else {
            out.extend(format!("%{octet:02X}").bytes());
        }
        at += if escape.is_some() { 3 } else { 1 };
    }
    out
}

fn escaped(three: &[u8]) -> Option<u8> {
    let hex = three.strip_prefix(b"%")?;
    // The conversion below would accept a sign.
    let digits = hex.iter().all(u8::is_ascii_hexdigit);
    digits.then(|| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok())?
}

/// Unreserved characters (RFC 3986 §2.3).
const UNRESERVED: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
/// Reserved characters (RFC 3986 §2.2): gen-delims and sub-delims.
const RESERVED: &[u8] = b":/?#[]@!$&'()*+,;=";
