//! The patterns of a file, laid out so that a decision looks at the few that can match and not at
//! all of them.
//!
//! Never allocates once built. Entries stand by table, one for each list of groups that some agent
//! is given: first those without wildcards, in byte order of their literals, then those with, best
//! first, or by a pair of bytes that a path must have where they are many ([`super::buckets`]).
//!
//! The parent of an entry without wildcards is the prefix pattern with the longest literal that its
//! own begins with. Ranks rise from parent to child: what could never beat its parent is left out
//! when the table is laid out. So the first prefix on the way up is the best one.

use super::{buckets::Buckets, entry::Entry, search::Search, width::Width};

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

// === impl Index ===

impl<W: Width> Index<W> {
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
