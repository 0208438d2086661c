//! States that were not followed from the beginning: joined with what was known earlier, or set right after the clock
//! was.
//!
//! Never makes anything younger than it is, and never brings back what an answer has replaced.

use std::{sync::Arc, time::Duration};

use super::OriginState;
use crate::copy::{clock::Jump, state::Failing};

// === impl OriginState ===

impl OriginState {
    /// What is known, together with what was known `earlier`, of which nothing was known when this
    /// began: the later answer counts, and failures go on from the earlier ones. Both are in the
    /// same reading, or the earlier one is of no use.
    #[must_use]
    pub fn resuming(&self, earlier: &Self) -> Self {
        // On disk, times end at the microsecond.
        let is_as_late = self.last_fetch() <= earlier.last_fetch().map(|last| last + Duration::from_millis(1));
        if !self.is_known() || (is_as_late && self.profile == earlier.profile) {
            let last_good = earlier.last_good.clone().or_else(|| self.last_good.clone());
            return Self {
                last_good,
                ..earlier.clone()
            };
        }
        if self.profile != earlier.profile {
            // What its statuses mean in this reading is not known here; its text and its clock count.
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
            });
        }
        let failing = match (&self.answered, &self.failing, &earlier.failing) {
            (None, Some(now), Some(before)) => Some(Failing {
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
        }
    }

    /// The state after the clock was set. Failures that were noted by a clock that was wrong are as if
    /// noted by the right one; an answer of which nobody knows how old it is holds no more.
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
