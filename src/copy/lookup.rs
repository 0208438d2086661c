//! The result of looking up an origin's robots.txt in the cache: the state of the origin, and whether the request had
//! to wait for a fetch.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::{Answer, Failure, FetchError, Freshness, Meaning, OriginState, Policy, RobotsCopy, SourceFetch};
use crate::text::{micros, words};

words! {
    /// Where the robots.txt copy that decides on a request came from.
    pub enum CacheStatus {
        /// The copy was in the cache.
        Hit = "hit",
        /// This request fetched the copy.
        Miss = "miss",
        /// An expired copy was used. Either the fetch of a new one took longer than requests wait, or the origin has
        /// failed for so long that its last copy decides.
        Stale = "stale",
        /// Another request was already fetching the copy, and this one waited for it.
        Collapsed = "collapsed",
        /// A fetch was needed but did not start while the request waited, because other fetches had all permits.
        Queued = "queued",
    }
}

/// The result of looking up an origin's robots.txt in the cache.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub state: Arc<OriginState>,
    pub status: CacheStatus,
    /// How long the request waited for a fetch.
    pub waited: Duration,
    /// When the lookup was made. The answer is the one that applied at this time.
    pub at: SystemTime,
    /// Whether the request stopped waiting before the fetch that it needed had ended, or even started
    /// ([`CacheStatus::Queued`]). What is known of the origin has then expired.
    pub pending: bool,
    /// Counts the verdicts on all requests to this origin.
    pub tally: Arc<Tally>,
}

/// What happened at an origin while it is in memory. Many requests can add to it at the same time.
#[derive(Debug, Default)]
pub struct Tally {
    counts: [AtomicU64; COUNTS],
    /// The counts at the last [`take`](Tally::take).
    taken: [AtomicU64; COUNTS],
}

/// What was counted between two calls of [`Tally::take`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tallied {
    /// Decisions, indexed by the verdict as an integer.
    pub verdicts: [u64; VERDICTS],
    /// Forwarded requests that the origin answered with a 5xx or not at all.
    pub failed: u64,
    /// Forwarded requests that it answered otherwise, and the sum of their times to the first byte in microseconds.
    pub answered: u64,
    pub micros: u64,
}

// === impl Tally ===

impl Tally {
    /// Counts one more decision whose verdict, as an integer, is `index`.
    pub fn add(&self, index: usize) {
        if let Some(count) = self.counts[..VERDICTS].get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many decisions had the verdict that is `index` as an integer.
    pub fn count(&self, index: usize) -> u64 {
        let count = self.counts[..VERDICTS].get(index);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts a forwarded request that the origin answered with a 5xx or not at all.
    pub fn failed(&self) {
        self.counts[FAILED].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a forwarded request that the origin answered otherwise, with the first byte after `took`.
    pub fn answered(&self, took: Duration) {
        self.counts[ANSWERED].fetch_add(1, Ordering::Relaxed);
        self.counts[MICROS].fetch_add(micros(took), Ordering::Relaxed);
    }

    /// Returns what was counted since the last call, or `None` for nothing. Only one caller may take at a time.
    pub fn take(&self) -> Option<Tallied> {
        let taken: [u64; COUNTS] = std::array::from_fn(|index| {
            let count = self.counts[index].load(Ordering::Relaxed);
            count - self.taken[index].swap(count, Ordering::Relaxed).min(count)
        });
        let [allow, deny, unverifiable, defer, failed, answered, micros] = taken;
        taken.iter().any(|count| *count > 0).then_some(Tallied {
            verdicts: [allow, deny, unverifiable, defer],
            failed,
            answered,
            micros,
        })
    }
}

// === impl Lookup ===

impl Lookup {
    /// Creates a lookup for a request that did not wait.
    pub(crate) fn at_once(state: Arc<OriginState>, at: SystemTime, policy: &Policy, tally: &Arc<Tally>) -> Self {
        let status = match state.answer(at, policy) {
            Answer::LastCopy(..) => CacheStatus::Stale,
            _ => CacheStatus::Hit,
        };
        Self {
            state,
            status,
            waited: Duration::ZERO,
            at,
            pending: false,
            tally: tally.clone(),
        }
    }

    /// Creates a lookup that finds the robots.txt `text`, as if its origin had sent it at `at`.
    pub fn given(text: &[u8], at: SystemTime, policy: &Policy) -> Self {
        let copy = Arc::new(RobotsCopy::new(policy.profile, text, at));
        let state = OriginState::unknown();
        let state = state.after(Meaning::Rules(copy), 200, Freshness::default(), at, 0.0, policy);
        Self::at_once(Arc::new(state), at, policy, &Arc::default())
    }

    /// Returns what applies to the request. If the request stopped waiting for a fetch, that fetch counts as failed. An
    /// expired copy is then used only if `deny_for` is zero.
    pub fn answer(&self, policy: &Policy) -> Answer<'_> {
        if self.pending {
            let late = match self.status {
                CacheStatus::Queued => QUEUED,
                _ => PENDING,
            };
            return self.state.answer_while_pending(late, policy);
        }
        self.state.answer(self.at, policy)
    }

    /// Returns the fetch that the answer is based on.
    pub fn source_fetch(&self, policy: &Policy) -> SourceFetch {
        match self.answer(policy) {
            // There is no fetch to return: the known state has expired, and the fetch of a new one is still running.
            Answer::Unreachable(_) if self.pending => SourceFetch::default(),
            Answer::LastCopy(copy, _) if self.pending => self.state.source_fetch_of(copy, None),
            _ => self.state.source_fetch(self.at, policy),
        }
    }
}

/// What a lookup reports in place of an error while the fetch is still running.
static PENDING: &Failure = &Failure {
    error: FetchError::Pending,
    retry_after: None,
};
/// What a lookup reports in place of an error if the fetch has not started.
static QUEUED: &Failure = &Failure {
    error: FetchError::Queued,
    retry_after: None,
};
/// Number of verdicts, the indices of the other counts of a [`Tally`], and their number.
const VERDICTS: usize = 4;
const FAILED: usize = 4;
const ANSWERED: usize = 5;
const MICROS: usize = 6;
const COUNTS: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_not_taken_again_and_stays_in_the_counts() {
        let tally = Tally::default();
        assert_eq!(tally.take(), None);
        tally.add(0);
        tally.add(3);
        tally.failed();
        tally.answered(Duration::from_micros(70));
        let taken = Tallied {
            verdicts: [1, 0, 0, 1],
            failed: 1,
            answered: 1,
            micros: 70,
        };
        assert_eq!(tally.take(), Some(taken));
        assert_eq!(tally.take(), None);
        tally.add(0);
        let verdicts = tally.take().map(|taken| taken.verdicts);
        assert_eq!((verdicts, tally.count(0), tally.count(3)), (Some([1, 0, 0, 0]), 2, 1));
        // There is no such verdict.
        tally.add(4);
        assert_eq!(tally.take(), None);
    }
}
