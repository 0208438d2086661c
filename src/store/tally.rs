//! What happened at an origin since it came into memory: the verdicts of decisions, and how the origin answered.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{decision::Verdict, text::micros};

/// Counts what happens at an origin. Many threads can add to a tally at the same time.
#[derive(Debug, Default)]
pub struct Tally {
    counts: [AtomicU64; COUNTS],
    taken: [AtomicU64; COUNTS],
}

/// What was counted between two calls of [`Tally::take`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tallied {
    /// For each verdict, in the order of [`Verdict::ALL`]: the number of requests that were not forwarded, and the
    /// number of requests that were.
    pub verdicts: [[u64; 2]; VERDICTS],
    /// Forwarded requests that the origin answered with a 5xx, or that failed because of the origin or the network.
    pub failed: u64,
    /// The other forwarded requests that the origin answered.
    pub answered: u64,
    /// How long the `answered` requests took in total, in microseconds: each until the first byte of its response, or,
    /// for a tunnel, until robotgate was connected. Without robotgate's own waits.
    pub micros: u64,
}

/// The number of decisions about one origin with each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    pub allow: u64,
    pub deny: u64,
    pub unverifiable: u64,
    /// 0 if an older version of robotgate sent the counts.
    #[serde(default)]
    pub defer: u64,
}

// === impl Tally ===

impl Tally {
    /// Counts a decision.
    pub fn decided(&self, verdict: Verdict, forwarded: bool) {
        self.counts[2 * verdict as usize + usize::from(forwarded)].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request in `Tallied::failed`.
    pub fn failed(&self) {
        self.counts[FAILED].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request in `Tallied::answered`. `took` is the time to the first byte, or to connect for a tunnel,
    /// without robotgate's own waits.
    pub fn answered(&self, took: Duration) {
        self.counts[ANSWERED].fetch_add(1, Ordering::Relaxed);
        self.counts[MICROS].fetch_add(micros(took), Ordering::Relaxed);
    }

    /// Returns what was counted since the last call, or `None` if nothing was. Two threads must not call this method at
    /// the same time.
    pub fn take(&self) -> Option<Tallied> {
        let taken: [u64; COUNTS] = std::array::from_fn(|index| {
            let count = self.counts[index].load(Ordering::Relaxed);
            count - self.taken[index].swap(count, Ordering::Relaxed).min(count)
        });
        let [verdicts @ .., failed, answered, micros] = taken;
        taken.iter().any(|count| *count > 0).then_some(Tallied {
            verdicts: std::array::from_fn(|index| [verdicts[2 * index], verdicts[2 * index + 1]]),
            failed,
            answered,
            micros,
        })
    }

    pub(super) fn has_untaken(&self) -> bool {
        let mut pairs = std::iter::zip(&self.counts, &self.taken);
        pairs.any(|(count, taken)| count.load(Ordering::Relaxed) != taken.load(Ordering::Relaxed))
    }

    /// Returns how many decisions had each verdict.
    pub fn verdicts(&self) -> VerdictCounts {
        let count = |verdict: Verdict| {
            let counts = &self.counts[2 * verdict as usize..][..2];
            counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
        };
        VerdictCounts {
            allow: count(Verdict::Allow),
            deny: count(Verdict::Deny),
            unverifiable: count(Verdict::Unverifiable),
            defer: count(Verdict::Defer),
        }
    }
}

/// Layout of the counts of a [`Tally`]: two for each verdict, as in [`Tallied::verdicts`], then the others.
const VERDICTS: usize = Verdict::ALL.len();
const FAILED: usize = 2 * VERDICTS;
const ANSWERED: usize = FAILED + 1;
const MICROS: usize = FAILED + 2;
const COUNTS: usize = FAILED + 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_taken_once_and_remain_in_the_totals() {
        let tally = Tally::default();
        assert_eq!(tally.take(), None);
        tally.decided(Verdict::Allow, true);
        tally.decided(Verdict::Deny, true);
        tally.decided(Verdict::Defer, false);
        tally.failed();
        tally.answered(Duration::from_micros(70));
        let taken = Tallied {
            verdicts: [[0, 1], [0, 1], [0, 0], [1, 0]],
            failed: 1,
            answered: 1,
            micros: 70,
        };
        assert_eq!(tally.take(), Some(taken));
        assert_eq!(tally.take(), None);
        tally.decided(Verdict::Deny, false);
        let verdicts = tally.take().map(|taken| taken.verdicts);
        assert_eq!(verdicts, Some([[0, 0], [1, 0], [0, 0], [0, 0]]));
        let counts = VerdictCounts {
            allow: 1,
            deny: 2,
            unverifiable: 0,
            defer: 1,
        };
        assert_eq!(tally.verdicts(), counts);
    }
}
