//! One rule's pattern in its compiled form (RFC 9309 §2.2.2 and §2.2.3): where it stands in the
//! file, what of it is literal, what it weighs against others.
//!
//! Never holds text and never allocates: an entry is ten bytes in all but very large files, since
//! a proxy keeps many thousands of them.

use memchr::{memchr, memrchr};

use super::{
    head::Head,
    rank::Rank,
    rule::{RuleId, RuleKind},
    width::{Width, offset},
};

/// A pattern and the rule that it stands for; `W` is what offsets into the file's text take. An
/// allow that ends in `/index.htm…` has two of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<W> {
    /// Where the pattern, as it is compared, begins in the text.
    start: W,
    line: W,
    /// How many of its first bytes a path must begin with.
    literal: u16,
    /// The length of the pattern as compared, its wildcards included.
    length: u16,
    /// Kind and shape in the upper bits; below them, in a table, how far back the parent is, or with
    /// wildcards what a path must have.
    link: u16,
}

/// How a pattern is matched.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Shape {
    /// A path that begins with the literal.
    Prefix,
    /// The literal and nothing else.
    Exact,
    /// There is a `*` within: the tail begins with it.
    Wild,
    /// There is, and a `$` holds the last piece to the end of the path.
    WildToEnd,
}

// === impl Entry ===

impl Entry<u32> {
    /// Compiles the pattern at `start` in `text`, `length` bytes long.
    pub(super) fn new(text: &[u8], start: usize, length: usize, line: u32, kind: RuleKind) -> Self {
        let pattern = &text[start..start + length];
        let (body, dollar) = match pattern {
            [body @ .., b'$'] => (body, true),
            _ => (pattern, false),
        };
        let stars = body.iter().rev().take_while(|byte| **byte == b'*').count();
        // A `*` at the end adds nothing to a prefix; before a `$` it takes the anchor away.
        let to_end = dollar && stars == 0;
        Self::of_body(start, &body[..body.len() - stars], to_end, length, line, kind)
    }

    /// Google's index rule: an allow of `/dir/index.html` (anything from `/index.htm` on, in the
    /// last segment) also stands for `/dir/$`. The pattern itself is longer, so where both match
    /// this one changes nothing.
    pub(super) fn directory(text: &[u8], start: usize, length: usize, line: u32) -> Option<Self> {
        let pattern = &text[start..start + length];
        let slash = memrchr(b'/', pattern)?;
        if !pattern[slash..].starts_with(b"/index.htm") {
            return None;
        }
        let body = &pattern[..=slash];
        Some(Self::of_body(start, body, true, body.len() + 1, line, RuleKind::Allow))
    }

    fn of_body(start: usize, body: &[u8], to_end: bool, length: usize, line: u32, kind: RuleKind) -> Self {
        let (literal, shape) = match (memchr(b'*', body), to_end) {
            (Some(star), true) => (star, Shape::WildToEnd),
            (Some(star), false) => (star, Shape::Wild),
            (None, true) => (body.len(), Shape::Exact),
            (None, false) => (body.len(), Shape::Prefix),
        };
        let kind = match kind {
            RuleKind::Allow => ALLOW,
            RuleKind::Disallow => 0,
        };
        Self {
            start: offset(start),
            line,
            literal: short(literal),
            length: short(length),
            link: kind | (shape as u16) << SHAPE,
        }
    }

    /// Names `parent` as the entry `distance` before this one.
    pub(super) fn linked(self, distance: usize) -> Self {
        let distance = u16::try_from(distance).map_or(DISTANCE, |distance| distance.min(DISTANCE));
        Self {
            link: self.link & !DISTANCE | distance,
            ..self
        }
    }

    /// Notes what a path must have if the pattern is to match; of one with wildcards.
    pub(super) fn with_needs(self, needs: u16) -> Self {
        Self {
            link: self.link & !DISTANCE | needs & DISTANCE,
            ..self
        }
    }

    /// The same with its offsets in two bytes, if they fit.
    pub(super) fn narrow(self) -> Option<Entry<u16>> {
        Some(Entry {
            start: self.start.try_into().ok()?,
            line: self.line.try_into().ok()?,
            literal: self.literal,
            length: self.length,
            link: self.link,
        })
    }
}

