//! The patterns of a file, arranged so that a decision has to match only a few of them with the path.
//!
//! A table holds the patterns of one group, or of several groups that apply to the same agent ([`super::ruleset`]). Its
//! patterns without wildcards come first, sorted as bytes. Those with wildcards follow, highest precedence first or, if
//! they are many, in [`Buckets`].
//!
//! A pattern without wildcards can have a parent: the longest other pattern that it begins with, such as `/a` for
//! `/a/b`. Patterns that could never win against their parent are left out. So a search goes from a pattern to its
//! parent and so on, and the first that matches wins.

use super::{
    entry::{Offset, PatternEntry},
    prefilter::Pair,
};

#[derive(Debug)]
pub(super) struct Index<W> {
    pub(super) entries: Box<[PatternEntry<W>]>,
    pub(super) tables: Box<[PatternRange<W>]>,
    /// For tables with many wildcard patterns. `None` if the file has no such table, as is usual.
    pub(super) buckets: Option<Box<Buckets<W>>>,
}

/// Where the patterns of one table are in [`Index::entries`]. They begin where those of the previous table end.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternRange<W> {
    /// Where the patterns with wildcards begin.
    pub(super) wilds: W,
    pub(super) end: W,
}

/// The wildcard patterns of tables that have many of them, grouped by a pair of neighbouring bytes that they contain. A
/// decision skips most buckets whose pair is not in the path.
#[derive(Debug)]
pub(super) struct Buckets<W> {
    /// In the order of the tables.
    pub(super) ranges: Box<[BucketRange<W>]>,
    pub(super) buckets: Box<[Bucket<W>]>,
}

/// Where the buckets of one table are in [`Buckets::buckets`]. They begin where those of the previous table end.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketRange<W> {
    pub(super) table: W,
    pub(super) end: W,
}

/// Patterns of one table that contain the same pair of bytes, or that contain no pair ([`Pair::NONE`]). Each pattern is
/// in only one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<W> {
    pub(super) pair: Pair,
    /// Where the bucket ends, counted from the table's first pattern with wildcards. It begins where the previous one
    /// ends.
    pub(super) end: W,
}

// === impl Index ===

impl<W: Offset> Index<W> {
    /// Returns the patterns of one table: those without wildcards, and those with wildcards.
    pub(super) fn entries_of(&self, table: usize) -> (&[PatternEntry<W>], &[PatternEntry<W>]) {
        let start = match table {
            0 => 0,
            _ => self.tables[table - 1].end.at(),
        };
        let PatternRange { wilds, end } = self.tables[table];
        let entries = &self.entries[start..end.at()];
        entries.split_at(wilds.at() - start)
    }

    pub(super) fn weight(&self) -> usize {
        let buckets = self.buckets.as_ref().map_or(0, |buckets| buckets.weight());
        size_of_val(&*self.entries) + size_of_val(&*self.tables) + buckets
    }
}

impl Index<u32> {
    pub(super) fn narrow(&self) -> Option<Index<u16>> {
        Some(Index {
            entries: self.entries.iter().map(|entry| entry.narrow()).collect::<Option<_>>()?,
            tables: self.tables.iter().map(|table| table.narrow()).collect::<Option<_>>()?,
            buckets: match &self.buckets {
                Some(buckets) => Some(Box::new(buckets.narrow()?)),
                None => None,
            },
        })
    }
}

// === impl PatternRange ===

impl PatternRange<u32> {
    fn narrow(self) -> Option<PatternRange<u16>> {
        Some(PatternRange {
            wilds: self.wilds.try_into().ok()?,
            end: self.end.try_into().ok()?,
        })
    }
}

// === impl Buckets ===

impl<W: Offset> Buckets<W> {
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

    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ranges) + size_of_val(&*self.buckets)
    }
}

impl Buckets<u32> {
    pub(super) fn narrow(&self) -> Option<Buckets<u16>> {
        let range = |range: &BucketRange<u32>| {
            Some(BucketRange {
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
