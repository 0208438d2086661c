//! Counts requests by a key, such as the bot, in limited memory. If there are too many keys, those with the fewest
//! requests are counted together.

use std::collections::HashMap;

use super::{OutcomeCounts, kept};

/// Two parts, such as a rule and its site. The second can be empty.
type Key = [String; 2];

/// Counts of requests by key, exact up to [`MAX_KEYS`] different keys.
#[derive(Debug, Default)]
pub(super) struct Top {
    counts: HashMap<Box<str>, OutcomeCounts>,
    /// The requests of keys that were removed because there were too many.
    others: OutcomeCounts,
    /// By how much a count can be too small: a removed key that is added again begins at 0.
    missed: u64,
    scratch: String,
}

#[derive(Debug)]
pub(super) struct Largest {
    pub(super) rows: Vec<(Key, OutcomeCounts)>,
    /// The requests of all keys that are not in `rows`.
    pub(super) others: OutcomeCounts,
    /// The number of keys that are not in `rows`, without those that [`Top`] removed.
    pub(super) other_keys: usize,
    /// By how much a count can be too small, as in [`Top::missed`]. 0 if the counts are exact.
    pub(super) missed: u64,
}

// === impl Top ===

impl Top {
    /// Subtracts a request that was counted before.
    pub(super) fn remove_one(&mut self, [first, second]: [&str; 2]) {
        let key = [kept(first), kept(second)].join(SEPARATOR);
        // If the key was removed in the meantime, its request is among `others`, even if the key was added again.
        let known = self.counts.get_mut(&*key);
        let Some(known) = known.filter(|counts| counts.refused < counts.requests) else {
            self.others.requests = self.others.requests.saturating_sub(1);
            return;
        };
        known.requests -= 1;
        if known.requests == 0 {
            self.counts.remove(&*key);
        }
    }

    /// Marks a request that was counted before as refused.
    pub(super) fn refuse_one(&mut self, [first, second]: [&str; 2]) {
        let key = [kept(first), kept(second)].join(SEPARATOR);
        // If the key was removed in the meantime, its request is among `others`, even if the key was added again.
        let known = self.counts.get_mut(&*key);
        let of_key = known.filter(|counts| counts.refused < counts.requests);
        of_key.unwrap_or(&mut self.others).refused += 1;
    }

    pub(super) fn add(&mut self, [first, second]: [&str; 2], counts: OutcomeCounts) {
        self.scratch.clear();
        for part in [first, SEPARATOR, second] {
            self.scratch.push_str(part);
        }
        if let Some(known) = self.counts.get_mut(&*self.scratch) {
            return known.add(counts);
        }
        // Stored keys are shortened and escaped, so the search above does not find a key that is too long or has to be
        // escaped.
        let key = [kept(first), kept(second)].join(SEPARATOR);
        self.counts.entry(key.into()).or_default().add(counts);
        if self.counts.len() > MAX_KEYS {
            self.shrink();
        }
    }

    /// Removes half of the keys: those with the fewest requests.
    fn shrink(&mut self) {
        let mut sizes: Vec<u64> = self.counts.values().map(|counts| counts.requests).collect();
        let middle = sizes.len() / 2;
        let bound = *sizes.select_nth_unstable(middle).1;
        // First remove the keys below `bound`, then keys at `bound`, until half of all keys are gone.
        let mut excess = self.counts.len() / 2;
        let (mut largest, others) = (0, &mut self.others);
        for is_less in [true, false] {
            self.counts.retain(|_, counts| {
                let goes = excess > 0
                    && if is_less {
                        counts.requests < bound
                    } else {
                        counts.requests == bound
                    };
                if goes {
                    excess -= 1;
                    largest = largest.max(counts.requests);
                    others.add(*counts);
                }
                !goes
            });
        }
        self.missed += largest;
    }

    pub(super) fn is_exact(&self) -> bool {
        self.missed == 0
    }

