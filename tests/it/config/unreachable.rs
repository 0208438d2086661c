//! `[robots.unreachable]`: accepted values, and how the default times adapt to those that are set.

use std::time::Duration;

use robotgate::copy::{Policy, Retry, Then, Unreachable, WithoutCopy};

use super::good;

fn parse(text: &str) -> Unreachable {
    good(&format!("[robots.unreachable]\n{text}")).robots.policy.unreachable
}

#[test]
fn the_defaults_equal_those_of_the_policy() {
    assert_eq!(good("").robots.policy, Policy::default());
    assert_eq!(parse(""), Unreachable::default());
    assert_eq!(good("").robots.policy.unreachable, Unreachable::default());
}

#[test]
fn every_key_of_the_unreachable_section_is_read() {
    let unreachable = parse(
        r#"
        deny-for = "2h"
        then = "last-copy"
        without-copy = "deny"
        retry-first = "2s"
        retry-busy = "3s"
        retry-longest = "4s"
        "#,
    );
    let expected = Unreachable {
        deny_for: Duration::from_secs(7200),
        then: Then::LastCopy,
        without_copy: WithoutCopy::Deny,
        retry: Retry {
            first: Duration::from_secs(2),
            busy: Duration::from_secs(3),
            longest: Duration::from_secs(4),
        },
    };
    assert_eq!(unreachable, expected);

    for (text, then) in [("allow", Then::Allow), ("deny", Then::Deny)] {
        let unreachable = parse(&format!("then = '{text}'"));
        assert_eq!(
            unreachable,
            Unreachable {
                then,
                ..Unreachable::default()
            }
        );
    }
    assert_eq!(parse("without-copy = 'deny'").without_copy, WithoutCopy::Deny);
}

#[test]
fn deny_for_may_be_zero_or_a_year() {
    assert_eq!(parse("deny-for = '0s'").deny_for, Duration::ZERO);
    assert_eq!(parse("deny-for = '365d'").deny_for, Duration::from_secs(365 * 86_400));
}

#[test]
fn default_retry_delays_do_not_exceed_the_longest() {
    let waits = |text: &str| {
        let retry = parse(text).retry;
        [retry.first, retry.busy, retry.longest].map(|wait| wait.as_secs())
    };
    assert_eq!(waits(""), [60, 300, 3600]);
    assert_eq!(waits("retry-longest = '2m'"), [60, 120, 120]);
    assert_eq!(waits("retry-longest = '1s'"), [1, 1, 1]);
    assert_eq!(waits("retry-longest = '1d'"), [60, 300, 86_400]);
    assert_eq!(waits("retry-first = '1h'\nretry-busy = '1s'"), [3600, 1, 3600]);
    assert_eq!(waits("retry-busy = '2h'\nretry-longest = '2h'"), [60, 7200, 7200]);
}
