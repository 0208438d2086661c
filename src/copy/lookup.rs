//! The result of a lookup: an origin's state, and how the request obtained it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::{Answer, Failure, FetchError, Freshness, Meaning, OriginState, Policy, RobotsCopy, SourceFetch};
use crate::text::words;

words! {
    /// How a request obtained the copy that decides on it.
    pub enum CacheStatus {
        /// The copy was in the cache.
        Hit = "hit",
        /// This request fetched the copy.
        Miss = "miss",
        /// The copy had expired, and the fetch for a new one did not end within the wait; or the origin has failed for
        /// so long that its last copy decides.
        Stale = "stale",
        /// Another request was already fetching the copy.
        Collapsed = "collapsed",
        /// A fetch was due, but other fetches had all permits while the request waited.
        Queued = "queued",
    }
}

/// The result of a lookup.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub state: Arc<OriginState>,
    pub status: CacheStatus,
    /// How long the request waited for a fetch.
    pub waited: Duration,
    /// Time of the lookup, for which the answer is computed.
    pub at: SystemTime,
    /// Whether the request stopped waiting before the due fetch had ended, or even started ([`CacheStatus::Queued`]).
    /// Then the known state has expired.
    pub pending: bool,
    /// Counts the verdicts that lookups of this origin lead to.
    pub tally: Arc<Tally>,
}

/// The number of decisions with each verdict on an origin while it is in memory, indexed by the verdict as an integer.
/// Many requests can add to it at the same time.
#[derive(Debug, Default)]
pub struct Tally([AtomicU64; 4]);

// === impl Tally ===

impl Tally {
    /// Increments the count of the verdict with this index.
    pub fn add(&self, index: usize) {
        if let Some(count) = self.0.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the count of the verdict with this index.
    pub fn count(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |count| count.load(Ordering::Relaxed))
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

    /// Creates a lookup for a given text, as if its origin had sent it at `at`.
    pub fn given(text: &[u8], at: SystemTime, policy: &Policy) -> Self {
        let copy = Arc::new(RobotsCopy::new(policy.profile, text, at));
        let state = OriginState::unknown();
        let state = state.after(Meaning::Rules(copy), 200, Freshness::default(), at, 0.0, policy);
        Self::at_once(Arc::new(state), at, policy, &Arc::default())
    }

    /// Returns the answer. If the request stopped waiting for a fetch, the fetch is treated as failed, so an expired
    /// copy is not used unless `deny_for` is zero.
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
            // The known state has expired, and the fetch that would replace it is still running.
            Answer::Unreachable(_) if self.pending => SourceFetch::default(),
            Answer::LastCopy(copy, _) if self.pending => self.state.source_fetch_of(copy, None),
            _ => self.state.source_fetch(self.at, policy),
        }
    }
}

/// The failure that is used while the fetch is still running.
static PENDING: &Failure = &Failure {
    error: FetchError::Pending,
    retry_after: None,
};
/// The failure that is used if the fetch has not started.
static QUEUED: &Failure = &Failure {
    error: FetchError::Queued,
    retry_after: None,
};
