//! Tests when a failed fetch is tried again.

use super::*;

/// Repeats a fetch with the result `fetched` as soon as a retry is due. Returns the seconds between the fetches.
fn delays(fetched: &Fetched, tries: usize) -> Vec<u64> {
    let (mut history, mut now, mut delays) = (History::new(), 0, Vec::new());
    for _ in 0..tries {
        history = history.then(now, fetched.clone());
        let next = history.expires();
        assert_eq!(history.due(next - 1), Due::No, "{fetched:?} before second {next}");
        assert_ne!(history.due(next), Due::No, "{fetched:?} at second {next}");
        delays.push(next - now);
        now = next;
    }
    delays
}

#[test]
fn the_retry_delay_doubles_from_a_minute_to_an_hour() {
    let doubling = [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600];
    for fetched in [time_out(), received(500, ""), received(502, ""), received(206, RULES)] {
        assert_eq!(delays(&fetched, doubling.len()), doubling, "{fetched:?}");
    }
}

#[test]
fn a_busy_origin_is_retried_every_five_minutes() {
    for status in [503, 429] {
        assert_eq!(delays(&received(status, ""), 8), [300; 8], "{status}");
    }
}

#[test]
fn every_failure_of_a_series_doubles_the_delay() {
    let history = History::new()
        .then(0, time_out())
        .then(60, received(503, ""))
        .then(360, time_out());
    assert_eq!(history.expires(), 360 + 240);
}

#[test]
fn no_number_of_failures_overflows() {
    let mut history = History::new();
    for second in 0..100 {
        history = history.then(second, time_out());
    }
    assert_eq!(history.expires(), 99 + HOUR);
    let failure = failure_of(&time_out());
    let retry = Retry::default();
    assert_eq!(failure.retry_delay(u32::MAX, &retry), Duration::from_secs(HOUR));
    assert_eq!(failure.retry_delay(0, &retry), Duration::from_secs(MINUTE));
}

#[test]
fn retry_after_is_limited_to_between_ten_seconds_and_an_hour() {
    for (seconds, delay) in [
        (0, 10),
        (9, 10),
        (10, 10),
        (11, 11),
        (120, 120),
        (3599, 3599),
        (3600, 3600),
        (3601, 3600),
        (u64::from(u32::MAX), 3600),
    ] {
        for status in [503, 429, 500] {
            assert_eq!(
                delays(&with_retry_after(status, seconds), 3),
                [delay; 3],
                "{status}, Retry-After: {seconds}"
            );
        }
    }
}

#[test]
fn after_the_grace_period_retries_are_an_hour_apart() {
    let grace = 30 * DAYS;
    for (fetched, before) in [
        (time_out(), 120),
        (received(503, ""), 300),
        (with_retry_after(503, 10), 10),
    ] {
        let history = History::new().then(0, time_out());
        let history = history.then(grace - 1, fetched.clone());
        assert_eq!(
            history.expires(),
            grace - 1 + before,
            "{fetched:?} within the grace period"
        );
        let history = history.then(grace, fetched.clone());
        assert_eq!(history.expires(), grace + HOUR, "{fetched:?} after it");
        assert_eq!(history.due(grace + HOUR - 1), Due::No);
        assert_eq!(
            history.due(grace + HOUR),
            Due::Background,
            "requests do not wait for the retry"
        );
    }
}

#[test]
fn the_policy_sets_the_grace_period() {
    let history = History::under(denying_for(HOUR)).then(0, time_out());
    assert!(matches!(history.answer(HOUR - 1), Answer::Unreachable(Some(_))));
    assert!(matches!(history.answer(HOUR), Answer::UnreachableTooLong(_)));
}

#[test]
fn jitter_delays_a_retry_by_at_most_a_tenth() {
    for (fetched, delay) in [
        (time_out(), 60.0),
        (received(503, ""), 300.0),
        (with_retry_after(503, 100_000), 3600.0),
    ] {
        for (spread, part) in [
            (0.0, 1.0),
            (0.25, 1.025),
            (0.5, 1.05),
            (1.0, 1.1),
            (7.0, 1.1),
            (-7.0, 1.0),
        ] {
            let history = History::new().then_spread(0, fetched.clone(), spread);
            let expires = history.source_fetch().expires.expect("it failed");
            let waited = expires.duration_since(at(0)).expect("later").as_secs_f64();
            let expected = delay * part;
            assert!(
                (waited - expected).abs() < 1e-6,
                "{fetched:?}, {spread}: {waited} s, not {expected}"
            );
        }
    }
}

#[test]
fn a_short_grace_period_does_not_delay_the_first_retries() {
    let mut history = History::under(denying_for(0));
    for (second, retried_after) in [(0, 60), (60, 120), (180, 240), (11 * HOUR, 480), (12 * HOUR, HOUR)] {
        history = history.then(second, time_out());
        assert_eq!(history.expires(), second + retried_after, "second {second}");
    }
}

#[test]
fn the_policy_sets_the_retry_delays() {
    let retry = Retry {
        first: Duration::from_secs(2),
        busy: Duration::from_secs(7),
        longest: Duration::from_secs(9),
    };
    let policy = Policy {
        unreachable: Unreachable {
            retry,
            ..Unreachable::default()
        },
        ..Policy::default()
    };
    for (fetched, expected) in [
        (time_out(), vec![2, 4, 8, 9]),
        (received(503, ""), vec![7, 7]),
        (with_retry_after(503, 1), vec![9, 9]),
    ] {
        let (mut history, mut now) = (History::under(policy), 0);
        for delay in expected {
            history = history.then(now, fetched.clone());
            assert_eq!(history.expires() - now, delay, "{fetched:?}");
            now += delay;
        }
    }
}
