//! Tests the state of an origin after random fetches. Some tests compare its answer with that of a simple model, the
//! function `table`. In some tests, the clock also runs backwards.

use proptest::prelude::*;

use super::*;

/// The second at which a fetch ended, and its result.
type Event = (u64, Fetched);

#[derive(Debug, PartialEq)]
enum Says {
    Rules(u64),
    NoRobots,
    Soft404,
    Unreachable,
    LastCopy(u64),
    UnreachableTooLong,
}

fn fetches() -> impl Strategy<Value = Fetched> {
    let life = prop_oneof![Just(0), Just(HOUR), Just(DAYS), Just(40 * DAYS), 0..2 * DAYS];
    prop_oneof![
        2 => Just(received(200, RULES)),
        1 => Just(received(204, "")),
        2 => (prop_oneof![Just(200), Just(404)], life).prop_map(|(status, life)| received_for(status, life)),
        1 => Just(received(404, "")),
        1 => Just(received(500, "404 Not Found")),
        1 => Just(Fetched::TooManyRedirects { status: 301 }),
        3 => Just(time_out()),
        2 => prop_oneof![Just(500_u16), Just(503), Just(429), Just(206), Just(302)]
            .prop_map(|status| received(status, "")),
        1 => (0..2 * HOUR).prop_map(|seconds| with_retry_after(503, seconds)),
        1 => Just(Fetched::NotModified { freshness: Freshness::default() }),
        1 => (0..2 * DAYS).prop_map(|life| Fetched::NotModified { freshness: Freshness(Some(Duration::from_secs(life))) }),
    ]
}

fn seconds() -> impl Strategy<Value = u64> {
    let edges = [
        0,
        MINUTE,
        5 * MINUTE,
        HOUR,
        DAYS,
        29 * DAYS,
        30 * DAYS,
        31 * DAYS,
        60 * DAYS,
    ];
    prop_oneof![
        (proptest::sample::select(edges.to_vec()), 0_u64..3).prop_map(|(edge, more)| edge + more),
        0..100 * DAYS,
    ]
}

fn histories() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec((seconds(), fetches()), 1..8)
}

fn orderly_histories() -> impl Strategy<Value = Vec<Event>> {
    histories().prop_map(|mut events| {
        events.sort_by_key(|(second, _)| *second);
        events
    })
}

fn played(events: &[Event]) -> History {
    played_under(Policy::default(), events)
}

fn played_under(policy: Policy, events: &[Event]) -> History {
    events
        .iter()
        .fold(History::under(policy), |history, (second, fetched)| {
            history.then(*second, fetched.clone())
        })
}

fn policies() -> impl Strategy<Value = Policy> {
    let deny_for = proptest::sample::select(vec![0, HOUR, 12 * HOUR, 30 * DAYS]);
    let then = proptest::sample::select(vec![Then::LastCopy, Then::Allow, Then::Deny]);
    let without_copy = proptest::sample::select(vec![WithoutCopy::Allow, WithoutCopy::Deny]);
    (deny_for, then, without_copy).prop_map(|(deny_for, then, without_copy)| {
        let mut policy = denying_for(deny_for);
        policy.unreachable.then = then;
        policy.unreachable.without_copy = without_copy;
        policy
    })
}

/// What a response says. `Rules` contains the second at which the rules were received.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Word {
    Rules(u64),
    NoRobots,
    Soft404,
}

/// What a fetch means. This can depend on earlier fetches.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    second: u64,
    answer: Option<OriginAnswer>,
}

#[derive(Debug, Clone, Copy)]
struct OriginAnswer {
    says: Word,
    /// Lifetime in seconds.
    life: u64,
}

/// Returns what each fetch means. A 304 ("not modified") without earlier rules is a failure.
fn outcomes(events: &[Event]) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (second, fetched) in events {
        let before = outcomes.iter().rev().find_map(|outcome| outcome.answer);
        let answered = match fetched.meaning(&Policy::default(), at(*second)) {
            Meaning::Rules(_) => Some((Word::Rules(*second), DAYS)),
            Meaning::NoRobots => Some((Word::NoRobots, HOUR)),
            Meaning::Soft404 => Some((Word::Soft404, HOUR)),
            Meaning::Unchanged => before
                .filter(|answered| matches!(answered.says, Word::Rules(_)))
                .map(|answered| (answered.says, answered.life)),
            Meaning::Failed(_) => None,
        };
        let answer = answered.map(|(says, default)| {
            let life = fetched.freshness().0.map_or(default, |life| life.as_secs());
            OriginAnswer {
                says,
                life: life.clamp(5 * MINUTE, DAYS),
            }
        });
        outcomes.push(Outcome {
            second: *second,
            answer,
        });
    }
    outcomes
}

fn failures(outcomes: &[Outcome]) -> &[Outcome] {
    let answers = outcomes
        .iter()
        .rposition(|outcome| outcome.answer.is_some())
        .map_or(0, |last| last + 1);
    &outcomes[answers..]
}

fn last_answer(outcomes: &[Outcome]) -> Option<(u64, OriginAnswer)> {
    let mut answers = outcomes.iter().rev();
    answers.find_map(|outcome| Some((outcome.second, outcome.answer?)))
}

/// An answer is also valid up to a minute before it came, in case the clock was set back a little.
fn holds(answer: (u64, OriginAnswer), now: u64) -> bool {
    (answer.0.saturating_sub(MINUTE)..answer.0 + answer.1.life).contains(&now)
}

