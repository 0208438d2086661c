//! What is known of one origin's robots.txt, as a state machine: what a fetch found and the time
//! go in, a new state comes out; a state and a time tell what holds and whether to fetch.
//!
//! It never reads a clock, touches a socket or waits. Times are wall-clock times, because copies
//! outlive a restart; a clock that runs backwards makes it fetch again, never allow more.

mod amend;
mod answer;
mod reading;
mod saved;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

pub use self::{
    answer::{Answer, Due, Ground, Holds},
    saved::{Saved, SavedCopy},
};
use super::{Failure, FetchError, Freshness, Meaning, Policy, RobotsCopy, Then, Unreachable, WithoutCopy};
use crate::robots::Profile;

/// What is known of one origin.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginState {
    /// Whose reading all of it is in; of no account where nothing is known.
    profile: Profile,
    answered: Option<Answered>,
    failing: Option<Failing>,
    /// The last copy that had rules, even when an answer without any has come since.
    last_good: Option<Arc<RobotsCopy>>,
}

/// The last answer, while it has not failed since.
#[derive(Debug, Clone, PartialEq)]
struct Answered {
    meaning: Holding,
    status: u16,
    fetched: SystemTime,
    life: Duration,
}

/// What an answer says: [`Meaning`] without its failures.
#[derive(Debug, Clone, PartialEq)]
enum Holding {
    Rules(Arc<RobotsCopy>),
    NoRobots,
    Soft404,
}

/// Failures without an answer between them.
#[derive(Debug, Clone, PartialEq)]
struct Failing {
    since: SystemTime,
    attempts: u32,
    tried: SystemTime,
    retry: Duration,
    last: Failure,
}

// === impl OriginState ===

impl OriginState {
    /// An origin of which nothing is known.
    pub fn unknown() -> Self {
        Self {
            profile: Profile::default(),
            answered: None,
            failing: None,
            last_good: None,
        }
    }

    /// Whether a fetch has ended yet.
    pub fn is_known(&self) -> bool {
        self.answered.is_some() || self.failing.is_some()
    }

