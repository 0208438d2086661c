//! Tests the answer for an origin that keeps failing, under different policies.

use super::*;

fn policy(deny_for: u64, then: Then, without_copy: WithoutCopy) -> Policy {
    let mut policy = denying_for(deny_for);
    policy.unreachable.then = then;
    policy.unreachable.without_copy = without_copy;
    policy
}

fn says(answer: Answer<'_>) -> &'static str {
    match answer {
        Answer::Unreachable(Some(_)) => "deny",
        Answer::LastCopy(..) => "last copy",
        Answer::UnreachableTooLong(_) => "allow",
        other => panic!("not of a failing origin: {other:?}"),
    }
}

#[test]
fn after_the_grace_period_the_policy_sets_the_answer() {
    const GRACE: u64 = 10 * HOUR;
    for (then, without_copy, with, without) in [
        (Then::LastCopy, WithoutCopy::Allow, "last copy", "allow"),
        (Then::LastCopy, WithoutCopy::Deny, "last copy", "deny"),
        (Then::Allow, WithoutCopy::Allow, "allow", "allow"),
        (Then::Allow, WithoutCopy::Deny, "allow", "allow"),
        (Then::Deny, WithoutCopy::Allow, "deny", "deny"),
        (Then::Deny, WithoutCopy::Deny, "deny", "deny"),
    ] {
        let known = History::under(policy(GRACE, then, without_copy))
            .then(0, received(200, RULES))
            .then(DAYS, time_out());
        let unknown = History::under(policy(GRACE, then, without_copy)).then(DAYS, time_out());
        for (second, expected) in [(DAYS, ["deny"; 2]), (DAYS + GRACE - 1, ["deny"; 2])]
            .into_iter()
            .chain([(DAYS + GRACE, [with, without]), (99 * DAYS, [with, without])])
        {
            let found = [&known, &unknown].map(|history| says(history.answer(second)));
            assert_eq!(found, expected, "{then:?} {without_copy:?}, second {second}");
        }
    }
}

#[test]
fn without_a_grace_period_the_first_failure_uses_the_last_copy() {
    let by_the_letter = policy(0, Then::LastCopy, WithoutCopy::Deny);
    let history = History::under(by_the_letter)
        .then(0, received(200, RULES))
        .then(DAYS, time_out());
    assert_eq!(says(history.answer(DAYS)), "last copy");
    let history = History::under(by_the_letter).then(0, time_out());
    assert_eq!(says(history.answer(0)), "deny");
    assert_eq!(says(history.answer(99 * DAYS)), "deny");
}

#[test]
fn a_pending_fetch_counts_as_the_first_failure() {
    let late = failure_of(&time_out());
    for (deny_for, expected) in [(0, "last copy"), (1, "deny"), (30 * DAYS, "deny")] {
        let policy = policy(deny_for, Then::LastCopy, WithoutCopy::Allow);
        let history = History::under(policy).then(0, received(200, RULES));
        let answer = history.state.answer_while_pending(&late, &policy);
        assert_eq!(says(answer), expected, "deny for {deny_for} s");
    }
}

#[test]
fn a_forward_jump_moves_failures_noted_since_the_start() {
    let wrong = 40 * DAYS;
    let jump = Jump::Forward {
        from: at(0),
        to: at(100),
        by: Duration::from_secs(wrong),
    };
    let history = History::new().then(10, received(200, RULES)).then(50, time_out());
    let state = history.state.after_jump(&jump);
    assert_eq!(state.failing_since(), Some(at(wrong + 50)));
    let history = History { state, ..history };
    assert_eq!(says(history.answer(wrong + 120)), "deny");
    assert_eq!(history.due(wrong + 100), Due::No, "the retry is as far off as it was");
    assert_eq!(history.due(wrong + 110), Due::Now);
    let history = history.then(wrong + 120, time_out());
    assert_eq!(says(history.answer(wrong + 50 + 30 * DAYS - 1)), "deny");
    assert_eq!(says(history.answer(wrong + 50 + 30 * DAYS)), "last copy");
}

#[test]
fn a_forward_jump_leaves_failures_outside_its_span_unchanged() {
    let jump = Jump::Forward {
        from: at(10 * DAYS),
        to: at(11 * DAYS),
        by: Duration::from_secs(40 * DAYS),
    };
    // The clock is known to have been wrong only between days 10 and 11. So failures at other times stay as they are.
    for second in [9 * DAYS, 12 * DAYS] {
        let history = History::new().then(second, time_out());
        assert_eq!(history.state.after_jump(&jump), history.state, "second {second}");
    }
}

#[test]
fn a_pending_fetch_of_an_unknown_origin_denies() {
    let late = failure_of(&time_out());
    for then in [Then::LastCopy, Then::Allow, Then::Deny] {
        let policy = policy(0, then, WithoutCopy::Allow);
        let history = History::under(policy);
        let answer = history.state.answer_while_pending(&late, &policy);
        assert_eq!(says(answer), "deny", "{then:?}");
    }
}

#[test]
fn an_answer_ends_the_failures_under_any_policy() {
    for then in [Then::LastCopy, Then::Allow, Then::Deny] {
        let history = History::under(policy(HOUR, then, WithoutCopy::Deny))
            .then(0, time_out())
            .then(2 * HOUR, received(200, RULES));
        assert!(matches!(history.answer(2 * HOUR), Answer::Rules(_)), "{then:?}");
    }
}

#[test]
fn an_origin_that_the_egress_guard_refuses_is_always_denied() {
    let prohibited = Fetched::Failed(FetchError::Prohibited("10.0.0.1 is a private address".to_owned()).into());
    for then in [Then::LastCopy, Then::Allow] {
        let unknown = History::under(policy(HOUR, then, WithoutCopy::Allow));
        let known = History::under(policy(HOUR, then, WithoutCopy::Allow)).then(0, received(200, RULES));
        for history in [unknown, known] {
            let history = history.then(DAYS, prohibited.clone());
            assert_eq!(says(history.answer(99 * DAYS)), "deny", "{then:?}");
            assert!(history.state.is_prohibited());
        }
    }
}

#[test]
fn the_time_of_egress_refusals_does_not_count_as_a_failure_of_the_site() {
    let prohibited = Fetched::Failed(FetchError::Prohibited("10.0.0.1 is a private address".to_owned()).into());
    let opened = History::under(policy(HOUR, Then::Allow, WithoutCopy::Allow))
        .then(0, prohibited.clone())
        .then(10 * DAYS, prohibited)
        .then(11 * DAYS, received(503, ""));
    assert_eq!(says(opened.answer(11 * DAYS + HOUR - 1)), "deny");
    assert_eq!(says(opened.answer(11 * DAYS + HOUR)), "allow");
}
