//! The rules of each agent in a file, from all groups that name it (RFC 9309 §2.2.1). They are in one table for each
//! agent or, if that would take too much memory, in one for each of its groups.
//!
//! Whatever the file contains, the memory is at most in proportion to its size.

use std::{collections::HashMap, mem::take};

use super::{
    draft::Draft,
    entry::{Offset, offset},
    index::Index,
    layout::Layout,
    names::Names,
    search::Search,
    site_access::HighestRanks,
};

/// The compiled rules of a file. `W` is the integer type for offsets into the file.
#[derive(Debug)]
pub(super) struct Ruleset<W> {
    pub(super) index: Index<W>,
    /// The number of the set of rules for `*`, if the file has a group for it.
    pub(super) everyone: Option<u32>,
    pub(super) tokens: Names<W>,
    /// See [`Draft::words`].
    pub(super) words: Names<W>,
    /// The sets of rules that consist of several tables. The number of such a set is its index in this list plus the
    /// length of `index.tables`. The number of any other set is the index of its only table.
    unions: Box<[Box<[u32]>]>,
}

/// Builds the tables of a [`Ruleset`]. Agents with the same groups share a table.
struct TableBuilder<'d> {
    draft: &'d Draft<'d>,
    layout: Layout<'d>,
    table_of_group: Vec<Option<u32>>,
    set_of_groups: HashMap<Box<[u32]>, u32>,
    unions: Vec<Box<[u32]>>,
    /// How many more patterns can be copied into tables for agents with several groups. See [`SPARE`].
    spare: usize,
}

// === impl Ruleset ===

impl Ruleset<u32> {
    pub(super) fn new(mut draft: Draft<'_>) -> (Self, Box<[u8]>) {
        let (tokens, words) = (take(&mut draft.tokens), take(&mut draft.words));
        let mut binder = TableBuilder::new(&draft);
        // Build the set for `*` before the memory limit is reached, so that it always has only one table.
        let mut everyone = (!draft.everyone.is_empty()).then(|| binder.bind(&draft.everyone));
        let mut tokens = Names::new(tokens, &draft.text, |groups| binder.bind(groups));
        let mut words = Names::new(words, &draft.text, |groups| binder.bind(groups));
        let tables = offset(binder.layout.tables());
        let sets = tokens.sets().chain(words.sets()).chain(&mut everyone);
        for set in sets.filter(|set| **set & UNION != 0) {
            *set = (*set & !UNION) + tables;
        }
        let ruleset = Self {
            index: binder.layout.finish(),
            everyone,
            tokens,
            words,
            unions: binder.unions.into(),
        };
        (ruleset, draft.text.into())
    }

    pub(super) fn narrow(&self) -> Option<Ruleset<u16>> {
        Some(Ruleset {
            index: self.index.narrow()?,
            everyone: self.everyone,
            tokens: self.tokens.narrow()?,
            words: self.words.narrow()?,
            unions: self.unions.clone(),
        })
    }
}

impl<W: Offset> Ruleset<W> {
    pub(super) fn search(&self, set: u32, search: &mut Search<'_>) {
        match self.union(set) {
            None => search.table(&self.index, set as usize),
            Some(tables) => {
                for table in tables {
                    search.table(&self.index, *table as usize);
                }
            }
        }
    }

    pub(super) fn reach(&self, set: u32, text: &[u8]) -> HighestRanks {
        let of_table = |reach: HighestRanks, table: u32| {
            let (literals, wilds) = self.index.entries_of(table as usize);
            let entries = literals.iter().chain(wilds);
            entries.fold(reach, |reach, entry| reach.with(entry, text))
        };
        match self.union(set) {
            None => of_table(HighestRanks::NOWHERE, set),
            Some(tables) => tables.iter().copied().fold(HighestRanks::NOWHERE, of_table),
        }
    }

    pub(super) fn weight(&self) -> usize {
        let unions: usize = self.unions.iter().map(|union| size_of_val(&**union)).sum();
        self.index.weight() + self.tokens.weight() + self.words.weight() + size_of_val(&*self.unions) + unions
    }

    fn union(&self, set: u32) -> Option<&[u32]> {
        let union = (set as usize).checked_sub(self.index.tables.len())?;
        Some(&self.unions[union])
    }
}

// === impl TableBuilder ===

impl<'d> TableBuilder<'d> {
    fn new(draft: &'d Draft<'d>) -> Self {
        Self {
            draft,
            layout: Layout::new(&draft.text, draft.patterns.len()),
            table_of_group: vec![None; draft.groups.len()],
            set_of_groups: HashMap::new(),
            unions: Vec::new(),
            spare: SPARE * draft.patterns.len(),
        }
    }

    /// Returns the number of the set of rules for agents with exactly these groups: the index of its only table, or
    /// [`UNION`] plus its index in `unions`.
    fn bind(&mut self, groups: &[u32]) -> u32 {
        if let [group] = *groups {
            return self.table_of_group(group);
        }
        if let Some(set) = self.set_of_groups.get(groups) {
            return *set;
        }
        let set = match self.merged(groups) {
            Some(table) => table,
            None => {
                let tables = groups.iter().map(|group| self.table_of_group(*group)).collect();
                self.unions.push(tables);
                UNION | offset(self.unions.len() - 1)
            }
        };
        self.set_of_groups.insert(groups.into(), set);
        set
    }

    fn table_of_group(&mut self, group: u32) -> u32 {
        if let Some(table) = self.table_of_group[group as usize] {
            return table;
        }
        let table = self.layout.table(self.draft.patterns_of(group).iter());
        self.table_of_group[group as usize] = Some(table);
        table
    }

    /// Puts the patterns of several groups into one table. Returns `None` if that would exceed the memory limit.
    fn merged(&mut self, groups: &[u32]) -> Option<u32> {
        let draft = self.draft;
        let patterns = groups.iter().map(|group| draft.patterns_of(*group));
        let count = patterns.clone().map(<[_]>::len).sum();
        self.spare = self.spare.checked_sub(count)?;
        Some(self.layout.table(patterns.flatten()))
    }
}

/// How many patterns may be copied into tables for agents with several groups, as a multiple of the patterns in the
/// file. Without this limit, memory could grow with the square of the file's size, because thousands of agents can
/// share a large group and each have a small one too.
const SPARE: usize = 4;

/// Marks the number of a set with several tables, until all tables are built. Then the mark is removed, and the length
/// of `index.tables` is added.
const UNION: u32 = 1 << 31;
