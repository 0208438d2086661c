//! The result of looking up an origin's robots.txt.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{Answer, Failure, FetchError, Freshness, Meaning, OriginState, Policy, RobotsCopy, SourceFetch};
use crate::text::words;

words! {
    /// How a lookup got what robotgate knows of an origin's robots.txt.
    pub enum CacheStatus {
        /// The cache had a result of an earlier fetch that was still valid. The result can be a failure.
        Hit = "hit",
        /// This request started a fetch and waited for it.
        Miss = "miss",
        /// The cache had only an expired result. Either a new fetch took longer than requests wait, or the origin has
        /// failed for so long that its last copy decides.
        Stale = "stale",
        /// This request waited for a fetch that another request had started.
        Collapsed = "collapsed",
        /// A fetch was needed, but it did not start while the request waited, because too many others were running.
        Queued = "queued",
    }
}

/// The result of looking up an origin's robots.txt.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub state: Arc<OriginState>,
    pub status: CacheStatus,
    /// How long the request waited for the disk and for fetches.
    pub waited: Duration,
    /// The time for which [`answer`](Self::answer) evaluates the state, usually the end of the lookup.
    pub at: SystemTime,
    /// Whether the request stopped waiting before the fetch that it needed had ended.
    pub pending: bool,
}

// === impl Lookup ===

impl Lookup {
    pub(crate) fn at_once(state: Arc<OriginState>, at: SystemTime, policy: &Policy) -> Self {
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
        }
    }

    /// Creates a lookup that finds the copy of `state` even if it has expired at `now`.
    pub(crate) fn of_held(state: Arc<OriginState>, now: SystemTime, policy: &Policy) -> Self {
        // The copy was valid when the site last answered. Do not use the time when the copy was fetched: the site may
        // have confirmed the copy later, with a 304.
        let at = state.current().and(state.answered()).unwrap_or(now);
        Self::at_once(state, at, policy)
    }

    /// Creates a lookup that finds the robots.txt `text`, as if its origin had sent it at `at`.
    pub fn given(text: &[u8], at: SystemTime, policy: &Policy) -> Self {
        let copy = Arc::new(RobotsCopy::new(policy.profile, text, at));
        let state = OriginState::unknown();
        let state = state.after(Meaning::Rules(copy), 200, Freshness::default(), at, 0.0, policy);
        Self::at_once(Arc::new(state), at, policy)
    }

    /// Returns what applies to the request. If it stopped waiting for the fetch, this is normally
    /// [`Answer::Unreachable`]; see [`OriginState::answer_while_pending`].
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
            // The answer is based on no fetch, because the fetch has not ended.
            Answer::Unreachable(_) if self.pending => SourceFetch::default(),
            Answer::LastCopy(copy, _) if self.pending => self.state.source_fetch_of(copy, None),
            _ => self.state.source_fetch(self.at, policy),
        }
    }
}

static PENDING: &Failure = &Failure {
    error: FetchError::Pending,
    retry_after: None,
};
static QUEUED: &Failure = &Failure {
    error: FetchError::Queued,
    retry_after: None,
};
