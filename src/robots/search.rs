//! The search for the rule that decides a path: the best rule that matches (RFC 9309 §2.2.2).
//!
//! It does not allocate. The work is at most the number of patterns with wildcards times the length of the path, plus
//! the length of the file. The budget of a [`Search`] limits the work for wildcards, because only that can become
//! large.

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

/// A path, and the best rule that has been found for it.
pub(super) struct Search<'a> {
    text: &'a [u8],
    path: &'a [u8],
    best: Rank,
    rule: Option<RuleId>,
    head: Head,
    /// Quick tests of the path. Each is built once, when a table first needs it, because an agent can have thousands of
    /// tables.
    classes: Option<Classes>,
    filter: Option<PairFilter>,
    /// An index of the path. It is `None` unless the search takes long.
    path_index: Option<&'a PathIndex>,
    /// Number of bytes of the path that were searched for patterns with wildcards.
    searched: usize,
    /// The search ends once it has searched more bytes than this.
    budget: usize,
}

// === impl Search ===

impl<'a> Search<'a> {
    /// Creates a search for `path`. `text` contains the patterns. The search stops once it has searched more than
    /// `budget` bytes for patterns with wildcards.
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

    /// Returns the number of bytes that were searched for patterns with wildcards.
    pub(super) fn searched(&self) -> usize {
        self.searched
    }

    /// Returns whether the search took so long that it skipped patterns with wildcards. It then has to be repeated
    /// [`with`](Self::with) a path index.
    pub(super) fn is_long(&self) -> bool {
        self.path_index.is_none() && self.searched > LONG
    }

    /// Adds an index of the path, for a search that takes long.
    pub(super) fn with(self, path_index: &'a PathIndex) -> Self {
        Self {
            path_index: Some(path_index),
            ..self
        }
    }

    /// Returns whether the path is allowed, and the rule that decides. If no rule matches, the path is allowed. If the
    /// search exceeded its budget, the result is not valid.
    pub(super) fn finish(self) -> (bool, Option<RuleId>) {
        (self.rule.is_none() || self.best.allows(), self.rule)
    }

    /// Searches one table of `index` for a rule that wins against the best rule that was found in other tables.
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

    /// Searches `entries`, which are patterns without wildcards, in the order of their bytes.
    fn literals<W: Offset>(&mut self, entries: &[PatternEntry<W>]) {
        // Find the last pattern that sorts before the path or equals it. Only this one, its parent, the parent of its
        // parent and so on can match.
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
                // The pattern has many parents, as `/a/b/c/d` has `/a/b/c`, `/a/b` and `/a`. Count how many bytes at
                // the start of the path and of the parent that is reached now are equal. A parent that is longer than
                // this number of bytes cannot match.
                shared = common_prefix(entry.literal(self.text), self.path);
            }
        }
    }

    /// Searches a few patterns with wildcards. They are sorted, highest precedence first.
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

    /// Searches many patterns with wildcards, which are in `buckets`. Each bucket is sorted, highest precedence first.
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

/// How many parents of a pattern to compare with the path one by one. If there are more parents, those that are longer
/// than the common beginning of pattern and path (`shared`) are skipped.
const SHALLOW: usize = 4;

/// Looking up the bucket of one pair of bytes takes as long as testing this many buckets one after the other. So the
/// pairs of the path are looked up only if there are far more buckets than pairs.
const STEPS: usize = 8;
