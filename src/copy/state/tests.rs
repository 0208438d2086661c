mod due;
mod lifecycle;
mod properties;
mod reading;
mod retry;
mod unreachable;

use super::*;
use crate::{
    copy::{FetchError, Fetched, OriginResponse, Retry, clock::Jump},
    decision::{Reason, Verdict, rules_of},
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAYS: u64 = 24 * HOUR;

/// Second 0 of the tests' clock is far from 1970, so that the clock can run backwards.
fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + second)
}

fn second_of(time: SystemTime) -> u64 {
    time.duration_since(at(0))
        .expect("not before the tests' clock")
        .as_secs()
}

fn received(status: u16, body: &str) -> Fetched {
    Fetched::Response(OriginResponse::new(status, body))
}

fn received_for(status: u16, life: u64) -> Fetched {
    Fetched::Response(OriginResponse {
        freshness: Freshness(Some(Duration::from_secs(life))),
        ..OriginResponse::new(status, RULES)
    })
}

fn with_retry_after(status: u16, seconds: u64) -> Fetched {
    Fetched::Response(OriginResponse {
        retry_after: Some(Duration::from_secs(seconds)),
        ..OriginResponse::new(status, [])
    })
}

fn time_out() -> Fetched {
    Fetched::Failed(FetchError::Timeout(Duration::from_secs(30)).into())
}

struct History {
    state: OriginState,
    policy: Policy,
    last: SystemTime,
}

impl History {
    fn new() -> Self {
        Self::under(Policy::default())
    }

    fn under(policy: Policy) -> Self {
        Self {
            state: OriginState::unknown(),
            policy,
            last: at(0),
        }
    }

    fn then(self, second: u64, fetched: Fetched) -> Self {
        self.then_spread(second, fetched, 0.0)
    }

    fn then_spread(mut self, second: u64, fetched: Fetched, spread: f64) -> Self {
        let now = at(second);
        self.last = now;
        self.state = self.state.after(
            fetched.meaning(&self.policy, now),
            fetched.status(),
            fetched.freshness(),
            now,
            spread,
            &self.policy,
        );
        self
    }

    fn answer(&self, second: u64) -> Answer<'_> {
        self.state.answer(at(second), &self.policy)
    }

    fn due(&self, second: u64) -> Due {
        self.state.due(at(second), &self.policy)
    }

    fn expires(&self) -> u64 {
        second_of(self.source_fetch().expires.expect("something was fetched"))
    }

    fn source_fetch(&self) -> SourceFetch {
        self.state.source_fetch(self.last, &self.policy)
    }
}

const RULES: &str = "User-agent: *\nDisallow: /p\n";

#[test]
fn an_unknown_origin_is_unreachable_and_due_now() {
    let history = History::new();
    assert_eq!(history.answer(0), Answer::Unreachable(None));
    assert_eq!(history.due(0), Due::Now);
    assert_eq!(history.source_fetch(), SourceFetch::default());
}

#[test]
fn the_last_answer_replaces_the_previous_one_immediately() {
    let history = History::new().then(0, received(200, RULES)).then(10, received(404, ""));
    assert_eq!(history.answer(11), Answer::NoRobots);
    let history = history.then(20, received(500, "Page not found"));
    assert_eq!(history.answer(21), Answer::Soft404);
    let history = history.then(30, received(200, RULES));
    assert!(matches!(history.answer(31), Answer::Rules(copy) if copy.fetched == at(30)));
}

#[test]
fn an_answer_ends_a_series_of_failures() {
    let history = History::new()
        .then(0, time_out())
        .then(60, time_out())
        .then(180, received(404, ""))
        .then(180 + HOUR, time_out());
    assert_eq!(history.expires(), 180 + HOUR + MINUTE, "the delay begins anew");
    let late = 180 + HOUR + 30 * DAYS;
    assert!(matches!(history.answer(late - 1), Answer::Unreachable(Some(_))));
    assert!(matches!(history.answer(late), Answer::UnreachableTooLong(_)));
}

#[test]
fn a_series_of_failures_from_another_gate_is_dropped_once_its_retry_is_overdue() {
    let failing = || {
        History::new()
            .then(0, time_out())
            .then(60, time_out())
            .then(180, time_out())
    };
    let taken = |second| {
        let History { state, policy, .. } = failing();
        state.without_old_failures(at(second), &policy).failing_since()
    };
    assert_eq!(taken(180 + MINUTE), Some(at(0)), "the next retry is due");
    assert_eq!(taken(180 + DAYS), None, "a gate with a right clock would have retried");
    // Another robotgate claims that the site has failed for a month, which would allow requests. This robotgate still
    // refuses requests after its own first failed fetch.
    let late = 180 + 31 * DAYS;
    let History { state, policy, .. } = failing();
    let mut poisoned = History::new();
    poisoned.state = state.without_old_failures(at(late), &policy);
    let poisoned = poisoned.then(late, time_out());
    assert!(matches!(poisoned.answer(late), Answer::Unreachable(Some(_))));
}

