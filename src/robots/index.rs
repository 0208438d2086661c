//! The patterns of a file, laid out so that a decision looks at the few that can match and not at
//! all of them.
//!
//! Never allocates once built. Entries stand by table, one for each list of groups that some agent
//! is given: first those without wildcards, in byte order of their literals, then those with, best
//! first, or by a pair of bytes that a path must have where they are many ([`Buckets`]).
//!
//! The parent of an entry without wildcards is the prefix pattern with the longest literal that its
//! own begins with. Ranks rise from parent to child: what could never beat its parent is left out
//! when the table is laid out. So the first prefix on the way up is the best one.

use super::{
    entry::{Entry, Offset},
    search::Search,
};

/// All tables of a file.
#[derive(Debug)]
pub(super) struct Index<W> {
    pub(super) entries: Box<[Entry<W>]>,
    pub(super) tables: Box<[Table<W>]>,
    /// Few files have any.
    pub(super) buckets: Option<Box<Buckets<W>>>,
}

/// Where the entries of one table stand; they begin where the table before ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<W> {
    /// Where those with wildcards begin.
    pub(super) wilds: W,
    pub(super) end: W,
}

/// Many wildcard patterns, sorted by a pair of neighbouring bytes that each asks for, so that a decision looks only at those
/// whose pair the path has. These are the buckets of all tables that have any.
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

// === impl Index ===

impl<W: Offset> Index<W> {
    /// Looks through one table for what beats the best that `search` has found so far.
    pub(super) fn search(&self, table: usize, search: &mut Search<'_>) {
        let (literals, wilds) = self.entries_of(table);
        search.literals(literals);
        if wilds.is_empty() {
            return;
        }
        match self.buckets.as_ref().and_then(|buckets| buckets.of_table(table)) {
            None => search.wilds(wilds),
            Some(buckets) => search.buckets(wilds, buckets),
        }
    }

    /// The entries of one table: those without wildcards and those with.
    pub(super) fn entries_of(&self, table: usize) -> (&[Entry<W>], &[Entry<W>]) {
        let start = match table {
            0 => 0,
            _ => self.tables[table - 1].end.at(),
        };
        let Table { wilds, end } = self.tables[table];
        let entries = &self.entries[start..end.at()];
        entries.split_at(wilds.at() - start)
    }

    /// Bytes of memory behind it.
    pub(super) fn weight(&self) -> usize {
        let buckets = self.buckets.as_ref().map_or(0, |buckets| buckets.weight());
        size_of_val(&*self.entries) + size_of_val(&*self.tables) + buckets
    }
}

impl Index<u32> {
    /// The same with its offsets in two bytes, if they fit.
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

// === impl Table ===

impl Table<u32> {
    fn narrow(self) -> Option<Table<u16>> {
        Some(Table {
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
