//! Merges two states of an origin. The newer response wins, so that an older one does not come back. Also corrects a
//! state after the clock was set: an expired response must not look fresh, and recent failures must not look old.

use std::{sync::Arc, time::Duration};

use super::OriginState;
use crate::copy::{clock::Jump, state::FailureSeries};

// === impl OriginState ===

impl OriginState {
    /// Merges this state with another one of the same origin, normally an `earlier` one from the disk. Keeps the newer
    /// response. If this state has only failures, the failures of both count as one series.
    #[must_use]
    pub fn resuming(&self, earlier: &Self) -> Self {
        // Times on disk are rounded down. So treat two fetches that ended at most a millisecond apart as the same
        // fetch.
        let is_as_late = self.last_fetch() <= earlier.last_fetch().map(|last| last + Duration::from_millis(1));
        if !self.is_known() || (is_as_late && self.profile == earlier.profile) {
            let last_good = earlier.last_good.clone().or_else(|| self.last_good.clone());
            return Self {
                last_good,
                ..earlier.clone()
            };
        }
        if self.profile != earlier.profile {
            // With the profile of this state, the earlier response can mean something else. From the earlier state,
            // keep only the last copy, parsed again, and the failures.
            let last_good = earlier
                .last_good
                .as_deref()
                .map(|copy| Arc::new(copy.under(self.profile)));
            let failing = earlier.failing.clone().filter(|_| self.answered.is_none());
            return self.resuming(&Self {
                profile: self.profile,
                answered: None,
                failing,
                last_good,
                shared: earlier.shared,
            });
        }
        let failing = match (&self.answered, &self.failing, &earlier.failing) {
            (None, Some(now), Some(before)) => Some(FailureSeries {
                since: before.since,
                attempts: now.attempts.saturating_add(before.attempts),
                ..now.clone()
            }),
            (_, now, _) => now.clone(),
        };
        Self {
            profile: self.profile,
            answered: self.answered.clone().or_else(|| earlier.answered.clone()),
            failing,
            last_good: self.last_good.clone().or_else(|| earlier.last_good.clone()),
            shared: self.shared,
        }
    }

    /// Returns the state after the clock was set. A jump forward corrects the times of earlier failures; a jump back
    /// makes the response expire, because its age is then unknown.
    #[must_use]
    pub(crate) fn after_jump(&self, jump: &Jump) -> Self {
        let mut state = self.clone();
        match *jump {
            Jump::Forward { from, to, by } => {
                let failing = state.failing.as_mut();
                if let Some(failing) = failing.filter(|failing| failing.since >= from && failing.tried <= to) {
                    failing.since += by;
                    failing.tried += by;
                }
            }
            Jump::Back { ahead } => {
                let answered = state.answered.as_mut();
                if let Some(answered) = answered.filter(|answered| answered.fetched <= ahead) {
                    answered.life = Duration::ZERO;
                }
            }
        }
        state
    }
}
