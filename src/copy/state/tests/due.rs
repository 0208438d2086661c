//! Tests when to fetch, how long a response stays fresh, and a clock that runs backwards.

use super::*;
use crate::copy::Lookup;

#[test]
fn a_copy_becomes_due_in_the_background_and_then_before_its_use() {
    let history = History::new().then(0, received_for(200, 1000));
    for (second, due) in [
        (0, Due::No),
        (799, Due::No),
        (800, Due::Background),
        (999, Due::Background),
        (1000, Due::Now),
        (100 * DAYS, Due::Now),
    ] {
        assert_eq!(history.due(second), due, "second {second}");
    }
}

#[test]
fn refresh_times_do_not_depend_on_the_answer() {
    for fetched in [received(404, ""), received(500, "File not found"), received(200, "")] {
        let history = History::new().then(0, fetched.clone());
        let life = history.expires();
        assert_eq!(history.due(life * 8 / 10 - 1), Due::No, "{fetched:?}");
        assert_eq!(history.due(life * 8 / 10), Due::Background, "{fetched:?}");
        assert_eq!(history.due(life), Due::Now, "{fetched:?}");
    }
}

#[test]
fn an_answer_from_before_a_backward_jump_is_fetched_again() {
    let history = History::new().then(20 * HOUR, received(200, RULES));
    let back = Jump::Back { ahead: at(30 * HOUR) };
    let state = history.state.after_jump(&back);
    // Without `after_jump`, the copy would look ten hours younger than it is.
    let now = at(20 * HOUR);
    assert_eq!(state.due(now, &history.policy), Due::Now);
    assert_eq!(state.answer(now, &history.policy), Answer::Unreachable(None));
    assert_eq!(state.etag(), history.state.etag(), "its rules may still be confirmed");
    let later = History::new().then(31 * HOUR, received(200, RULES));
    assert_eq!(later.state.after_jump(&back), later.state);
}

#[test]
fn a_failing_origin_is_not_due_until_its_retry() {
    let history = History::new().then(0, time_out());
    for (second, due) in [(0, Due::No), (59, Due::No), (60, Due::Now), (29 * DAYS, Due::Now)] {
        assert_eq!(history.due(second), due, "second {second}");
        assert!(
            matches!(history.answer(second), Answer::Unreachable(Some(_))),
            "second {second}"
        );
    }
}

#[test]
fn a_fresh_copy_stays_valid_while_its_refresh_fails() {
    let history = History::new().then(0, received_for(200, 1000)).then(800, time_out());
    for (second, due) in [
        (800, Due::No),
        (859, Due::No),
        (860, Due::Background),
        (999, Due::Background),
    ] {
        assert_eq!(history.due(second), due, "second {second}");
        assert!(matches!(history.answer(second), Answer::Rules(_)), "second {second}");
    }
    assert_eq!(
        history.due(1000),
        Due::Now,
        "after the copy expires, requests wait for the overdue retry"
    );
    assert!(matches!(history.answer(1000), Answer::Unreachable(Some(_))));
}

#[test]
fn a_copy_that_expires_before_the_retry_denies_without_a_fetch() {
    let history = History::new().then(0, received_for(200, 1000)).then(990, time_out());
    assert!(matches!(history.answer(999), Answer::Rules(_)));
    assert!(matches!(history.answer(1000), Answer::Unreachable(Some(_))));
    assert_eq!(history.due(1000), Due::No);
    assert_eq!(history.due(1050), Due::Now);
}

#[test]
fn the_lifetime_of_an_answer_has_defaults_and_bounds() {
    let rules = |life| match life {
        Some(seconds) => received_for(200, seconds),
        None => received(200, RULES),
    };
    let no_robots = |life| match life {
        Some(seconds) => received_for(404, seconds),
        None => received(404, ""),
    };
    for (fetched, life) in [
        (rules(None), DAYS),
        (rules(Some(0)), 5 * MINUTE),
        (rules(Some(299)), 5 * MINUTE),
        (rules(Some(300)), 5 * MINUTE),
        (rules(Some(HOUR)), HOUR),
        (rules(Some(DAYS)), DAYS),
        (rules(Some(DAYS + 1)), DAYS),
        (rules(Some(u64::from(u32::MAX))), DAYS),
        (no_robots(None), HOUR),
        (no_robots(Some(0)), 5 * MINUTE),
        (no_robots(Some(2 * HOUR)), 2 * HOUR),
        (no_robots(Some(2 * DAYS)), DAYS),
        (received(500, "Page not found"), HOUR),
        (Fetched::TooManyRedirects { status: 302 }, HOUR),
    ] {
        let history = History::new().then(7, fetched.clone());
        assert_eq!(history.expires(), 7 + life, "{fetched:?}");
    }
}

