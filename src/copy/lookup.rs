//! What a lookup found: a state, and how the request came by it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::{Answer, Failure, FetchError, Freshness, Ground, Meaning, OriginState, Policy, RobotsCopy};
use crate::text::words;

words! {
    /// How a request came by the copy that it was decided on.
    pub enum CacheStatus {
        /// It was there.
        Hit = "hit",
        /// This request fetched it.
        Miss = "miss",
        /// What was known was too old, and the fetch that should have replaced it had not ended when the wait was
        /// over; or the origin has failed for so long that its last copy decides.
        Stale = "stale",
        /// Another request was fetching it already.
        Collapsed = "collapsed",
        /// A fetch was due, and others took all places for as long as the request waited.
        Queued = "queued",
    }
}

/// What a lookup found.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub state: Arc<OriginState>,
    pub status: CacheStatus,
    /// How long the request waited for a fetch.
    pub waited: Duration,
    /// When the answer was looked up; it holds at this time.
    pub at: SystemTime,
    /// Whether the fetch that is due had not ended, or not begun ([`CacheStatus::Queued`]), when the wait was over. What is
    /// known is too old then.
    pub pending: bool,
    /// What it leads to is counted here.
    pub tally: Arc<Tally>,
}

/// How often the robots.txt of an origin led to each verdict, by its place in the list of them, while the origin was in
/// memory. Many requests add to it at once.
#[derive(Debug, Default)]
pub struct Tally([AtomicU64; 3]);

// === impl Tally ===

impl Tally {
    /// Counts one more of the verdict at this place.
    pub fn add(&self, index: usize) {
        if let Some(count) = self.0.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many there were of it.
    pub fn count(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

// === impl Lookup ===

impl Lookup {
    /// A lookup that waited for nothing.
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

    /// Of a text that somebody gives instead of the origin, as if it had been fetched at `at`.
    pub fn given(text: &[u8], at: SystemTime, policy: &Policy) -> Self {
        let copy = Arc::new(RobotsCopy::new(policy.profile, text, at));
        let state = OriginState::unknown();
        let state = state.after(Meaning::Rules(copy), 200, Freshness::default(), at, 0.0, policy);
        Self::at_once(Arc::new(state), at, policy, &Arc::default())
    }

    /// What holds. A copy past its time is never used: a fetch that is late is a failure.
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

    /// The fetch that the answer rests on.
    pub fn ground(&self, policy: &Policy) -> Ground {
        match self.answer(policy) {
            // What is known is too old, and the fetch that would replace it goes on.
            Answer::Unreachable(_) if self.pending => Ground::default(),
            Answer::LastCopy(copy, _) if self.pending => self.state.ground_of(copy, None),
            _ => self.state.ground(self.at, policy),
        }
    }
}

/// What a fetch that is still running amounts to.
static PENDING: &Failure = &Failure {
    error: FetchError::Pending,
    retry_after: None,
};
/// And one that has not begun.
static QUEUED: &Failure = &Failure {
    error: FetchError::Queued,
    retry_after: None,
};
