//! The compiled form of a pattern (RFC 9309 §2.2.2 and §2.2.3): its position in the file, its literal part (before any
//! wildcard), and its precedence.
//!
//! Nothing here allocates. A proxy keeps many thousands of entries, so an entry takes only ten bytes, unless its file
//! is larger than some 64 KiB.

use memchr::{memchr, memrchr};

use super::{RuleId, RuleKind, head::Head};

/// A pattern and its rule. `W` is the integer type for offsets and line numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternEntry<W> {
    /// Offset of the normalized pattern in the text that contains it: `RobotsTxt::text` or `UsageLines::patterns`.
    start: W,
    line: W,
    /// Length of the literal: the part of the pattern before any wildcard, with which a path must begin.
    literal: u16,
    /// Length of the normalized pattern, including wildcards.
    length: u16,
    /// The highest three bits are the rule's kind and the pattern's [`Shape`]. The others are the result of
    /// [`needs`](Self::needs) for a pattern with wildcards, or else the distance to its [`parent`](Self::parent).
    link: u16,
}

/// How a pattern matches. A `*` or `*$` at its end only adds to its length.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Shape {
    /// Has no `*` and does not end in `$`: matches every path that begins with the pattern.
    Prefix,
    /// Has no `*` and ends in `$`: matches only the path that equals the pattern before the `$`.
    Exact,
    /// Contains a `*` and does not end in `$`.
    Wild,
    /// Contains a `*` and ends in `$`: the path must end as the pattern does.
    WildToEnd,
}

/// The precedence of a matching rule: the longer pattern wins, then `Allow`, then the first in the file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rank(u64);

pub(super) trait Offset: Copy + Into<u32> {
    fn at(self) -> usize {
        let wide: u32 = self.into();
        wide as usize
    }
}

// === impl PatternEntry ===

impl PatternEntry<u32> {
    pub(super) fn new(text: &[u8], start: usize, length: usize, line: u32, kind: RuleKind) -> Self {
        let pattern = &text[start..start + length];
        let (body, dollar) = match pattern {
            [body @ .., b'$'] => (body, true),
            _ => (pattern, false),
        };
        let stars = body.iter().rev().take_while(|byte| **byte == b'*').count();
        // A pattern need not match the whole path, so each `*` at its end is dropped. In `/a*$`, the `*` makes the `$`
        // meaningless.
        let to_end = dollar && stars == 0;
        Self::of_body(start, &body[..body.len() - stars], to_end, length, line, kind)
    }

    /// Compiles the pattern of the directory that an `Allow` for an index page also allows (see [`index_directory`]).
    /// Returns `None` for other patterns.
    pub(super) fn directory(text: &[u8], start: usize, length: usize, line: u32) -> Option<Self> {
        let body = &text[start..start + index_directory(&text[start..start + length])?];
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

    /// Records the number of entries from the parent (see [`super::index`]) to this entry, at most [`DISTANCE`]. If the
    /// parent is farther away, a search first goes to the entry at that distance, and from there to the parent.
    pub(super) fn linked(self, distance: usize) -> Self {
        let distance = u16::try_from(distance).map_or(DISTANCE, |distance| distance.min(DISTANCE));
        Self {
            link: self.link & !DISTANCE | distance,
            ..self
        }
    }

    pub(super) fn with_needs(self, needs: u16) -> Self {
        Self {
            link: self.link & !DISTANCE | needs & DISTANCE,
            ..self
        }
    }

    pub(super) fn narrow(self) -> Option<PatternEntry<u16>> {
        Some(PatternEntry {
            start: self.start.try_into().ok()?,
            line: self.line.try_into().ok()?,
            literal: self.literal,
            length: self.length,
            link: self.link,
        })
    }
}

impl<W: Offset> PatternEntry<W> {
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

    /// Returns the number of entries from the parent (see [`super::index`]) to this entry, at most [`DISTANCE`]. `None`
    /// if there is no parent.
    pub(super) fn parent(&self) -> Option<usize> {
        match self.link & DISTANCE {
            0 => None,
            distance => Some(distance.into()),
        }
    }

    pub(super) fn rank(&self) -> Rank {
        Rank::new(self.length, self.link & ALLOW != 0, self.line.into())
    }

    pub(super) fn rule(&self) -> RuleId {
        RuleId {
            line: self.line.into(),
            start: self.start.into(),
        }
    }

    pub(super) fn length(&self) -> u16 {
        self.length
    }

    pub(super) fn literal_len(&self) -> usize {
        self.literal.into()
    }

