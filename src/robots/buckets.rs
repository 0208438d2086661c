//! Many wildcard patterns, sorted by a pair of neighbouring bytes that each asks for, so that a
//! decision looks only at those whose pair the path has.
//!
//! Never tells whether a pattern matches.

use super::width::Width;

/// The buckets of all tables that have any.
#[derive(Debug)]
pub(super) struct Buckets<W> {
    /// In order of their tables.
    pub(super) ranges: Box<[Range<W>]>,
    pub(super) buckets: Box<[Bucket<W>]>,
}

/// Where the buckets of one table stand; they begin where those of the range before end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range<W> {
    pub(super) table: W,
    pub(super) end: W,
}

/// The patterns that share a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<W> {
    pub(super) pair: Pair,
    /// Where its entries end among those of its table that have wildcards; they begin where those
    /// of the bucket before end.
    pub(super) end: W,
}

/// Two neighbouring bytes. No pattern has a NUL, so that the pair of two stands for none.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Pair(pub(super) [u8; 2]);

// === impl Buckets ===

impl<W: Width> Buckets<W> {
    pub(super) fn of_table(&self, table: usize) -> Option<&[Bucket<W>]> {
        let range = self
            .ranges
            .binary_search_by_key(&table, |range| range.table.at())
            .ok()?;
        let start = match range {
            0 => 0,
            _ => self.ranges[range - 1].end.at(),
        };
        Some(&self.buckets[start..self.ranges[range].end.at()])
    }

    /// Bytes of memory behind them.
    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ranges) + size_of_val(&*self.buckets)
    }
}

impl Buckets<u32> {
    /// The same with its offsets in two bytes, if they fit.
    pub(super) fn narrow(&self) -> Option<Buckets<u16>> {
        let range = |range: &Range<u32>| {
            Some(Range {
                table: range.table.try_into().ok()?,
                end: range.end.try_into().ok()?,
            })
        };
        let bucket = |bucket: &Bucket<u32>| {
            Some(Bucket {
                pair: bucket.pair,
                end: bucket.end.try_into().ok()?,
            })
        };
        Some(Buckets {
            ranges: self.ranges.iter().map(range).collect::<Option<_>>()?,
            buckets: self.buckets.iter().map(bucket).collect::<Option<_>>()?,
        })
    }
}

// === impl Pair ===

impl Pair {
    /// Of patterns that have no two bytes side by side.
    pub(super) const NONE: Self = Self([0, 0]);

    /// All pairs of `bytes`, but for those with a `*`.
    pub(super) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes
            .array_windows()
            .filter(|pair: &&[u8; 2]| !pair.contains(&b'*'))
            .map(|pair| Self(*pair))
    }
}
