//! One rule's pattern, compiled: what of it is literal, and how the rest is matched
//! (RFC 9309 §2.2.2 and §2.2.3).
//!
//! Never allocates, and takes at most time proportional to path and pattern together: `*` is the
//! only wildcard, so the leftmost place of each piece is always good enough and nothing is retried.

use memchr::{memchr, memmem, memrchr};

use super::{
    rule::{RuleId, RuleKind},
    span::{Span, offset},
};

/// A pattern and the rule it stands for. An allow that ends in `/index.htm…` has two of them.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The pattern without its final `$` and without `*` at its end: neither is ever matched as a
    /// byte. ASCII.
    body: Span,
    shape: Shape,
    pub(super) kind: RuleKind,
    pub(super) rule: RuleId,
    /// The length of the pattern as escaped, in bytes. The longest pattern that matches decides;
    /// one of length 0 (an empty rule) matches everything and forbids nothing.
    pub(super) length: u32,
}

/// How a pattern is matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// A path that begins with the body.
    Prefix,
    /// The body and nothing else.
    Exact,
    /// There is a `*` within; the path begins with the first `literal` bytes of the body.
    Wild { literal: u32, anchored: bool },
}

// === impl Pattern ===

impl Pattern {
    /// Compiles the escaped pattern at `written`.
    pub(super) fn new(text: &str, written: Span, kind: RuleKind, rule: RuleId) -> Self {
        let bytes = written.bytes(text);
        let (body, anchored) = match bytes {
            [body @ .., b'$'] => (body.len(), !body.ends_with(b"*")),
            _ => (bytes.len(), false),
        };
        let length = written.len();
        Self::compile(text, written.head(body), anchored, length, kind, rule)
    }

    /// Google's index rule: an allow of `/dir/index.html` (anything from `/index.htm` on, in the
    /// last segment) also stands for `/dir/$`. The pattern itself is longer, so where both match
    /// this one changes nothing.
    pub(super) fn directory(text: &str, written: Span, rule: RuleId) -> Option<Self> {
        let bytes = written.bytes(text);
        let slash = memrchr(b'/', bytes)?;
        if !bytes[slash..].starts_with(b"/index.htm") {
            return None;
        }
        let body = written.head(slash + 1);
        let length = body.len() + 1;
        Some(Self::compile(text, body, true, length, RuleKind::Allow, rule))
    }

    /// The bytes that a path must begin with.
    pub(super) fn literal<'t>(&self, text: &'t str) -> &'t [u8] {
        self.literal_span().bytes(text)
    }

    pub(super) fn literal_span(&self) -> Span {
        match self.shape {
            Shape::Prefix | Shape::Exact => self.body,
            Shape::Wild { literal, .. } => self.body.head(literal as usize),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// What follows the literal, from its first `*` on.
    pub(super) fn tail<'t>(&self, text: &'t str) -> &'t [u8] {
        &self.body.bytes(text)[self.literal_span().len()..]
    }

    /// Whether `path`, which begins with the literal, matches.
    pub(super) fn matches_tail(&self, text: &str, path: &[u8]) -> bool {
        let mut rest = &path[self.literal_span().len()..];
        let Shape::Wild { anchored, .. } = self.shape else {
            return self.shape == Shape::Prefix || rest.is_empty();
        };
        let mut tail = self.tail(text);
        // The first `*` of the tail is at its very start.
        let mut star = Some(0);
        while let Some(at) = star {
            let Some(end) = find_end(rest, &tail[..at]) else {
                return false;
            };
            rest = &rest[end..];
            tail = &tail[at + 1..];
            star = memchr(b'*', tail);
        }
        if anchored {
            rest.ends_with(tail)
        } else {
            find_end(rest, tail).is_some()
        }
    }

    /// Whether the pattern can match any path at all; `Disallow: foo` and `Disallow: $` cannot.
    pub(super) fn is_live(&self, text: &str) -> bool {
        match self.body.bytes(text) {
            [] => self.shape == Shape::Prefix,
            [first, ..] => matches!(first, b'/' | b'*'),
        }
    }

    /// Whether the pattern matches every path, as `/`, `*` and `/*$` do. What is not anchored and
    /// matches the shortest path matches every longer one, since all begin with it.
    pub(super) fn is_universal(&self, text: &str) -> bool {
        let anchored = match self.shape {
            Shape::Prefix => false,
            Shape::Exact => true,
            Shape::Wild { anchored, .. } => anchored,
        };
        !anchored && b"/".starts_with(self.literal(text)) && self.matches_tail(text, b"/")
    }

    /// Whether a path that this pattern decides may be fetched.
    pub(super) fn allows(&self) -> bool {
        self.kind == RuleKind::Allow || self.length == 0
    }

    fn compile(text: &str, body: Span, anchored: bool, length: usize, kind: RuleKind, rule: RuleId) -> Self {
        let bytes = body.bytes(text);
        let stars = bytes.iter().rev().take_while(|b| **b == b'*').count();
        // A `*` at the end adds nothing to a prefix; before a `$` it takes the anchor away.
        debug_assert!(stars == 0 || !anchored);
        let body = body.head(bytes.len() - stars);
        let shape = match memchr(b'*', body.bytes(text)) {
            Some(literal) => Shape::Wild {
                literal: offset(literal),
                anchored,
            },
            None if anchored => Shape::Exact,
            None => Shape::Prefix,
        };
        Self {
            body,
            shape,
            kind,
            rule,
            length: offset(length),
        }
    }
}

/// Where the leftmost `piece` in `path` ends.
fn find_end(path: &[u8], piece: &[u8]) -> Option<usize> {
    match piece {
        [] => Some(0),
        [byte] => memchr(*byte, path).map(|at| at + 1),
        _ => memmem::find(path, piece).map(|at| at + piece.len()),
    }
}