    /// The state after a fetch that ended at `now`.
    ///
    /// `spread` (0 to 1) sets the jitter of the next try, so that origins which failed together
    /// are not all asked again together.
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
            Meaning::Rules(copy) => (Holding::Rules(copy), status, policy.default_ttl),
            Meaning::NoRobots => (Holding::NoRobots, status, policy.no_robots_ttl),
            Meaning::Soft404 => (Holding::Soft404, status, policy.no_robots_ttl),
            Meaning::Unchanged => match (&self.answered, self.current()) {
                // What the answer does not say anew stays as it was (RFC 9111 §3.2).
                (Some(answered), Some(copy)) => (Holding::Rules(copy.clone()), copy.status, answered.life),
                _ => return self.after_failure(FetchError::Status(status).into(), now, spread, policy),
            },
            Meaning::Failed(failure) => return self.after_failure(failure, now, spread, policy),
        };
        let last_good = match &holding {
            Holding::Rules(copy) => Some(copy.clone()),
            Holding::NoRobots | Holding::Soft404 => self.last_good.clone(),
        };
        Self {
            profile: policy.profile,
            answered: Some(Answered {
                meaning: holding,
                status,
                fetched: now,
                life: policy.life(freshness, default_ttl),
            }),
            failing: None,
            last_good,
        }
    }

    fn after_failure(&self, failure: Failure, now: SystemTime, spread: f64, policy: &Policy) -> Self {
        let (since, attempts) = match &self.failing {
            // Not the earlier of the two: a clock that was set back for a while must not make the
            // failures older than they are.
            Some(failing) if failing.is_dated() || !can_be(now) => (failing.since, failing.attempts.saturating_add(1)),
            Some(failing) => (now, failing.attempts.saturating_add(1)),
            None => (now, 1),
        };
        let retry = &policy.unreachable.retry;
        let delay = if elapsed(since, now) >= policy.unreachable.deny_for.max(RARELY_FROM) {
            retry.longest
        } else {
            failure.retry_delay(attempts, retry)
        };
        Self {
            profile: policy.profile,
            failing: Some(Failing {
                since,
                attempts,
                tried: now,
                retry: delay.mul_f64(1.0 + JITTER * spread.clamp(0.0, 1.0)),
                last: failure,
            }),
            ..self.clone()
        }
    }

    /// What holds at `now`. A copy holds to the end of its time, even when a refresh before that
    /// has failed; past it, nothing is allowed until an answer comes.
    pub fn answer(&self, now: SystemTime, policy: &Policy) -> Answer<'_> {
        if let Some(answered) = self.fresh(now, policy) {
            return answered.answer();
        }
        match &self.failing {
            Some(failing) if failing.lasts(now) < policy.unreachable.deny_for => {
                Answer::Unreachable(Some(&failing.last))
            }
            Some(failing) => self.answer_of_old(&failing.last, policy),
            None => Answer::Unreachable(None),
        }
    }

    /// What holds at `now` for a request that waited in vain for the fetch that is due: a copy past
    /// its time is not used, unless the policy has it so from the first failure on. A fetch that is late
    /// opens nothing.
    pub fn answer_while_pending<'s>(&'s self, late: &'s Failure, policy: &Policy) -> Answer<'s> {
        match self.answer_of_old(late, policy) {
            Answer::LastCopy(copy, late) if policy.unreachable.deny_for.is_zero() => Answer::LastCopy(copy, late),
            _ => Answer::Unreachable(Some(late)),
        }
    }

    /// What failures mean that go on for longer than [`deny_for`](super::Unreachable::deny_for).
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

    fn fresh(&self, now: SystemTime, policy: &Policy) -> Option<&Answered> {
        self.answered.as_ref().filter(|answered| answered.is_fresh(now, policy))
    }

    /// The state with the next try due at once, where the last one failed.
    #[must_use]
    pub fn retrying_now(&self) -> Self {
        let mut state = self.clone();
        if let Some(failing) = &mut state.failing {
            failing.retry = Duration::ZERO;
        }
        state
    }

    /// Whether to fetch at `now`.
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

    /// The fetch that [`OriginState::answer`] rests on at `now`.
    pub fn ground(&self, now: SystemTime, policy: &Policy) -> Ground {
        let Some(failing) = self.failing.as_ref().filter(|_| self.fresh(now, policy).is_none()) else {
            let answered = self.answered.as_ref();
            return answered.map(|answered| answered.ground(policy)).unwrap_or_default();
        };
        let expires = failing.tried.checked_add(failing.retry_under(policy));
        match self.answer(now, policy) {
            Answer::LastCopy(copy, _) => self.ground_of(copy, expires),
            _ => Ground {
                status: match failing.last.error {
                    FetchError::Status(status) => Some(status),
                    _ => None,
                },
                fetched: Some(failing.tried),
                expires,
            },
        }
    }

    /// The fetch of `copy`, or the one that last confirmed it; its origin is asked again when it
    /// `expires`.
    pub(in crate::copy) fn ground_of(&self, copy: &Arc<RobotsCopy>, expires: Option<SystemTime>) -> Ground {
        let is_current = self.current().is_some_and(|current| Arc::ptr_eq(current, copy));
        let confirmed = self.answered.as_ref().filter(|_| is_current);
        Ground {
            status: Some(copy.status),
            fetched: Some(confirmed.map_or(copy.fetched, |answered| answered.fetched)),
            expires,
        }
    }

    /// The entity tag by which the origin can tell whether the rules that it gave last have changed.
    pub fn etag(&self) -> Option<&str> {
        self.current()?.etag.as_deref()
    }

    /// The last copy that had rules, whether it decides or not.
    pub fn last_copy(&self) -> Option<&RobotsCopy> {
        self.last_good.as_deref()
    }

    /// The last failure, while no answer has come since.
    pub fn failure(&self) -> Option<&Failure> {
        self.failing.as_ref().map(|failing| &failing.last)
    }

    /// Since when the origin fails, if it does.
    pub fn failing_since(&self) -> Option<SystemTime> {
        self.failing.as_ref().map(|failing| failing.since)
    }

    /// When the last answer came.
    pub fn answered(&self) -> Option<SystemTime> {
        self.answered.as_ref().map(|answered| answered.fetched)
    }

    /// Until when what is known is of use by itself: an answer holds, or a failure is not tried again.
    pub fn useful_until(&self) -> Option<SystemTime> {
        let answered = self.answered.as_ref();
        let answered = answered.and_then(|answered| answered.fetched.checked_add(answered.life));
        let copied = self.last_good.as_ref().map(|copy| copy.fetched);
        answered.max(self.last_fetch()).max(copied)
    }

    /// When the origin was last asked.
    pub fn last_fetch(&self) -> Option<SystemTime> {
        self.answered().max(self.failing.as_ref().map(|failing| failing.tried))
    }

    /// The bytes of memory that the state holds.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.copies().map(|copy| copy.weight()).sum::<usize>()
    }

    /// All copies that are held, each once.
    fn copies(&self) -> impl Iterator<Item = &Arc<RobotsCopy>> {
        let current = self.current();
        let last_good = self
            .last_good
            .as_ref()
            .filter(|last| current.is_none_or(|current| !Arc::ptr_eq(current, last)));
        current.into_iter().chain(last_good)
    }

    /// The copy of the last answer, whether its time is over or not.
    pub fn current(&self) -> Option<&Arc<RobotsCopy>> {
        match &self.answered.as_ref()?.meaning {
            Holding::Rules(copy) => Some(copy),
            Holding::NoRobots | Holding::Soft404 => None,
        }
    }
}