impl<W: Width> Entry<W> {
    pub(super) fn shape(&self) -> Shape {
        match (self.link >> SHAPE) & 3 {
            0 => Shape::Prefix,
            1 => Shape::Exact,
            2 => Shape::Wild,
            _ => Shape::WildToEnd,
        }
    }

    pub(super) fn is_wild(&self) -> bool {
        self.shape() >= Shape::Wild
    }

    /// How far before this entry the next one is whose literal may begin this one's; see
    /// [`super::index`].
    pub(super) fn parent(&self) -> Option<usize> {
        match self.link & DISTANCE {
            0 => None,
            distance => Some(distance.into()),
        }
    }

    /// What the pattern weighs against others that match.
    pub(super) fn rank(&self) -> Rank {
        Rank::new(self.length, self.link & ALLOW != 0, self.line.into())
    }

    pub(super) fn rule(&self) -> RuleId {
        RuleId {
            line: self.line.into(),
            start: self.start.into(),
        }
    }

    pub(super) fn literal_len(&self) -> usize {
        self.literal.into()
    }

    /// The bytes that a path must begin with.
    pub(super) fn literal<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = self.start.at();
        &text[start..start + self.literal_len()]
    }

    /// Whether the literal is not after `path` in byte order. `head` is the path's; comparing the
    /// first bytes as one number settles nearly all.
    pub(super) fn is_up_to(&self, text: &[u8], path: &[u8], head: Head) -> bool {
        let start = self.start.at();
        let length = self.literal_len();
        let (own, other) = (Head::at(text, start).first(length), head.first(length));
        if own != other {
            return own < other;
        }
        length <= Head::BYTES || self.literal(text) <= path
    }

    /// Whether `path`, whose head is `head`, begins with the literal.
    pub(super) fn begins(&self, text: &[u8], path: &[u8], head: Head) -> bool {
        let length = self.literal_len();
        Head::at(text, self.start.at()).first(length) == head.first(length)
            && (length <= Head::BYTES || path.starts_with(self.literal(text)))
    }

    /// What a path must have if the pattern, which has wildcards, is to match: of few patterns
    /// [`super::classes`] says it, of many [`super::sieve`].
    pub(super) fn needs(&self) -> u16 {
        self.link & DISTANCE
    }

    /// What follows the literal and has to be matched, from its first `*` on.
    pub(super) fn tail<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &self.body(text)[self.literal_len()..]
    }

    /// The pattern without a final `$` that is an anchor, and without `*` at its end.
    pub(super) fn body<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = self.start.at();
        match self.shape() {
            Shape::Prefix | Shape::Exact => &text[start..start + self.literal_len()],
            // Its last byte counts as a `$`, which in the text of an index rule it is not.
            Shape::WildToEnd => &text[start..start + usize::from(self.length) - 1],
            Shape::Wild => {
                let pattern = &text[start..start + usize::from(self.length)];
                let body = pattern.strip_suffix(b"$").unwrap_or(pattern);
                let stars = body.iter().rev().take_while(|byte| **byte == b'*').count();
                &body[..body.len() - stars]
            }
        }
    }

    /// Whether the pattern can match any path at all; `Disallow: foo` and `Disallow: $` cannot.
    pub(super) fn is_live(&self, text: &[u8]) -> bool {
        match self.literal(text) {
            [] => self.shape() != Shape::Exact,
            [first, ..] => *first == b'/',
        }
    }
}

fn short(length: usize) -> u16 {
    debug_assert!(length <= super::line::MAX_LINE * 3);
    // MAX_LINE bounds a pattern, and escaping makes at most three bytes of one.
    u16::try_from(length).unwrap_or(u16::MAX)
}

const _: () = assert!(super::line::MAX_LINE * 3 <= u16::MAX as usize);

const ALLOW: u16 = 1 << 15;
const SHAPE: u32 = 13;
const DISTANCE: u16 = (1 << SHAPE) - 1;
