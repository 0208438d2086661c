//! Everything that is known of one origin's robots.txt. Each fetch turns the state into a new one. The state and the
//! current time say what applies to the origin, and whether to fetch again.
//!
//! Times are wall-clock times, because copies outlive a restart. A response from more than a minute in the future shows
//! that the clock was set back, and counts as expired.

mod amend;
mod answer;
mod reading;
mod saved;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

pub use self::{
    answer::{Answer, AnswerKind, Due, Severity, SourceFetch},
    saved::{Saved, SavedCopy},
};
use super::{Failure, FetchError, Freshness, Meaning, Policy, RobotsCopy, Then, Unreachable, WithoutCopy};
use crate::{robots::Profile, text::micros};

/// Everything that is known of an origin's robots.txt.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginState {
    /// The profile with which the responses in this state were read. Meaningless if nothing is known yet.
    profile: Profile,
    answered: Option<LastResponse>,
    failing: Option<FailureSeries>,
    /// The last copy with rules. It stays if a later response says that there is no robots.txt.
    last_good: Option<Arc<RobotsCopy>>,
    shared: bool,
}

/// The last response that was no failure. It stays when a later fetch fails.
#[derive(Debug, Clone, PartialEq)]
struct LastResponse {
    meaning: Content,
    status: u16,
    fetched: SystemTime,
    life: Duration,
}

/// What a site last said about its robots.txt, however long ago.
#[derive(Debug, Clone, Copy)]
pub struct LastAnswer<'s> {
    /// `None` if there is no robots.txt.
    pub copy: Option<&'s Arc<RobotsCopy>>,
    /// HTTP status; 0 if unknown.
    pub status: u16,
    /// When the site sent this answer, or last confirmed it with a 304.
    pub fetched: SystemTime,
}

/// A [`Meaning`] that is no failure.
#[derive(Debug, Clone, PartialEq)]
enum Content {
    Rules(Arc<RobotsCopy>),
    NoRobots,
    Soft404,
}

#[derive(Debug, Clone, PartialEq)]
struct FailureSeries {
    since: SystemTime,
    attempts: u32,
    tried: SystemTime,
    retry: Duration,
    last: Failure,
}

// === impl OriginState ===

impl OriginState {
    /// Returns the state of an unknown origin.
    pub fn unknown() -> Self {
        Self {
            profile: Profile::default(),
            answered: None,
            failing: None,
            last_good: None,
            shared: false,
        }
    }

    /// Marks the last fetch as made by another robotgate of the fleet.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }

    /// Drops the failures of a state from another robotgate if their retry is long overdue. That robotgate's clock may
    /// have been wrong, and failures that look too old would allow the site too early.
    #[must_use]
    pub fn without_old_failures(self, now: SystemTime, policy: &Policy) -> Self {
        let is_recent =
            |failing: &FailureSeries| elapsed(failing.tried, now) <= failing.retry_under(policy) * 2 + CLOCK_SLACK;
        let failing = self.failing.filter(is_recent);
        Self { failing, ..self }
    }

    /// Returns whether another robotgate of the fleet made the last fetch.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Returns whether the state has the result of any fetch.
    pub fn is_known(&self) -> bool {
        self.answered.is_some() || self.failing.is_some()
    }

    /// Returns the state after a fetch that ended at `now`. `spread` is a random number from 0 to 1 that lengthens the
    /// retry delay a little, so that origins that failed together are not all retried together.
    #[must_use]
    pub fn after(
        &self,
        meaning: Meaning,
        status: u16,
        freshness: Freshness,
        now: SystemTime,
        spread: f64,
        policy: &Policy,
    ) -> Self {
        if !self.is_under(policy) {
            return self
                .under(policy)
                .after(meaning, status, freshness, now, spread, policy);
        }
        let (holding, status, default_ttl) = match meaning {
            Meaning::Rules(copy) => (Content::Rules(copy), status, policy.default_ttl),
            Meaning::NoRobots => (Content::NoRobots, status, policy.no_robots_ttl),
            Meaning::Soft404 => (Content::Soft404, status, policy.no_robots_ttl),
            Meaning::Unchanged => match (&self.answered, self.current()) {
                // If the 304 specifies no lifetime, that of the earlier response still counts (RFC 9111 §3.2).
                (Some(answered), Some(copy)) => (Content::Rules(copy.clone()), copy.status, answered.life),
                _ => return self.after_failure(FetchError::Status(status).into(), now, spread, policy),
            },
            Meaning::Failed(failure) => return self.after_failure(failure, now, spread, policy),
        };
        let last_good = match &holding {
            Content::Rules(copy) => Some(copy.clone()),
            Content::NoRobots | Content::Soft404 => self.last_good.clone(),
        };
        Self {
            profile: policy.profile,
            answered: Some(LastResponse {
                meaning: holding,
                status,
                fetched: now,
                life: policy.life(freshness, default_ttl),
            }),
            failing: None,
            last_good,
            shared: false,
        }
    }