// === impl Answered ===

impl Answered {
    fn answer(&self) -> Answer<'_> {
        match &self.meaning {
            Holding::Rules(copy) => Answer::Rules(copy),
            Holding::NoRobots => Answer::NoRobots,
            Holding::Soft404 => Answer::Soft404,
        }
    }

    fn ground(&self, policy: &Policy) -> Ground {
        Ground {
            status: Some(self.status).filter(|status| *status != 0),
            fetched: Some(self.fetched),
            expires: self.fetched.checked_add(self.life_under(policy)),
        }
    }

    /// A time before the fetch, by more than clocks differ, says that the clock was set back:
    /// then nobody knows how old the answer is.
    fn is_fresh(&self, now: SystemTime, policy: &Policy) -> bool {
        self.age(now).is_some_and(|age| age < self.life_under(policy))
    }

    fn is_old(&self, now: SystemTime, policy: &Policy) -> bool {
        let old_from = self.life_under(policy).mul_f64(REFRESH_FROM);
        self.age(now).is_none_or(|age| age >= old_from)
    }

    /// How long the answer holds by a policy that may have come after it.
    fn life_under(&self, policy: &Policy) -> Duration {
        if self.meaning == Holding::Soft404 && !policy.soft_404 {
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

// === impl Failing ===

impl Failing {
    /// Whether the last try of a long series is of the last hours. When nobody has asked since, one
    /// failure of long ago is no reason to go on without a try.
    fn is_retried_hourly(&self, now: SystemTime, policy: &Policy) -> bool {
        let Unreachable { deny_for, retry, .. } = &policy.unreachable;
        self.lasts(now) >= *deny_for && elapsed(self.tried, now) < self.retry_under(policy) + retry.longest
    }

    /// How long to wait by a policy that may have come after the failure.
    fn retry_under(&self, policy: &Policy) -> Duration {
        self.retry.min(policy.unreachable.retry.longest.mul_f64(1.0 + JITTER))
    }

    /// How long the origin has been failing.
    fn lasts(&self, now: SystemTime) -> Duration {
        if self.is_dated() {
            elapsed(self.since, now)
        } else {
            Duration::ZERO
        }
    }

    /// Whether the clock can have been right when the failures began. A machine without a clock of its
    /// own starts in 1970, and must not take its first failures for ones of many years.
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

/// Whether a clock that says so can be right.
fn can_be(now: SystemTime) -> bool {
    now >= SystemTime::UNIX_EPOCH + EARLIEST
}

/// Time passed, and none where the clock ran backwards.
fn elapsed(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or(Duration::ZERO)
}

/// What fails for as long is tried again ever more rarely at once, however soon the policy stops to
/// deny.
const RARELY_FROM: Duration = Duration::from_secs(12 * 60 * 60);
/// 2025-01-01 since 1970, which lies before this was written.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);
/// From this part of its life on, a copy is refreshed in the background.
const REFRESH_FROM: f64 = 0.8;
/// A retry comes up to this part of its delay late, never early: a server may have asked for it.
const JITTER: f64 = 0.1;
/// How far a clock may run backwards without a copy being in doubt.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
