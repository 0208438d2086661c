//! The search for the rule that decides a path: the best rule that matches (RFC 9309 §2.2.2). It does not allocate.
//!
//! The work for wildcards can be the number of patterns times the length of the path, so a budget limits it. All other
//! work is at most in proportion to the lengths of the file and the path.

use super::{
    RuleId,
    entry::{Offset, PatternEntry, Rank, Shape},
    head::Head,
    index::{Bucket, Index},
    line::common_prefix,
    path_index::PathIndex,
    prefilter::{Classes, Pair, PairFilter},
    wild,
};

pub(super) struct Search<'a> {
    text: &'a [u8],
    path: &'a [u8],
    best: Rank,
    rule: Option<RuleId>,
    head: Head,
    /// `classes` and `filter` are quick tests of the path. Each is built at most once, because an agent can have
    /// thousands of pattern tables.
    classes: Option<Classes>,
    filter: Option<PairFilter>,
    /// Set only when a search that took too long is repeated.
    path_index: Option<&'a PathIndex>,
    /// Number of bytes of the path that were searched because of patterns with wildcards. Once it exceeds `budget`, no
    /// more of these patterns are matched.
    searched: usize,
    budget: usize,
}

// === impl Search ===

impl<'a> Search<'a> {
    pub(super) fn new(text: &'a [u8], path: &'a [u8], budget: usize) -> Self {
        Self {
            text,
            path,
            best: Rank::NONE,
            rule: None,
            head: Head::of(path),
            classes: None,
            filter: None,
            path_index: None,
            searched: 0,
            budget,
        }
    }

    pub(super) fn searched(&self) -> usize {
        self.searched
    }

    /// Returns whether the search has become so long that it skips the remaining patterns with wildcards. It then has
    /// to be repeated [`with`](Self::with) an index.
    pub(super) fn is_long(&self) -> bool {
        self.path_index.is_none() && self.searched > LONG
    }

    pub(super) fn with(self, path_index: &'a PathIndex) -> Self {
        Self {
            path_index: Some(path_index),
            ..self
        }
    }

    /// Returns whether the path is allowed, and the rule that decides. Not valid if the search exceeded its budget.
    pub(super) fn finish(self) -> (bool, Option<RuleId>) {
        (self.rule.is_none() || self.best.allows(), self.rule)
    }

    pub(super) fn table<W: Offset>(&mut self, index: &Index<W>, table: usize) {
        let (literals, wilds) = index.entries_of(table);
        self.literals(literals);
        if wilds.is_empty() {
            return;
        }
        match index.buckets.as_ref().and_then(|buckets| buckets.of_table(table)) {
            None => self.wilds(wilds),
            Some(buckets) => self.buckets(wilds, buckets),
        }
    }

    /// Searches patterns without wildcards, which are in the order of their bytes.
    fn literals<W: Offset>(&mut self, entries: &[PatternEntry<W>]) {
        // A pattern's parent is the longest other one that it begins with. Only these patterns can match: the last one
        // that sorts before the path or equals it, its parent, the parent's parent and so on.
        let after = entries.partition_point(|entry| entry.is_up_to(self.text, self.path, self.head));
        let Some(mut at) = after.checked_sub(1) else {
            return;
        };
        let (mut steps, mut shared) = (0, self.path.len());
        loop {
            let entry = &entries[at];
            if entry.literal_len() <= shared && entry.begins(self.text, self.path, self.head) {
                if entry.shape() == Shape::Prefix {
                    return self.found(entry);
                }
                if entry.literal_len() == self.path.len() {
                    self.found(entry);
                }
            }
            let Some(distance) = entry.parent() else {
                return;
            };
            at -= distance;
            steps += 1;
            if steps == SHALLOW {
                // The pattern has many parents. Skip those that are longer than what this entry and the path have in
                // common.
                shared = common_prefix(entry.literal(self.text), self.path);
            }
        }
    }

    /// Searches a few patterns with wildcards, which are sorted, highest precedence first.
    fn wilds<W: Offset>(&mut self, entries: &[PatternEntry<W>]) {
        let classes = *self.classes.get_or_insert_with(|| Classes::of(self.path));
        for entry in entries.iter().filter(|entry| classes.meet(entry.needs())) {
            if entry.rank() <= self.best {
                return;
            }
            if self.matches(entry, None) {
                return self.found(entry);
            }
        }
    }

    /// Searches many patterns with wildcards. Each bucket is sorted, highest precedence first.
    fn buckets<W: Offset>(&mut self, entries: &[PatternEntry<W>], buckets: &[Bucket<W>]) {
        let entries_of = |bucket: usize| {
            let start = bucket.checked_sub(1).map_or(0, |before| buckets[before].end.at());
            &entries[start..buckets[bucket].end.at()]
        };
        let filter = *self.filter.get_or_insert_with(|| PairFilter::new(self.path));
        if self.path.len() * STEPS < buckets.len() {
            for pair in [Pair::NONE].into_iter().chain(Pair::all(self.path)) {
                if let Ok(bucket) = buckets.binary_search_by_key(&pair, |bucket| bucket.pair) {
                    self.first_match(&filter, entries_of(bucket));
                }
            }
            return;
        }
        for (at, bucket) in buckets.iter().enumerate() {
            if filter.has(bucket.pair) {
                self.first_match(&filter, entries_of(at));
            }
        }
    }

    fn first_match<W: Offset>(&mut self, filter: &PairFilter, entries: &[PatternEntry<W>]) {
        for entry in entries {
            if entry.rank() <= self.best {
                return;
            }
            if filter.meets(entry.needs()) && self.matches(entry, Some(filter)) {
                return self.found(entry);
            }
        }
    }

    fn matches<W: Offset>(&mut self, entry: &PatternEntry<W>, filter: Option<&PairFilter>) -> bool {
        if !entry.begins(self.text, self.path, self.head) || self.is_long() || self.searched > self.budget {
            return false;
        }
        let (start, tail) = (entry.literal_len(), entry.tail(self.text));
        let may_match = match (self.path_index, filter) {
            (Some(path_index), _) => path_index.may_match(tail, start),
            (None, Some(filter)) => filter.may_match(tail),
            (None, None) => true,
        };
        if !may_match {
            return false;
        }
        let rest = &self.path[start..];
        self.searched += rest.len();
        wild::matches(rest, tail, entry.shape() == Shape::WildToEnd)
    }

    fn found<W: Offset>(&mut self, entry: &PatternEntry<W>) {
        let rank = entry.rank();
        if rank > self.best {
            self.best = rank;
            self.rule = Some(entry.rule());
        }
    }
}

/// A search of up to this number of bytes takes less time than building a [`PathIndex`].
const LONG: usize = 1 << 17;

/// How many patterns without wildcards are compared with the path one by one, before the search computes which of the
/// others it can skip.
const SHALLOW: usize = 4;

/// Looking up the bucket of a pair takes as long as testing this many buckets one after the other.
const STEPS: usize = 8;
