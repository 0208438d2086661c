//! Compares one pattern with one path, and says how far they go together (RFC 9309 §2.2.2 and
//! §2.2.3).
//!
//! Never goes back: the leftmost place for what follows a `*` is always good enough, so the time
//! is in proportion to pattern and path.

use memchr::memmem;

use crate::robots::line::common_prefix;

/// How a pattern and a path go together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fit {
    /// The pattern matches.
    Whole,
    /// Only so many bytes of the pattern do, from its first one on.
    Part(usize),
    /// The pattern matches no path.
    Never,
}

/// Both in the spelling in which they are compared; `path` begins with `/`.
pub(super) fn fit(pattern: &str, path: &[u8]) -> Fit {
    if !matches!(pattern.as_bytes(), [] | [b'/' | b'*', ..]) {
        return Fit::Never;
    }
    let (body, anchored) = match pattern.strip_suffix('$') {
        Some(body) => (body, true),
        None => (pattern, false),
    };
    let mut pieces = body.split('*').peekable();
    // What stands before the first `*`, where a path must begin with it.
    let head = pieces.next().unwrap_or_default();
    let mut fitting = common_prefix(head.as_bytes(), path);
    if fitting < head.len() {
        return Fit::Part(fitting);
    }
    let mut rest = &path[fitting..];
    if anchored && pieces.peek().is_none() && !rest.is_empty() {
        return Fit::Part(fitting);
    }
    while let Some(piece) = pieces.next() {
        fitting += 1;
        if anchored && pieces.peek().is_none() && rest.ends_with(piece.as_bytes()) {
            return Fit::Whole;
        }
        let Some(at) = memmem::find(rest, piece.as_bytes()) else {
            return Fit::Part(fitting);
        };
        fitting += piece.len();
        if anchored && pieces.peek().is_none() {
            return Fit::Part(fitting);
        }
        rest = &rest[at + piece.len()..];
    }
    Fit::Whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_as_far_as_it_fits() {
        use Fit::{Never, Part, Whole};
        for (pattern, path, expected) in [
            ("", "/", Whole),
            ("/", "/", Whole),
            ("/a", "/ab", Whole),
            ("/ab", "/a", Part(2)),
            ("/ab", "/ac", Part(2)),
            ("/a$", "/a", Whole),
            ("/a$", "/ab", Part(2)),
            ("/a$b", "/a$bc", Whole),
            ("*", "/", Whole),
            ("/*", "/", Whole),
            ("/**$", "/x", Whole),
            ("/a*c", "/abc", Whole),
            ("/a*d", "/abc", Part(3)),
            ("/a*c*e", "/abcd", Part(5)),
            ("/a*c$", "/abcc", Whole),
            ("/a*c$", "/abcd", Part(4)),
            ("/a*c$", "/abd", Part(3)),
            ("*.gif$", "/a.gif", Whole),
            ("*.gif$", "/a.gif?x", Part(5)),
            // Greedy and leftmost is enough: the second piece must not reuse the first one's bytes.
            ("/*aa*aa", "/xaaa", Part(5)),
            ("/*aa*aa", "/xaaaa", Whole),
            ("a", "/a", Never),
            ("$", "/", Never),
        ] {
            assert_eq!(fit(pattern, path.as_bytes()), expected, "{pattern} on {path}");
        }
    }
}