#[test]
fn ttl_bounds_apply_to_defaults_and_max_wins_over_min() {
    let seconds = Duration::from_secs;
    let policy = |min_ttl, max_ttl| Policy {
        min_ttl: seconds(min_ttl),
        max_ttl: seconds(max_ttl),
        ..Policy::default()
    };
    for (policy, fetched, life) in [
        (policy(1, 60), received(200, RULES), 60),
        (policy(1, 60), received(404, ""), 60),
        (policy(2 * HOUR, DAYS), received(404, ""), 2 * HOUR),
        (policy(100, 50), received_for(200, 70), 50),
    ] {
        assert_eq!(History::under(policy).then(0, fetched).expires(), life, "{policy:?}");
    }
}

#[test]
fn a_copy_is_due_if_the_clock_is_set_back_by_over_a_minute() {
    let history = History::new().then(1000, received(200, RULES));
    for (second, due) in [
        (1000, Due::No),
        (999, Due::No),
        (940, Due::No),
        (939, Due::Now),
        (0, Due::Now),
    ] {
        assert_eq!(history.due(second), due, "second {second}");
    }
}

#[test]
fn a_clock_set_back_makes_a_failing_origin_due_but_allows_nothing() {
    let history = History::new().then(1000, time_out());
    for (second, due) in [(1000, Due::No), (940, Due::No), (939, Due::Now), (0, Due::Now)] {
        assert_eq!(history.due(second), due, "second {second}");
        assert!(
            matches!(history.answer(second), Answer::Unreachable(Some(_))),
            "second {second}"
        );
    }
}

#[test]
fn a_failure_on_a_clock_set_back_ends_the_later_answer() {
    let history = History::new().then(2 * DAYS, received(404, "")).then(DAYS, time_out());
    assert!(matches!(history.answer(DAYS), Answer::Unreachable(Some(_))));
    assert_eq!(history.due(DAYS), Due::No);
    assert_eq!(history.due(DAYS + MINUTE), Due::Now);
}

#[test]
fn a_clock_set_back_does_not_shorten_the_grace_period() {
    let history = History::new().then(50 * DAYS, time_out()).then(10 * DAYS, time_out());
    assert!(matches!(history.answer(40 * DAYS - 1), Answer::Unreachable(Some(_))));
}

#[test]
fn a_wrong_clock_during_one_failure_does_not_end_the_grace_period() {
    let history = History::new()
        .then(50 * DAYS, time_out())
        .then(10 * DAYS, time_out())
        .then(50 * DAYS + 600, time_out());
    let answer = history.answer(50 * DAYS + 601);
    assert!(matches!(answer, Answer::Unreachable(Some(_))), "{answer:?}");
}

#[test]
fn after_a_failure_a_month_ago_the_origin_is_tried_before_use() {
    let history = History::new().then(0, received(503, ""));
    assert_eq!(history.due(31 * DAYS), Due::Now);
    let history = history.then(31 * DAYS, time_out());
    assert_eq!(
        history.due(31 * DAYS + HOUR + MINUTE),
        Due::Background,
        "it is asked hourly"
    );
}

#[test]
fn an_expired_copy_that_was_confirmed_is_still_known() {
    let confirmed = Fetched::NotModified {
        freshness: Freshness::default(),
    };
    for history in [
        History::new().then(0, received(200, RULES)),
        History::new().then(0, received(200, RULES)).then(HOUR, confirmed),
    ] {
        let (policy, state) = (history.policy, Arc::new(history.state));
        let lookup = Lookup::of_held(state, at(100 * DAYS), &policy);
        assert!(matches!(lookup.answer(&policy), Answer::Rules(_)), "{lookup:?}");
    }
    let unknown = Lookup::of_held(Arc::new(OriginState::unknown()), at(0), &Policy::default());
    assert!(!unknown.state.is_known());
}
