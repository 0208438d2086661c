//! Tests decisions that take more work than their budget allows.

use super::*;

#[test]
fn a_decision_over_its_budget_is_denied_as_too_complex() {
    let rules = slow_rules(1000);
    let reporting = bot(Enforcement::Report, &["AcmeBot"]);
    for (robots_identity, forwards) in [
        (RobotsIdentity::Token("AnyBot"), false),
        (RobotsIdentity::Bot(&reporting), true),
    ] {
        let decision = decide(robots_identity, &rules, &slow_path());
        assert_eq!(
            (decision.verdict, decision.reason, decision.rule),
            (Verdict::Deny, Reason::TooComplex, None)
        );
        assert_eq!(decision.forwarded, forwards, "{robots_identity:?}");
    }
    let short = decide(RobotsIdentity::Token("AnyBot"), &rules, "/");
    assert_eq!((short.verdict, short.reason), (Verdict::Allow, Reason::NoRule));
}

#[test]
fn the_engine_without_a_budget_always_decides() {
    let Known::Rules(copy) = slow_rules(1000) else {
        panic!("rules were asked for");
    };
    let (agent, path) = (copy.robots.agent("AnyBot"), slow_path());
    assert!(agent.decide(path.as_bytes()).allowed);
    assert_eq!(agent.decide_within(path.as_bytes(), &mut BUDGET.clone()), None);
}

#[test]
fn all_readings_of_a_request_share_one_budget() {
    let path = slow_path();
    let work = |count| {
        let Known::Rules(copy) = slow_rules(count) else {
            panic!("rules were asked for");
        };
        let mut left = usize::MAX;
        let found = copy.robots.agent("AnyBot").decide_within(path.as_bytes(), &mut left);
        assert!(found.is_some());
        usize::MAX - left
    };
    // One reading of the path stays within the budget, two exceed it.
    let count = 200;
    assert!(
        (BUDGET / 2..BUDGET).contains(&work(count)),
        "{} of {BUDGET}",
        work(count)
    );
    let rules = slow_rules(count);
    let once = decide(RobotsIdentity::Token("AnyBot"), &rules, &path);
    assert_eq!((once.verdict, once.reason), (Verdict::Allow, Reason::NoRule));
    let twice = decide(RobotsIdentity::Token("AnyBot"), &rules, &format!("/.{path}"));
    assert_eq!((twice.verdict, twice.reason), (Verdict::Deny, Reason::TooComplex));
}

#[test]
fn an_immediate_decision_equals_the_full_one() {
    let any = RobotsIdentity::Token("AnyBot");
    let at_once = |known: &Known, path: &str| {
        let ruled = undecided(question(any, path, PATH)).decide_at_once(known.lookup());
        let Ok(Ruled::Decided(decision)) = ruled else {
            return None;
        };
        Some((decision.verdict, decision.reason, decision.rule, decision.reading))
    };
    for path in ["/", "/private", "/x/../private"] {
        let rules = Known::rules(FILE);
        let later = decide(any, &rules, path);
        let later = (later.verdict, later.reason, later.rule, later.reading);
        assert_eq!(at_once(&rules, path), Some(later), "{path}");
    }
    assert_eq!(at_once(&slow_rules(200), &slow_path()), None);
}
