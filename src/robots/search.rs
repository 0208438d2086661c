//! The search for the rule that decides one path: the best of those that match (RFC 9309 §2.2.2).
//!
//! Never allocates. The work is bounded by the patterns with wildcards times the length of the path
//! ([`RobotsTxt::work`](super::RobotsTxt::work)), plus the depth to which prefixes are nested.

use super::{
    buckets::{Bucket, Pair},
    entry::{Entry, Shape},
    line::common_prefix,
    rank::Rank,
    rule::RuleId,
    sieve::Sieve,
    width::Width,
    wild,
};

/// One path, and the best rule found for it so far.
pub(super) struct Search<'a> {
    text: &'a [u8],
    path: &'a [u8],
    best: Rank,
    rule: Option<RuleId>,
    sieve: Option<Sieve>,
}

// === impl Search ===

impl<'a> Search<'a> {
    /// `text` is what the entries point into.
    pub(super) fn new(text: &'a [u8], path: &'a [u8]) -> Self {
        Self {
            text,
            path,
            best: Rank::NONE,
            rule: None,
            sieve: None,
        }
    }

    /// The best rule of all, and whether it allows. No rule allows, too.
    pub(super) fn finish(self) -> (bool, Option<RuleId>) {
        (self.rule.is_none() || self.best.allows(), self.rule)
    }

    /// Of entries without wildcards, in order of their literals.
    pub(super) fn literals<W: Width>(&mut self, entries: &[Entry<W>]) {
        // In byte order, every literal that the path begins with stands at or above the last one
        // that is not after the path.
        let after = entries.partition_point(|entry| entry.literal(self.text) <= self.path);
        let Some(mut at) = after.checked_sub(1) else {
            return;
        };
        let shared = common_prefix(entries[at].literal(self.text), self.path);
        loop {
            let entry = &entries[at];
            if entry.literal_len() <= shared && self.path.starts_with(entry.literal(self.text)) {
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
        }
    }

    /// Of a few entries with wildcards, best first.
    pub(super) fn wilds<W: Width>(&mut self, entries: &[Entry<W>]) {
        if entries.len() > FEW {
            self.sift();
        }
        self.first_match(entries);
    }

    /// Of many, in `buckets`, best first in each.
    pub(super) fn buckets<W: Width>(&mut self, entries: &[Entry<W>], buckets: &[Bucket<W>]) {
        let entries_of = |bucket: usize| {
            let start = bucket.checked_sub(1).map_or(0, |before| buckets[before].end.at());
            &entries[start..buckets[bucket].end.at()]
        };
        self.sift();
        if self.path.len() * STEPS < buckets.len() {
            for pair in [Pair::NONE].into_iter().chain(Pair::all(self.path)) {
                if let Ok(bucket) = buckets.binary_search_by_key(&pair, |bucket| bucket.pair) {
                    self.first_match(entries_of(bucket));
                }
            }
            return;
        }
        for (at, bucket) in buckets.iter().enumerate() {
            if bucket.pair == Pair::NONE || self.lets_through(|sieve| sieve.has(bucket.pair)) {
                self.first_match(entries_of(at));
            }
        }
    }

    fn first_match<W: Width>(&mut self, entries: &[Entry<W>]) {
        for entry in entries {
            if entry.rank() <= self.best {
                return;
            }
            if self.matches(entry) {
                return self.found(entry);
            }
        }
    }

    fn matches<W: Width>(&self, entry: &Entry<W>) -> bool {
        let body = entry.body(self.text);
        let (literal, tail) = body.split_at(entry.literal_len());
        self.path.strip_prefix(literal).is_some_and(|rest| {
            self.lets_through(|sieve| sieve.lets_through(tail))
                && wild::matches(rest, tail, entry.shape() == Shape::WildToEnd)
        })
    }

    fn found<W: Width>(&mut self, entry: &Entry<W>) {
        let rank = entry.rank();
        if rank > self.best {
            self.best = rank;
            self.rule = Some(entry.rule());
        }
    }

    fn sift(&mut self) {
        self.sieve.get_or_insert_with(|| Sieve::new(self.path));
    }

    fn lets_through(&self, test: impl FnOnce(&Sieve) -> bool) -> bool {
        self.sieve.as_ref().is_none_or(test)
    }
}

/// So many entries are matched faster than a sieve is made.
const FEW: usize = 8;

/// What it costs to look up a pair, in buckets looked at one by one.
const STEPS: usize = 8;