    pub(super) fn has(&self, key: [&str; 2]) -> bool {
        self.counts.contains_key(&*key.join(SEPARATOR))
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn largest(&self, most: usize, weight: impl Fn(&OutcomeCounts) -> u64) -> Largest {
        let mut all: Vec<_> = self.counts.iter().collect();
        all.sort_unstable_by(|(key, counts), (other, others)| {
            let order = (weight(others), others.requests).cmp(&(weight(counts), counts.requests));
            order.then_with(|| key.cmp(other))
        });
        let mut others = self.others;
        for (_, counts) in all.iter().skip(most) {
            others.add(**counts);
        }
        let parts = |key: &str| {
            let (first, second) = key.split_once(SEPARATOR).unwrap_or((key, ""));
            [first.to_owned(), second.to_owned()]
        };
        Largest {
            other_keys: all.len().saturating_sub(most),
            rows: all
                .iter()
                .take(most)
                .map(|(key, counts)| (parts(key), **counts))
                .collect(),
            others,
            missed: self.missed,
        }
    }
}

/// Separates the two parts of a stored key. No part contains it, because [`kept`] escapes control characters.
pub(super) const SEPARATOR: &str = "\u{1f}";
const MAX_KEYS: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_by_their_weight() {
        let mut top = Top::default();
        for (name, times) in [("a", 1), ("b", 3), ("c", 2)] {
            (0..times).for_each(|_| top.add([name, "x"], OutcomeCounts::one()));
        }
        let found = top.largest(2, |counts| counts.requests);
        let names: Vec<_> = found
            .rows
            .iter()
            .map(|([name, _], counts)| (&**name, counts.requests))
            .collect();
        assert_eq!(names, [("b", 3), ("c", 2)]);
        assert_eq!((found.others.requests, found.other_keys, found.missed), (1, 1, 0));
    }

    #[test]
    fn keys_over_the_limit_are_counted_together_with_a_known_error() {
        let mut top = Top::default();
        let rounds = 4;
        for number in 0..rounds * MAX_KEYS {
            top.add([&number.to_string(), ""], OutcomeCounts::one());
            top.add(["often", ""], OutcomeCounts::one());
        }
        assert!(top.len() <= MAX_KEYS && !top.is_exact());
        let found = top.largest(1, |counts| counts.requests);
        let ([name, _], counts) = &found.rows[0];
        assert_eq!(
            (&**name, counts.requests),
            ("often", (rounds * MAX_KEYS) as u64),
            "it was never removed"
        );
        assert_eq!(found.others.requests, (rounds * MAX_KEYS) as u64, "no request is lost");
        // Each round adds `MAX_KEYS` new keys, so `shrink` runs at most twice in it. Each run raises `missed` by 1.
        assert!((1..=2 * rounds as u64).contains(&found.missed), "{}", found.missed);
    }

    #[test]
    fn a_request_of_a_removed_key_is_refused_among_the_others() {
        let mut top = Top::default();
        top.add(["early", ""], OutcomeCounts::one());
        for number in 0..MAX_KEYS {
            let name = number.to_string();
            (0..2).for_each(|_| top.add([&name, ""], OutcomeCounts::one()));
        }
        assert!(!top.has(["early", ""]));

        top.refuse_one(["early", ""]);
        let found = top.largest(0, |counts| counts.requests);
        assert!(!top.has(["early", ""]));
        assert_eq!(found.others.refused, 1);

        let refused = OutcomeCounts {
            refused: 1,
            ..OutcomeCounts::one()
        };
        top.add(["early", ""], refused);
        top.refuse_one(["early", ""]);
        let found = top.largest(usize::MAX, |counts| counts.refused);
        assert_eq!((found.rows[0].1.forwarded(), found.others.refused), (0, 2));

        let others = found.others.requests;
        top.remove_one(["early", ""]);
        let found = top.largest(usize::MAX, |counts| counts.refused);
        assert_eq!((found.rows[0].1.forwarded(), found.others.requests), (0, others - 1));
    }

    #[test]
    fn a_hostile_key_takes_little_memory_and_keeps_its_parts() {
        let mut top = Top::default();
        let long = "x".repeat(100_000);
        for _ in 0..2 {
            top.add([&long, "a\u{1f}b\u{1b}[2J"], OutcomeCounts::one());
        }
        let found = top.largest(9, |counts| counts.requests);
        let [([first, second], counts)] = &found.rows[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (first.len() < 2000, &**second, counts.requests),
            (true, "a\\u{1f}b\\u{1b}[2J", 2)
        );
    }
}
