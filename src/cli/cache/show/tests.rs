use std::time::Duration;

use super::*;
use crate::{
    copy::{Failure, FetchError, Freshness, Meaning, OriginState, Policy, RobotsCopy},
    robots::Profile,
};

#[test]
fn show_prints_the_current_answer_and_the_text() {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let copy = RobotsCopy::new(Profile::Google, b"User-agent: *\r\nDisallow: /\x1b\n", then);
    let policy = Policy::default();
    let state = OriginState::unknown().after(
        Meaning::Rules(copy.into()),
        200,
        Freshness::default(),
        then,
        0.0,
        &policy,
    );
    let now = then + Duration::from_secs(90);
    let detail = Detail::of(&"http://a.example".parse().unwrap(), state, None, &policy, now);
    insta::assert_snapshot!(report(&detail, &policy.unreachable, now, Paint::none()), @r"
    Origin:           http://a.example
    Holds:            rules
    Meaning:          the rules of its robots.txt decide
    Status:           200
    Fetched:          2026-09-21 14:13 UTC, 1 min 30 s ago
    Until:            2026-09-22 14:13 UTC, in 23 h 58 min
    SHA-256:          2009641cc80f8b0c8b05fc6584430192cad8a5fef7a504ff954ecf08482e0232
    Bytes:            28

      1 | User-agent: *
      2 | Disallow: /\u{1b}
    ");
}

#[test]
fn show_says_when_a_failing_site_is_tried_again_and_how_long_it_is_refused() {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let policy = Policy::default();
    let fail = |state: OriginState, at| {
        let failure = Failure {
            error: FetchError::Status(500),
            retry_after: None,
        };
        state.after(Meaning::Failed(failure), 500, Freshness::default(), at, 0.0, &policy)
    };
    let shown = |state: OriginState, policy: &Policy, now| {
        let detail = Detail::of(&"http://a.example".parse().unwrap(), state, None, policy, now);
        report(&detail, &policy.unreachable, now, Paint::none())
    };
    let never = fail(OriginState::unknown(), then);
    insta::assert_snapshot!(shown(never.clone(), &policy, then + Duration::from_secs(9)), @"
    Origin:           http://a.example
    Holds:            unreachable
    Meaning:          the robots.txt cannot be fetched, so everything is disallowed
    Status:           500
    Last try:         2026-09-21 14:13 UTC, 9 s ago
    Next try:         2026-09-21 14:14 UTC, in 51 s, or later, when a bot asks
    Refused until:    2026-10-21 14:13 UTC, in 29 d 23 h, if the site still fails; then everything is allowed
    Failing since:    2026-09-21 14:13 UTC, 9 s ago
    Last failure:     the server answered 500
    ");
    let after_retry = shown(never.clone(), &policy, then + Duration::from_secs(90));
    assert!(
        after_retry.contains("\nNext try:         when a bot next asks\n"),
        "{after_retry}"
    );

    let mut without_end = policy;
    without_end.unreachable.then = Then::Deny;
    let shown_without_end = shown(never, &without_end, then);
    assert!(!shown_without_end.contains("Refused until"), "{shown_without_end}");

    let copy = RobotsCopy::new(Profile::Google, b"Disallow:\n", then);
    let rules = Meaning::Rules(copy.into());
    let once = OriginState::unknown().after(rules, 200, Freshness::default(), then, 0.0, &policy);
    let begun = then + Duration::from_secs(100_000);
    let state = fail(once, begun);
    insta::assert_snapshot!(shown(state.clone(), &policy, begun), @"
    Origin:           http://a.example
    Holds:            unreachable
    Meaning:          the robots.txt cannot be fetched, so everything is disallowed
    Status:           500
    Last try:         2026-09-22 18:00 UTC, 0 s ago
    Next try:         2026-09-22 18:01 UTC, in 1 min, or later, when a bot asks
    Refused until:    2026-10-22 18:00 UTC, in 30 d, if the site still fails; then the last copy decides
    Failing since:    2026-09-22 18:00 UTC, 0 s ago
    Last good answer: 2026-09-21 14:13 UTC, 27 h 46 min ago
    Last failure:     the server answered 500
    Last copy:        2026-09-21 14:13 UTC, 27 h 46 min ago, with status 200
    SHA-256:          36f6596a2f1f3f2fffb63b7d855d5cac0f4ee0cd6c30abd9c4f1dfcdad75d488
    Bytes:            10

      1 | Disallow:
    ");
    insta::assert_snapshot!(shown(state, &policy, begun + policy.unreachable.deny_for), @"
    Origin:           http://a.example
    Holds:            last-copy
    Meaning:          the site has been failing for so long that its last good robots.txt decides
    Status:           200
    Fetched:          2026-09-21 14:13 UTC, 31 d 3 h ago
    Last try:         2026-09-22 18:00 UTC, 30 d ago
    Next try:         when a bot next asks
    Failing since:    2026-09-22 18:00 UTC, 30 d ago
    Last good answer: 2026-09-21 14:13 UTC, 31 d 3 h ago
    Last failure:     the server answered 500
    SHA-256:          36f6596a2f1f3f2fffb63b7d855d5cac0f4ee0cd6c30abd9c4f1dfcdad75d488
    Bytes:            10

      1 | Disallow:
    ");
}

#[test]
fn the_text_is_shown_with_line_numbers() {
    for (text, shown) in [
        (&b""[..], ""),
        (b"a", "  1 | a\n"),
        (b"a\n\nb\n", "  1 | a\n  2 | \n  3 | b\n"),
    ] {
        assert_eq!(numbered(text, Paint::none()), shown);
    }
    assert_eq!(escaped(b"a\x1b\r\nb"), "a\\u{1b}\nb\n");
}