    pub(super) fn literal<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = self.start.at();
        &text[start..start + self.literal_len()]
    }

    /// Returns whether the literal sorts before `path` or equals it. `head`, the first bytes of `path`, decides nearly
    /// all cases.
    pub(super) fn is_up_to(&self, text: &[u8], path: &[u8], head: Head) -> bool {
        let start = self.start.at();
        let length = self.literal_len();
        let (this, other) = (Head::at(text, start).first(length), head.first(length));
        if this != other {
            return this < other;
        }
        length <= Head::BYTES || self.literal(text) <= path
    }

    /// Returns whether `path`, whose first bytes are `head`, begins with the literal.
    pub(super) fn begins(&self, text: &[u8], path: &[u8], head: Head) -> bool {
        let length = self.literal_len();
        Head::at(text, self.start.at()).first(length) == head.first(length)
            && (length <= Head::BYTES || path.starts_with(self.literal(text)))
    }

    /// Returns which bytes a path must contain to match this pattern with wildcards: classes
    /// ([`super::prefilter::Classes`]) or, in a table with many such patterns, a pair
    /// ([`super::prefilter::PairFilter`]).
    pub(super) fn needs(&self) -> u16 {
        self.link & DISTANCE
    }

    /// Returns the part of [`body`](Self::body) from the first `*` on.
    pub(super) fn tail<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &self.body(text)[self.literal_len()..]
    }

    /// Returns the pattern without a `$`, `*` or `*$` (or several `*`) at its end.
    pub(super) fn body<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = self.start.at();
        match self.shape() {
            Shape::Prefix | Shape::Exact => &text[start..start + self.literal_len()],
            // The last byte is the `$`. For the directory of an index page, it is the `i` of `index.htm`.
            Shape::WildToEnd => &text[start..start + usize::from(self.length) - 1],
            Shape::Wild => {
                let pattern = &text[start..start + usize::from(self.length)];
                let body = pattern.strip_suffix(b"$").unwrap_or(pattern);
                let stars = body.iter().rev().take_while(|byte| **byte == b'*').count();
                &body[..body.len() - stars]
            }
        }
    }

    /// Returns whether any path can match the pattern. Paths begin with `/`, so none matches `foo` or `$`.
    pub(super) fn is_live(&self, text: &[u8]) -> bool {
        match self.literal(text) {
            [] => self.shape() != Shape::Exact,
            [first, ..] => *first == b'/',
        }
    }
}

// === impl Rank ===
impl Rank {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn new(length: u16, allow: bool, line: u32) -> Self {
        let allow = if allow { RANK_ALLOW } else { 0 };
        Self(u64::from(length) << RANK_LENGTH | allow | u64::from(!line))
    }

    /// Returns whether a rule of this rank allows the path. A `Disallow` without a pattern (length 0) forbids nothing.
    pub(super) fn allows(self) -> bool {
        self.0 & RANK_ALLOW != 0 || self.0 >> RANK_LENGTH == 0
    }
}

// === impl Offset ===

impl Offset for u16 {}
impl Offset for u32 {}

#[expect(
    clippy::cast_possible_truncation,
    reason = "MAX_BODY bounds every offset and count below 2^32"
)]
pub(super) fn offset(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok());
    n as u32
}

/// Returns where the directory ends in the pattern of an index page, or `None` for other patterns. In Google's parser,
/// an `Allow` for `/dir/index.html` (or another name that begins with `index.htm`) also allows `/dir/` itself.
pub(super) fn index_directory(pattern: &[u8]) -> Option<usize> {
    let slash = memrchr(b'/', pattern)?;
    pattern[slash..].starts_with(b"/index.htm").then_some(slash + 1)
}

/// Returns whether `pattern` is not empty and some path can match it. Paths begin with a slash.
pub(super) fn can_match(pattern: &[u8]) -> bool {
    matches!(pattern, [b'/' | b'*', ..])
}

fn short(length: usize) -> u16 {
    debug_assert!(length <= super::line::MAX_LINE * 3);
    // The length fits into 16 bits: MAX_LINE limits the pattern, and escaping turns one byte into three at most.
    u16::try_from(length).unwrap_or(u16::MAX)
}

const _: () = assert!(super::line::MAX_LINE * 3 <= u16::MAX as usize);

const RANK_ALLOW: u64 = 1 << 32;
const RANK_LENGTH: u32 = 33;
const ALLOW: u16 = 1 << 15;
const SHAPE: u32 = 13;
const DISTANCE: u16 = (1 << SHAPE) - 1;