#[test]
fn after_the_grace_period_the_last_rules_apply_even_after_a_404() {
    let history = History::new()
        .then(0, received(200, RULES))
        .then(2 * DAYS, received(404, ""))
        .then(3 * DAYS, time_out());
    assert_eq!(
        history.answer(3 * DAYS),
        Answer::Unreachable(Some(&failure_of(&time_out())))
    );
    assert!(matches!(history.answer(33 * DAYS), Answer::LastCopy(copy, _) if copy.fetched == at(0)));
}

#[test]
fn the_source_fetch_is_the_one_that_gave_the_current_answer() {
    let history = History::new().then(5, received(203, RULES));
    assert_eq!(history.source_fetch().status, Some(203));
    assert_eq!(history.source_fetch().fetched, Some(at(5)));
    let history = history.then(20 * HOUR, received(503, ""));
    assert_eq!(history.source_fetch().status, Some(203), "the copy still holds");
    assert_eq!(history.source_fetch().fetched, Some(at(5)));
    let history = history.then(25 * HOUR, received(503, ""));
    assert_eq!(history.source_fetch().status, Some(503));
    assert_eq!(history.source_fetch().fetched, Some(at(25 * HOUR)));
    let history = history.then(26 * HOUR, time_out());
    assert_eq!(history.source_fetch().status, None, "no status was received");
    let history = history.then(27 * HOUR, Fetched::TooManyRedirects { status: 308 });
    assert_eq!(history.source_fetch().status, Some(308));
}

#[test]
fn an_answer_without_rules_has_a_verdict_and_a_reason() {
    let copy = Arc::new(RobotsCopy::new(Profile::Google, RULES.as_bytes(), at(0)));
    let failure = failure_of(&time_out());
    for (answer, says) in [
        (Answer::NoRobots, (Verdict::Allow, Reason::NoRobots)),
        (Answer::Soft404, (Verdict::Allow, Reason::Soft404)),
        (Answer::Unreachable(None), (Verdict::Deny, Reason::Unreachable)),
        (
            Answer::Unreachable(Some(&failure)),
            (Verdict::Deny, Reason::Unreachable),
        ),
        (
            Answer::UnreachableTooLong(&failure),
            (Verdict::Allow, Reason::UnreachableTooLong),
        ),
    ] {
        assert_eq!(rules_of(answer).err(), Some(says), "{answer:?}");
        assert_eq!(answer.copy(), None, "{answer:?}");
    }
    for (answer, by_last_copy) in [(Answer::Rules(&copy), false), (Answer::LastCopy(&copy, &failure), true)] {
        assert_eq!(rules_of(answer).map(|(_, last)| last), Ok(by_last_copy), "{answer:?}");
        let because = by_last_copy.then_some(&failure);
        assert_eq!((answer.copy(), answer.failure()), (Some(&copy), because), "{answer:?}");
    }
}

#[test]
fn weight_counts_a_shared_copy_once() {
    let empty = OriginState::unknown().weight();
    let history = History::new().then(0, received(200, RULES));
    let copy = history.answer(1).copy().expect("rules").weight();
    assert!(copy > RULES.len());
    assert_eq!(
        history.state.weight(),
        empty + copy,
        "the copy is the last good one too"
    );

    let history = history.then(DAYS, time_out());
    assert_eq!(history.state.weight(), empty + copy, "a failure keeps it");
    let history = history.then(DAYS + 1, received(404, ""));
    assert_eq!(history.state.weight(), empty + copy, "as the last good one alone");
    let history = History::new().then(0, received(404, ""));
    assert_eq!(history.state.weight(), empty, "no copy ever");
}

fn denying_for(seconds: u64) -> Policy {
    Policy {
        unreachable: Unreachable {
            deny_for: Duration::from_secs(seconds),
            ..Unreachable::default()
        },
        ..Policy::default()
    }
}

fn failure_of(fetched: &Fetched) -> Failure {
    match fetched.meaning(&Policy::default(), at(0)) {
        Meaning::Failed(failure) => failure,
        other => panic!("no failure: {other:?}"),
    }
}
