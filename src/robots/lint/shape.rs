//! What a pattern matches, in a form in which two patterns can be compared: equal forms match the
//! same paths.
//!
//! Never matches a path: that is the engine's, and the tests hold the two together.

use std::{borrow::Cow, cmp::Ordering};

use super::super::RuleKind;

/// A pattern as escaped, without what makes no difference to the paths that it matches.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Shape<'a> {
    /// Without the `$` and without `*` at the end; of several `*` in a row, one.
    body: Cow<'a, str>,
    /// How much of the body comes before its first `*`.
    literal: usize,
    anchored: bool,
}

/// What decides between two patterns that match: the greater one wins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Rank {
    /// The pattern's length as escaped, in bytes.
    pub(super) length: usize,
    pub(super) kind: RuleKind,
    /// The rule's place in the file: of equals, the first wins.
    pub(super) place: usize,
}

// === impl Shape ===

impl<'a> Shape<'a> {
    /// `None` where no path matches.
    pub(super) fn new(pattern: &'a str) -> Option<Self> {
        let (body, anchored) = match pattern.strip_suffix('$') {
            // A `*` takes the anchor away.
            Some(body) => (body, !body.ends_with('*')),
            None => (pattern, false),
        };
        Self::compile(body.trim_end_matches('*'), anchored)
    }

    /// What an allow of an index page stands for as well, and its length: the page's directory.
    pub(super) fn directory(pattern: &'a str) -> Option<(Self, usize)> {
        let slash = pattern.rfind('/')?;
        if !pattern[slash..].starts_with("/index.htm") {
            return None;
        }
        let body = &pattern[..=slash];
        Some((Self::compile(body, true)?, body.len() + 1))
    }

    /// Whether every path that begins with the body matches, and no other.
    pub(super) fn is_prefix(&self) -> bool {
        self.literal == self.body.len() && !self.anchored
    }

    /// Whether there is a `*` in the middle.
    pub(super) fn is_wild(&self) -> bool {
        self.literal < self.body.len()
    }

    /// Whether every path matches.
    pub(super) fn is_universal(&self) -> bool {
        self.is_prefix() && self.body == "/"
    }

    /// Whether it is `path`, to the end or as a start.
    pub(super) fn is_for(&self, path: &str) -> bool {
        !self.is_wild() && *self.body == *path
    }

    /// What a path must begin with.
    pub(super) fn literal(&self) -> &str {
        &self.body[..self.literal]
    }

    /// By literal, so that all that begin with one follow it; equal shapes next to each other.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let rest = |shape: &'_ Self| (shape.literal, shape.anchored);
        self.literal()
            .cmp(other.literal())
            .then_with(|| rest(self).cmp(&rest(other)))
            .then_with(|| self.body.cmp(&other.body))
    }

    fn compile(body: &'a str, anchored: bool) -> Option<Self> {
        let mut body = Cow::Borrowed(body);
        if body.contains("**") {
            let mut single = body.into_owned();
            let mut last = ' ';
            single.retain(|char| std::mem::replace(&mut last, char) != '*' || char != '*');
            body = Cow::Owned(single);
        }
        match body.as_bytes() {
            // All paths begin with the slash, so what comes after a `*` comes after the slash, unless it can
            // be the slash itself.
            [b'*', next, ..] if *next != b'/' => body.to_mut().insert(0, '/'),
            [] if !anchored => body = Cow::Borrowed("/"),
            [b'/' | b'*', ..] => {}
            _ => return None,
        }
        Some(Self {
            literal: body.find('*').unwrap_or(body.len()),
            body,
            anchored,
        })
    }
}

// === impl Rank ===

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |rank: &Self| (rank.length, rank.kind == RuleKind::Allow);
        key(self).cmp(&key(other)).then_with(|| other.place.cmp(&self.place))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(pattern: &str) -> Option<(String, bool)> {
        Shape::new(pattern).map(|shape| (shape.body.into_owned(), shape.anchored))
    }

    #[test]
    fn what_makes_no_difference_is_gone() {
        for (pattern, body, anchored) in [
            ("/", "/", false),
            ("*", "/", false),
            ("/*", "/", false),
            ("*$", "/", false),
            ("/a**", "/a", false),
            ("/a*$", "/a", false),
            ("/a$", "/a", true),
            ("/a$$", "/a$", true),
            ("/a$*", "/a$", false),
            ("*.pdf$", "/*.pdf", true),
            ("**/a***b", "*/a*b", false),
        ] {
            assert_eq!(shape(pattern), Some((body.to_owned(), anchored)), "{pattern}");
        }
        for pattern in ["$", "a", "$/", "?", "a*"] {
            assert_eq!(shape(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn the_longest_wins_then_an_allow_then_the_first() {
        let rank = |length, kind, place| Rank { length, kind, place };
        let ranks = [
            rank(2, RuleKind::Disallow, 9),
            rank(1, RuleKind::Allow, 7),
            rank(1, RuleKind::Allow, 8),
            rank(1, RuleKind::Disallow, 0),
        ];
        assert!(ranks.is_sorted_by(|a, b| a > b));
    }
}