    fn after_failure(&self, failure: Failure, now: SystemTime, spread: f64, policy: &Policy) -> Self {
        // Do not count the time for which the egress guard refused the origin: it says nothing about the site.
        let failing = self.failing.as_ref();
        let failing = failing.filter(|failing| !failing.last.is_prohibited() || failure.is_prohibited());
        let (since, attempts) = match failing {
            // Keep `failing.since` even if `now` is earlier: the clock may have been set back, and a series that starts
            // at `now` could later seem to have lasted too long.
            Some(failing) if failing.is_dated() || !can_be(now) => (failing.since, failing.attempts.saturating_add(1)),
            Some(failing) => (now, failing.attempts.saturating_add(1)),
            None => (now, 1),
        };
        let retry = &policy.unreachable.retry;
        let is_rare = elapsed(since, now) >= policy.unreachable.deny_for.max(RARELY_FROM) && !failure.is_prohibited();
        let delay = if is_rare {
            retry.longest
        } else {
            failure.retry_delay(attempts, retry)
        };
        Self {
            profile: policy.profile,
            failing: Some(FailureSeries {
                since,
                attempts,
                tried: now,
                // A saved state has the delay in whole microseconds. Round it here already, so that saving does not
                // change the delay.
                retry: Duration::from_micros(micros(delay.mul_f64(1.0 + JITTER * spread.clamp(0.0, 1.0)))),
                last: failure,
            }),
            shared: false,
            ..self.clone()
        }
    }

