//! The search for the rule that decides one path: the best of those that match (RFC 9309 §2.2.2).
//!
//! Never allocates. The work is bounded by the patterns with wildcards times the length of the path
//! ([`RobotsTxt::work`](super::RobotsTxt::work)), plus the depth to which prefixes are nested.

use super::{
    buckets::{Bucket, Pair},
    classes::Classes,
    entry::{Entry, Shape},
    head::Head,
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
    head: Head,
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
            head: Head::of(path),
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
                // Of what is nested deep, no more is compared than may be equal.
                shared = common_prefix(entry.literal(self.text), self.path);
            }
        }
    }

    /// Of a few entries with wildcards, best first.
    pub(super) fn wilds<W: Width>(&mut self, entries: &[Entry<W>]) {
        let classes = Classes::of(self.path);
        for entry in entries {
            if entry.rank() <= self.best {
                return;
            }
            if classes.meet(entry.needs()) && self.matches(entry) {
                return self.found(entry);
            }
        }
    }

    /// Of many, in `buckets`, best first in each.
    pub(super) fn buckets<W: Width>(&mut self, entries: &[Entry<W>], buckets: &[Bucket<W>]) {
        let entries_of = |bucket: usize| {
            let start = bucket.checked_sub(1).map_or(0, |before| buckets[before].end.at());
            &entries[start..buckets[bucket].end.at()]
        };
        let sieve = Sieve::new(self.path);
        if self.path.len() * STEPS < buckets.len() {
            for pair in [Pair::NONE].into_iter().chain(Pair::all(self.path)) {
                if let Ok(bucket) = buckets.binary_search_by_key(&pair, |bucket| bucket.pair) {
                    self.first_match(&sieve, entries_of(bucket));
                }
            }
            return;
        }
        for (at, bucket) in buckets.iter().enumerate() {
            if sieve.has(bucket.pair) {
                self.first_match(&sieve, entries_of(at));
            }
        }
    }

    fn first_match<W: Width>(&mut self, sieve: &Sieve, entries: &[Entry<W>]) {
        for entry in entries {
            if entry.rank() <= self.best {
                return;
            }
            if sieve.meets(entry.needs())
                && entry.begins(self.text, self.path, self.head)
                && sieve.lets_through(entry.tail(self.text))
                && self.matches(entry)
            {
                return self.found(entry);
            }
        }
    }

    fn matches<W: Width>(&self, entry: &Entry<W>) -> bool {
        entry.begins(self.text, self.path, self.head) && {
            let rest = &self.path[entry.literal_len()..];
            wild::matches(rest, entry.tail(self.text), entry.shape() == Shape::WildToEnd)
        }
    }

    fn found<W: Width>(&mut self, entry: &Entry<W>) {
        let rank = entry.rank();
        if rank > self.best {
            self.best = rank;
            self.rule = Some(entry.rule());
        }
    }
}

/// So many prefixes within each other are compared one by one.
const SHALLOW: usize = 4;

/// What it costs to look up a pair, in buckets looked at one by one.
const STEPS: usize = 8;
