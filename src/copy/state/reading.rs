//! Interprets the state of an origin again after the profile has changed. What a response means can change, but not
//! when it was received.

use std::{sync::Arc, time::SystemTime};

use super::{Content, Failure, FailureSeries, FetchError, Freshness, LastResponse, OriginState, Policy, RobotsCopy};
use crate::copy::{meaning::is_busy, robots_copy::LARGE};

// === impl OriginState ===

impl OriginState {
    /// Returns whether this state was read with the profile of `policy`, or is empty.
    pub fn is_under(&self, policy: &Policy) -> bool {
        self.profile == policy.profile || (!self.is_known() && self.last_good.is_none())
    }

    /// Returns the state under `policy`, with the copies parsed again. A server error stays a failure, because its
    /// page, which may have said "not found", was not kept.
    #[must_use]
    pub fn under(&self, policy: &Policy) -> Self {
        let reread = |copy: &Arc<RobotsCopy>| Arc::new(copy.under(policy.profile));
        let current = self.current().map(reread);
        let last_good = match (&self.last_good, self.current()) {
            (Some(last), Some(now)) if Arc::ptr_eq(last, now) => current.clone(),
            (last, _) => last.as_ref().map(reread),
        };
        let answered = self.answered.clone().map(|answered| LastResponse {
            meaning: match current {
                Some(copy) => Content::Rules(copy),
                None => answered.meaning,
            },
            ..answered
        });
        let state = Self {
            profile: policy.profile,
            answered,
            failing: self.failing.clone(),
            last_good,
            shared: self.shared,
        };
        state.with_failures_under(policy).with_answers_under(policy)
    }

    /// Returns whether parsing the copies again takes long enough to delay other requests.
    pub fn is_large(&self) -> bool {
        self.copies().map(|copy| copy.robots.body().len()).sum::<usize>() > LARGE
    }

    /// Turns the last failure into a response if its status is no failure under `policy`. Only for a 429, this depends
    /// on the profile. A refused FTP login (403) stays a failure, so that the known rules stay in force.
    fn with_failures_under(self, policy: &Policy) -> Self {
        let Some(failing) = &self.failing else { return self };
        let status = match failing.last.error {
            FetchError::Status(status @ 429) if !is_busy(status, policy.profile) => status,
            _ => return self,
        };
        Self {
            answered: Some(LastResponse {
                meaning: Content::NoRobots,
                status,
                fetched: failing.tried,
                life: policy.life(Freshness::default(), policy.no_robots_ttl),
            }),
            failing: None,
            ..self
        }
    }

    /// Turns the last response into a failure if it is one under `policy`.
    fn with_answers_under(self, policy: &Policy) -> Self {
        let Some(answered) = &self.answered else { return self };
        let fails = match answered.meaning {
            Content::Rules(_) => false,
            Content::NoRobots => is_busy(answered.status, policy.profile),
            Content::Soft404 => !policy.soft_404,
        };
        if !fails {
            return self;
        }
        Self {
            failing: Some(match &self.failing {
                Some(later) => FailureSeries {
                    since: answered.fetched,
                    attempts: later.attempts.saturating_add(1),
                    ..later.clone()
                },
                None => FailureSeries::first(FetchError::Status(answered.status).into(), answered.fetched, policy),
            }),
            answered: None,
            ..self
        }
    }
}

// === impl FailureSeries ===

impl FailureSeries {
    fn first(failure: Failure, at: SystemTime, policy: &Policy) -> Self {
        Self {
            since: at,
            attempts: 1,
            tried: at,
            retry: failure.retry_delay(1, &policy.unreachable.retry),
            last: failure,
        }
    }
}
