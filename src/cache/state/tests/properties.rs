//! Any sequence of fetches at any times, forwards and backwards, against the table of what a
//! fetch means.

use proptest::prelude::*;

use super::*;

/// One fetch and the second at which it ended.
type Event = (u64, Fetched);

/// What the table says of an origin, and nothing of how it is kept.
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
        1 => (0..2 * HOUR).prop_map(|seconds| asked_to_wait(503, seconds)),
    ]
}

/// Moments that matter, and any others.
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

/// The same with a clock that only goes on.
fn orderly_histories() -> impl Strategy<Value = Vec<Event>> {
    histories().prop_map(|mut events| {
        events.sort_by_key(|(second, _)| *second);
        events
    })
}

fn played(events: &[Event]) -> History {
    events.iter().fold(History::new(), |history, (second, fetched)| {
        history.then(*second, fetched.clone())
    })
}

fn meaning(event: &Event) -> Meaning {
    event.1.meaning(&Policy::default(), at(event.0))
}

fn failed(event: &Event) -> bool {
    matches!(meaning(event), Meaning::Failed(_))
}

/// The failures since the last answer.
fn failures(events: &[Event]) -> &[Event] {
    let answers = events
        .iter()
        .rposition(|event| !failed(event))
        .map_or(0, |last| last + 1);
    &events[answers..]
}

fn last_answer(events: &[Event]) -> Option<&Event> {
    events.iter().rfind(|event| !failed(event))
}

/// Whether `now` lies within the life of `answer`, or before it by what clocks differ at most.
fn holds(answer: &Event, now: u64) -> bool {
    let default = match meaning(answer) {
        Meaning::Rules(_) => DAYS,
        _ => HOUR,
    };
    let life = answer.1.freshness().0.map_or(default, |life| life.as_secs());
    (answer.0.saturating_sub(MINUTE)..answer.0 + life.clamp(5 * MINUTE, DAYS)).contains(&now)
}

fn said_by(answer: &Event) -> Says {
    match meaning(answer) {
        Meaning::Rules(_) => Says::Rules(answer.0),
        Meaning::NoRobots => Says::NoRobots,
        Meaning::Soft404 => Says::Soft404,
        Meaning::Failed(_) => unreachable!("an answer"),
    }
}

/// What the table says at `now`, of a clock that only went on until the last event.
fn table(events: &[Event], now: u64) -> Says {
    if let Some(answer) = last_answer(events).filter(|answer| holds(answer, now)) {
        return said_by(answer);
    }
    let Some((since, _)) = failures(events).first() else {
        return Says::Unreachable;
    };
    if now.saturating_sub(*since) < 30 * DAYS {
        return Says::Unreachable;
    }
    events
        .iter()
        .rfind(|event| matches!(meaning(event), Meaning::Rules(_)))
        .map_or(Says::UnreachableTooLong, |(second, _)| Says::LastCopy(*second))
}

fn says(answer: Answer<'_>) -> Says {
    match answer {
        Answer::Rules(copy) => Says::Rules(second_of(copy.fetched)),
        Answer::NoRobots => Says::NoRobots,
        Answer::Soft404 => Says::Soft404,
        Answer::Unreachable(_) => Says::Unreachable,
        Answer::LastCopy(copy) => Says::LastCopy(second_of(copy.fetched)),
        Answer::UnreachableTooLong(_) => Says::UnreachableTooLong,
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_answer_is_the_tables(events in orderly_histories(), now in seconds()) {
        let history = played(&events);
        prop_assert_eq!(says(history.answer(now)), table(&events, now));
    }

    #[test]
    fn failures_younger_than_thirty_days_disallow_all_whatever_the_clock_did(
        events in histories(),
        now in seconds(),
    ) {
        let history = played(&events);
        let failures = failures(&events);
        let young = failures.iter().all(|(second, _)| now.saturating_sub(*second) < 30 * DAYS);
        let fresh = last_answer(&events).is_some_and(|answer| holds(answer, now));
        if !failures.is_empty() && young && !fresh {
            prop_assert!(matches!(history.answer(now), Answer::Unreachable(Some(_))));
        }
    }

    #[test]
    fn no_answer_is_used_past_its_time_whatever_the_clock_did(events in histories(), now in seconds()) {
        let history = played(&events);
        if let Some(answer) = last_answer(&events).filter(|answer| !holds(answer, now)) {
            if failures(&events).is_empty() {
                prop_assert_eq!(history.due(now), Due::Now);
            } else {
                prop_assert_ne!(says(history.answer(now)), said_by(answer));
            }
        }
    }

    #[test]
    fn an_origin_is_never_left_unasked_for_longer_than_a_day(events in orderly_histories()) {
        let history = played(&events);
        let last = events.last().expect("there is one").0;
        prop_assert_ne!(history.due(last + DAYS), Due::No);
        prop_assert!(history.expires() > last);
    }
}
