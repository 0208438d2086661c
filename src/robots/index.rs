//! The patterns of a file, laid out so that a decision inspects only the few that can match.
//!
//! Never allocates after it was built. Entries are grouped into tables. There is a table for each list of groups that
//! applies to some agent. A table begins with its patterns without wildcards, in byte order of their literals. The
//! patterns with wildcards follow, highest rank first. If there are many of them, they are sorted by a pair of bytes
//! that a path must contain ([`Buckets`]).
//!
//! The parent of an entry without wildcards is the prefix pattern with the longest literal that is a prefix of the
//! entry's own. Ranks rise from parent to child, because an entry that could never beat its parent is left out of the
//! table. So on the way up from the entry to its ancestors, the first prefix pattern that matches is the best one.

use super::{
    entry::{Entry, Offset},
    search::Search,
};

/// All tables of a file.
#[derive(Debug)]
pub(super) struct Index<W> {
    pub(super) entries: Box<[Entry<W>]>,
    pub(super) tables: Box<[Table<W>]>,
    /// Buckets for tables with many wildcard patterns. Few files have such tables.
    pub(super) buckets: Option<Box<Buckets<W>>>,
}

/// The position of a table's entries. They begin where the entries of the previous table end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<W> {
    /// Start of the patterns with wildcards.
    pub(super) wilds: W,
    pub(super) end: W,
}

/// Buckets of wildcard patterns that share a pair of neighbouring bytes, so that a decision inspects only the patterns
/// whose pair the path contains. Contains the buckets of all tables that have many such patterns.
#[derive(Debug)]
pub(super) struct Buckets<W> {
    /// Sorted by table.
    pub(super) ranges: Box<[Range<W>]>,
    pub(super) buckets: Box<[Bucket<W>]>,
}

/// The position of a table's buckets. They begin where the buckets of the previous range end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range<W> {
    pub(super) table: W,
    pub(super) end: W,
}

/// The patterns that contain the same pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<W> {
    pub(super) pair: Pair,
    /// End of the bucket's entries, as an offset from the table's first pattern with wildcards. They begin where the
    /// entries of the previous bucket end.
    pub(super) end: W,
}

/// Two neighbouring bytes. No pattern contains a NUL, so two NULs mean that there is no pair.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Pair(pub(super) [u8; 2]);

// === impl Index ===

impl<W: Offset> Index<W> {
    /// Searches one table for a rule that beats the best one that `search` has found so far.
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

    /// Returns the entries of one table: those without wildcards and those with.
    pub(super) fn entries_of(&self, table: usize) -> (&[Entry<W>], &[Entry<W>]) {
        let start = match table {
            0 => 0,
            _ => self.tables[table - 1].end.at(),
        };
        let Table { wilds, end } = self.tables[table];
        let entries = &self.entries[start..end.at()];
        entries.split_at(wilds.at() - start)
    }

    /// Returns the size of the index in memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        let buckets = self.buckets.as_ref().map_or(0, |buckets| buckets.weight());
        size_of_val(&*self.entries) + size_of_val(&*self.tables) + buckets
    }
}

impl Index<u32> {
    /// Returns the index with offsets of two bytes, if they fit.
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

    /// Returns the size of the buckets in memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ranges) + size_of_val(&*self.buckets)
    }
}

impl Buckets<u32> {
    /// Returns the buckets with offsets of two bytes, if they fit.
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
    /// The pair of patterns that have no two adjacent bytes between wildcards.
    pub(super) const NONE: Self = Self([0, 0]);

    /// Iterates over all pairs of adjacent bytes in `bytes` that do not contain a `*`.
    pub(super) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes
            .array_windows()
            .filter(|pair: &&[u8; 2]| !pair.contains(&b'*'))
            .map(|pair| Self(*pair))
    }
}