    /// Returns what applies to the origin at `now`: the last response until it expires, and then a denial until the
    /// origin has failed for [`deny_for`](super::Unreachable::deny_for). After that, [`then`](super::Unreachable::then)
    /// decides. But while the egress guard refuses the origin, the denial does not end.
    pub fn answer(&self, now: SystemTime, policy: &Policy) -> Answer<'_> {
        if let Some(answered) = self.fresh(now, policy) {
            return answered.answer();
        }
        match &self.failing {
            Some(failing) if failing.last.is_prohibited() || failing.lasts(now) < policy.unreachable.deny_for => {
                Answer::Unreachable(Some(&failing.last))
            }
            Some(failing) => self.answer_of_old(&failing.last, policy),
            None => Answer::Unreachable(None),
        }
    }

    /// Returns the answer for a request that stopped waiting for a fetch: the robots.txt is unreachable. But if
    /// `deny_for` is zero, `then` is [`Then::LastCopy`], and there is a last copy, this copy decides.
    pub fn answer_while_pending<'s>(&'s self, late: &'s Failure, policy: &Policy) -> Answer<'s> {
        match self.answer_of_old(late, policy) {
            Answer::LastCopy(copy, late) if policy.unreachable.deny_for.is_zero() => Answer::LastCopy(copy, late),
            _ => Answer::Unreachable(Some(late)),
        }
    }

    /// Returns the answer for an origin that has failed for longer than [`deny_for`](super::Unreachable::deny_for).
    fn answer_of_old<'s>(&'s self, last: &'s Failure, policy: &Policy) -> Answer<'s> {
        match (
            policy.unreachable.then,
            &self.last_good,
            policy.unreachable.without_copy,
        ) {
            (Then::Deny, _, _) | (Then::LastCopy, None, WithoutCopy::Deny) => Answer::Unreachable(Some(last)),
            (Then::LastCopy, Some(copy), _) => Answer::LastCopy(copy, last),
            (Then::Allow, _, _) | (Then::LastCopy, None, WithoutCopy::Allow) => Answer::UnreachableTooLong(last),
        }
    }

    fn fresh(&self, now: SystemTime, policy: &Policy) -> Option<&LastResponse> {
        self.answered.as_ref().filter(|answered| answered.is_fresh(now, policy))
    }

    /// Returns this state with one change: if the last fetch failed, the next fetch is due immediately.
    #[must_use]
    pub fn retrying_now(&self) -> Self {
        let mut state = self.clone();
        if let Some(failing) = &mut state.failing {
            failing.retry = Duration::ZERO;
        }
        state
    }

    /// Returns whether the last fetch failed because the egress guard refused the origin.
    pub fn is_prohibited(&self) -> bool {
        self.failure().is_some_and(Failure::is_prohibited)
    }

    /// Returns whether the robots.txt has to be fetched, and whether a request has to wait for the fetch.
    pub fn due(&self, now: SystemTime, policy: &Policy) -> Due {
        let fresh = self.fresh(now, policy);
        match (fresh, &self.failing) {
            (Some(_), Some(failing)) if failing.retry_is_due(now, policy) => Due::Background,
            (Some(answered), None) if answered.is_old(now, policy) => Due::Background,
            (Some(_), _) => Due::No,
            (None, Some(failing)) if !failing.retry_is_due(now, policy) => Due::No,
            (None, Some(failing)) if failing.is_retried_hourly(now, policy) => Due::Background,
            (None, _) => Due::Now,
        }
    }

    /// Returns the fetch that [`OriginState::answer`] is based on at `now`.
    pub fn source_fetch(&self, now: SystemTime, policy: &Policy) -> SourceFetch {
        let Some(failing) = self.failing.as_ref().filter(|_| self.fresh(now, policy).is_none()) else {
            let answered = self.answered.as_ref();
            return answered
                .map(|answered| answered.source_fetch(policy))
                .unwrap_or_default();
        };
        let expires = failing.tried.checked_add(failing.retry_under(policy));
        match self.answer(now, policy) {
            Answer::LastCopy(copy, _) => self.source_fetch_of(copy, expires),
            _ => SourceFetch {
                status: match failing.last.error {
                    FetchError::Status(status) => Some(status),
                    _ => None,
                },
                fetched: Some(failing.tried),
                expires,
            },
        }
    }

    /// Returns the fetch that received `copy`, or the later one that confirmed it with a 304. `expires` becomes
    /// [`SourceFetch::expires`].
    pub(in crate::copy) fn source_fetch_of(&self, copy: &Arc<RobotsCopy>, expires: Option<SystemTime>) -> SourceFetch {
        let is_current = self.current().is_some_and(|current| Arc::ptr_eq(current, copy));
        let confirmed = self.answered.as_ref().filter(|_| is_current);
        SourceFetch {
            status: Some(copy.status),
            fetched: Some(confirmed.map_or(copy.fetched, |answered| answered.fetched)),
            expires,
        }
    }

    /// Returns the ETag of the current copy, with which a fetch asks whether the robots.txt has changed.
    pub fn etag(&self) -> Option<&str> {
        self.current()?.etag.as_deref()
    }

    /// Returns what the site last said about its robots.txt, regardless of later failures.
    pub fn last_answer(&self) -> Option<LastAnswer<'_>> {
        match (&self.answered, &self.last_good) {
            (Some(answered), _) => Some(LastAnswer {
                copy: self.current(),
                status: answered.status,
                fetched: answered.fetched,
            }),
            (None, Some(copy)) => Some(LastAnswer {
                copy: Some(copy),
                status: copy.status,
                fetched: copy.fetched,
            }),
            (None, None) => None,
        }
    }

    /// Returns the last copy with rules, even if it does not apply now.
    pub fn last_copy(&self) -> Option<&RobotsCopy> {
        self.last_good.as_deref()
    }

    /// Returns the last failure, or `None` if the last fetch did not fail.
    pub fn failure(&self) -> Option<&Failure> {
        self.failing.as_ref().map(|failing| &failing.last)
    }

    /// Returns when the first of the failed fetches in a row ended, or `None` if the last fetch did not fail.
    pub fn failing_since(&self) -> Option<SystemTime> {
        self.failing.as_ref().map(|failing| failing.since)
    }

    /// Returns the time of the last response that was no failure.
    pub fn answered(&self) -> Option<SystemTime> {
        self.answered.as_ref().map(|answered| answered.fetched)
    }

    /// Returns the latest of three times: when the last response expires, when the last fetch ended, and when the last
    /// copy was received. The cache file and the fleet's server keep the state for some time after that, if they have
    /// room.
    pub fn useful_until(&self) -> Option<SystemTime> {
        let answered = self.answered.as_ref();
        let answered = answered.and_then(|answered| answered.fetched.checked_add(answered.life));
        let copied = self.last_good.as_ref().map(|copy| copy.fetched);
        answered.max(self.last_fetch()).max(copied)
    }

    /// Returns when the last fetch of the robots.txt ended.
    pub fn last_fetch(&self) -> Option<SystemTime> {
        self.answered().max(self.failing.as_ref().map(|failing| failing.tried))
    }

    /// Returns the memory that the state and its copies use, in bytes, without the texts of failures.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.copies().map(|copy| copy.weight()).sum::<usize>()
    }

    /// Iterates over the current and the last good copy. If they are the same copy, returns it once.
    fn copies(&self) -> impl Iterator<Item = &Arc<RobotsCopy>> {
        let current = self.current();
        let last_good = self
            .last_good
            .as_ref()
            .filter(|last| current.is_none_or(|current| !Arc::ptr_eq(current, last)));
        current.into_iter().chain(last_good)
    }

    /// Returns the copy of the last response, even if it has expired.
    pub fn current(&self) -> Option<&Arc<RobotsCopy>> {
        match &self.answered.as_ref()?.meaning {
            Content::Rules(copy) => Some(copy),
            Content::NoRobots | Content::Soft404 => None,
        }
    }
}