fn says_of_answer(answer: OriginAnswer) -> Says {
    match answer.says {
        Word::Rules(second) => Says::Rules(second),
        Word::NoRobots => Says::NoRobots,
        Word::Soft404 => Says::Soft404,
    }
}

/// Returns what applies at the second `now`, computed in a simple way. The events must be in the order of time.
fn table(events: &[Event], now: u64) -> Says {
    table_under(&Policy::default(), events, now)
}

fn table_under(policy: &Policy, events: &[Event], now: u64) -> Says {
    let outcomes = outcomes(events);
    if let Some(answer) = last_answer(&outcomes).filter(|answer| holds(*answer, now)) {
        return says_of_answer(answer.1);
    }
    let Some(first) = failures(&outcomes).first() else {
        return Says::Unreachable;
    };
    if now.saturating_sub(first.second) < policy.unreachable.deny_for.as_secs() {
        return Says::Unreachable;
    }
    let mut words = outcomes.iter().rev().filter_map(|outcome| Some(outcome.answer?.says));
    let rules = words.find_map(|word| match word {
        Word::Rules(second) => Some(second),
        _ => None,
    });
    match (policy.unreachable.then, rules, policy.unreachable.without_copy) {
        (Then::Deny, ..) | (Then::LastCopy, None, WithoutCopy::Deny) => Says::Unreachable,
        (Then::LastCopy, Some(second), _) => Says::LastCopy(second),
        (Then::Allow, ..) | (Then::LastCopy, None, WithoutCopy::Allow) => Says::UnreachableTooLong,
    }
}

fn says(answer: Answer<'_>) -> Says {
    match answer {
        Answer::Rules(copy) => Says::Rules(second_of(copy.fetched)),
        Answer::NoRobots => Says::NoRobots,
        Answer::Soft404 => Says::Soft404,
        Answer::Unreachable(_) => Says::Unreachable,
        Answer::LastCopy(copy, _) => Says::LastCopy(second_of(copy.fetched)),
        Answer::UnreachableTooLong(_) => Says::UnreachableTooLong,
    }
}

proptest! {
    #[test]
    fn answers_match_the_table_for_any_history(events in orderly_histories(), now in seconds()) {
        let history = played(&events);
        prop_assert_eq!(says(history.answer(now)), table(&events, now));
    }

    #[test]
    fn answers_match_the_table_for_any_policy(
        policy in policies(),
        events in orderly_histories(),
        now in seconds(),
    ) {
        let history = played_under(policy, &events);
        prop_assert_eq!(says(history.answer(now)), table_under(&policy, &events, now));
    }

    #[test]
    fn failures_under_thirty_days_disallow_all_for_any_clock(
        events in histories(),
        now in seconds(),
    ) {
        let history = played(&events);
        let outcomes = outcomes(&events);
        let failures = failures(&outcomes);
        let young = failures.iter().all(|failed| now.saturating_sub(failed.second) < 30 * DAYS);
        let fresh = last_answer(&outcomes).is_some_and(|answer| holds(answer, now));
        if !failures.is_empty() && young && !fresh {
            prop_assert!(matches!(history.answer(now), Answer::Unreachable(Some(_))));
        }
    }

    #[test]
    fn no_answer_is_used_after_it_expires_for_any_clock(events in histories(), now in seconds()) {
        let history = played(&events);
        let outcomes = outcomes(&events);
        if let Some(answer) = last_answer(&outcomes).filter(|answer| !holds(*answer, now)) {
            if failures(&outcomes).is_empty() {
                prop_assert_eq!(history.due(now), Due::Now);
            } else {
                prop_assert_ne!(says(history.answer(now)), says_of_answer(answer.1));
            }
        }
    }

    #[test]
    fn a_restored_state_equals_the_saved_one(events in histories(), now in seconds()) {
        let history = played(&events);
        let state = &history.state;
        let restored = state.save().restore(state.text()).expect("it fits");
        prop_assert_eq!(restored.save(), state.save());
        prop_assert_eq!(says(restored.answer(at(now), &history.policy)), says(history.answer(now)));
        prop_assert_eq!(restored.due(at(now), &history.policy), history.due(now));
        prop_assert_eq!(restored.source_fetch(at(now), &history.policy), state.source_fetch(at(now), &history.policy));
        prop_assert_eq!(restored.etag(), state.etag());
    }

    /// The store calls `resuming` if it could read the disk only after some fetches.
    #[test]
    fn a_state_that_resumes_an_earlier_one_equals_an_uninterrupted_one(
        before in orderly_histories(),
        after in histories(),
        now in seconds(),
    ) {
        let start = before.last().expect("there is one").0;
        let mut after: Vec<Event> = (after.into_iter())
            .filter(|(_, fetched)| !matches!(fetched, Fetched::NotModified { .. }))
            .map(|(second, fetched)| (start + 1 + second, fetched))
            .collect();
        after.sort_by_key(|(second, _)| *second);
        let complete: Vec<Event> = before.iter().chain(&after).cloned().collect();
        let resumed = played(&after).state.resuming(&played(&before).state);
        let now = start + 1 + now;
        prop_assert_eq!(says(resumed.answer(at(now), &Policy::default())), table(&complete, now));
    }

    #[test]
    fn every_origin_is_due_at_least_once_a_day(events in orderly_histories()) {
        let history = played(&events);
        let last = events.last().expect("there is one").0;
        prop_assert_ne!(history.due(last + DAYS), Due::No);
        prop_assert!(history.expires() > last);
    }
}