// === impl LastResponse ===

impl LastResponse {
    fn answer(&self) -> Answer<'_> {
        match &self.meaning {
            Content::Rules(copy) => Answer::Rules(copy),
            Content::NoRobots => Answer::NoRobots,
            Content::Soft404 => Answer::Soft404,
        }
    }

    fn source_fetch(&self, policy: &Policy) -> SourceFetch {
        SourceFetch {
            status: Some(self.status).filter(|status| *status != 0),
            fetched: Some(self.fetched),
            expires: self.fetched.checked_add(self.life_under(policy)),
        }
    }

    /// If `now` is well before the fetch, the clock was set back. The age of the response is then unknown, so it counts
    /// as expired.
    fn is_fresh(&self, now: SystemTime, policy: &Policy) -> bool {
        self.age(now).is_some_and(|age| age < self.life_under(policy))
    }

    fn is_old(&self, now: SystemTime, policy: &Policy) -> bool {
        let old_from = self.life_under(policy).mul_f64(REFRESH_FROM);
        self.age(now).is_none_or(|age| age >= old_from)
    }

    /// Returns how long the response is used under `policy`, which can have changed since the response came.
    fn life_under(&self, policy: &Policy) -> Duration {
        if self.meaning == Content::Soft404 && !policy.soft_404 {
            return Duration::ZERO;
        }
        self.life.min(policy.max_ttl)
    }

    fn age(&self, now: SystemTime) -> Option<Duration> {
        match now.duration_since(self.fetched) {
            Ok(age) => Some(age),
            Err(ahead) => (ahead.duration() <= CLOCK_SLACK).then_some(Duration::ZERO),
        }
    }
}

// === impl FailureSeries ===

impl FailureSeries {
    /// Returns whether the origin has failed for `deny_for` and was tried recently. If so, requests need not wait for
    /// the next retry.
    fn is_retried_hourly(&self, now: SystemTime, policy: &Policy) -> bool {
        let Unreachable { deny_for, retry, .. } = &policy.unreachable;
        self.lasts(now) >= *deny_for && elapsed(self.tried, now) < self.retry_under(policy) + retry.longest
    }

    /// Returns the delay before the next fetch. A reload can have lowered the maximum since the last failure.
    fn retry_under(&self, policy: &Policy) -> Duration {
        self.retry.min(policy.unreachable.retry.longest.mul_f64(1.0 + JITTER))
    }

    fn lasts(&self, now: SystemTime) -> Duration {
        if self.is_dated() {
            elapsed(self.since, now)
        } else {
            Duration::ZERO
        }
    }

    /// Returns whether the clock could have been right when the failures began. Without a battery, a machine's clock
    /// starts in 1970, and failures at that time would later look years old.
    fn is_dated(&self) -> bool {
        can_be(self.since)
    }

    fn retry_is_due(&self, now: SystemTime, policy: &Policy) -> bool {
        match now.duration_since(self.tried) {
            Ok(waited) => waited >= self.retry_under(policy),
            Err(ahead) => ahead.duration() > CLOCK_SLACK,
        }
    }
}

/// Returns whether a correct clock could show this time.
fn can_be(now: SystemTime) -> bool {
    now >= SystemTime::UNIX_EPOCH + EARLIEST
}

fn elapsed(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or(Duration::ZERO)
}

/// An origin that has failed for at least this long and at least `deny_for` is retried only after `retry.longest`. An
/// origin that the egress guard refuses keeps its usual retry delay.
const RARELY_FROM: Duration = Duration::from_secs(12 * 60 * 60);
/// 2025-01-01, as time since 1970. No correct clock shows an earlier time.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);
/// After this share of a response's lifetime, the next request starts a fetch in the background.
const REFRESH_FROM: f64 = 0.8;
/// The largest random extension of a retry delay, as a share of it. The random part never shortens a delay, because the
/// server may have requested it.
const JITTER: f64 = 0.1;
/// If the clock was set back by no more than this, responses do not expire because of it.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
