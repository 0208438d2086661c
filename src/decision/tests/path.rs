//! Tests decisions on a path.

use super::*;

#[test]
fn a_path_gets_its_verdict_reason_and_rule() {
    use Reason::{LastCopy, NoRobots, NoRule, Rule, Soft404, Unreachable, UnreachableTooLong};
    use Verdict::{Allow, Deny};
    let rules = Known::rules(FILE);
    let last = Known::last_copy(FILE);
    for (known, token, path, verdict, reason, line) in [
        (&rules, "AnyBot", "/", Allow, NoRule, None),
        (&rules, "AnyBot", "/private", Deny, Rule, Some(2)),
        (&rules, "AnyBot", "/private?q", Deny, Rule, Some(2)),
        (&rules, "AnyBot", "/private/open", Allow, Rule, Some(3)),
        (&rules, "AnyBot", "/Private", Allow, NoRule, None),
        (&rules, "NamedBot", "/private", Allow, NoRule, None),
        (&rules, "namedbot", "/named", Deny, Rule, Some(6)),
        (&last, "AnyBot", "/", Allow, LastCopy, None),
        (&last, "AnyBot", "/private", Deny, LastCopy, Some(2)),
        (&last, "AnyBot", "/private/open", Allow, LastCopy, Some(3)),
        (&Known::rules(""), "AnyBot", "/", Allow, NoRule, None),
        (&Known::NoRobots, "AnyBot", "/private", Allow, NoRobots, None),
        (&Known::Soft404, "AnyBot", "/private", Allow, Soft404, None),
        (&Known::Unreachable, "AnyBot", "/", Deny, Unreachable, None),
        (
            &Known::too_long(),
            "AnyBot",
            "/private",
            Allow,
            UnreachableTooLong,
            None,
        ),
    ] {
        let decision = decide(RobotsIdentity::Token(token), known, path);
        let found = (decision.verdict, decision.reason, rule_line(&decision));
        assert_eq!(found, (verdict, reason, line), "{token} {path} {known:?}");
        assert_eq!(decision.enforcement, Enforcement::Enforce, "{token} {path}");
        assert_eq!(decision.forwarded, verdict == Allow, "{token} {path}");
    }
}

#[test]
fn an_empty_disallow_is_a_rule_that_allows() {
    let known = Known::rules("User-agent: *\nDisallow:\n");
    let decision = decide(RobotsIdentity::Wildcard, &known, "/any");
    assert_eq!((decision.verdict, decision.reason), (Verdict::Allow, Reason::Rule));
    assert_eq!(rule_line(&decision), Some(2));
}

#[test]
fn the_stricter_of_two_readings_decides() {
    let known = Known::rules(FILE);
    for (path, verdict, reason, line) in [
        // Disallowed only in the normalized reading.
        ("/x/../private", Verdict::Deny, Reason::Rule, Some(2)),
        ("/%70rivate", Verdict::Deny, Reason::Rule, Some(2)),
        ("/./private", Verdict::Deny, Reason::Rule, Some(2)),
        ("/private/open/../shut", Verdict::Deny, Reason::Rule, Some(2)),
        // Disallowed only as sent.
        ("/private/../public", Verdict::Deny, Reason::Rule, Some(2)),
        ("/private/%61", Verdict::Deny, Reason::Rule, Some(2)),
        // Allowed in both readings: the result is that of the path as sent.
        ("/private/open/%61", Verdict::Allow, Reason::Rule, Some(3)),
        ("/private/open/../open", Verdict::Allow, Reason::Rule, Some(3)),
        ("/public/%61", Verdict::Allow, Reason::NoRule, None),
        ("/public/../private/open", Verdict::Allow, Reason::NoRule, None),
    ] {
        let decision = decide(RobotsIdentity::Token("AnyBot"), &known, path);
        let found = (decision.verdict, decision.reason, rule_line(&decision));
        assert_eq!(found, (verdict, reason, line), "{path}");
    }
}

#[test]
fn if_two_readings_are_disallowed_the_rule_of_the_sent_one_is_named() {
    let known = Known::rules("User-agent: *\nDisallow: /a/%62\nDisallow: /a/b\n");
    let decision = decide(RobotsIdentity::Wildcard, &known, "/a/%62");
    assert_eq!(rule_line(&decision), Some(2));
}

#[test]
fn the_robots_file_itself_is_always_allowed() {
    let nothing_allowed = Known::rules("User-agent: *\nDisallow: /\n");
    let exempt = bot(Enforcement::Exempt, &["AcmeBot"]);
    for robots_identity in [
        RobotsIdentity::Token("AnyBot"),
        RobotsIdentity::Wildcard,
        RobotsIdentity::Refused(Reason::Unidentified),
        RobotsIdentity::Bot(&exempt),
    ] {
        for known in [&nothing_allowed, &Known::Unreachable] {
            // The fragment is not sent to the origin.
            for path in ["/robots.txt", "/robots.txt#f"] {
                let decision = decide(robots_identity, known, path);
                assert_eq!(
                    (decision.verdict, decision.reason, decision.rule),
                    (Verdict::Allow, Reason::RobotsFile, None),
                    "{robots_identity:?} {known:?}"
                );
                assert!(decision.forwarded, "{robots_identity:?} {known:?}");
            }
        }
    }
}

#[test]
fn paths_similar_to_robots_txt_are_decided_by_the_rules() {
    let known = Known::rules("User-agent: *\nDisallow: /\n");
    for path in [
        "/robots.txt?x",
        "/robots.txt?",
        "/ROBOTS.txt",
        "/./robots.txt",
        "/x/../robots.txt",
        "/%72obots.txt",
        "/robots%2Etxt",
        "/robots.txt/",
        "/robots.txt/../secret",
        "//robots.txt",
        "/robots.txt;v=1",
        "/a/robots.txt",
    ] {
        let decision = decide(RobotsIdentity::Token("AnyBot"), &known, path);
        assert_eq!(
            (decision.verdict, decision.reason),
            (Verdict::Deny, Reason::Rule),
            "{path}"
        );
        assert_eq!(rule_line(&decision), Some(2), "{path}");
    }
}

#[test]
fn an_exempt_bot_needs_no_copy() {
    let exempt = bot(Enforcement::Exempt, &["AcmeBot"]);
    let decision = without_copy(question(RobotsIdentity::Bot(&exempt), "/private", PATH));
    let decision = decision.expect("a decision without a copy");
    assert_eq!((decision.verdict, decision.reason), (Verdict::Allow, Reason::Exempt));
    assert_eq!(decision.enforcement, Enforcement::Exempt);
    assert!(decision.forwarded);
}

#[test]
fn an_unidentified_bot_is_denied_without_a_copy() {
    let decision = without_copy(question(RobotsIdentity::Refused(Reason::Unidentified), "/", PATH));
    let decision = decision.expect("a decision without a copy");
    assert_eq!(
        (decision.verdict, decision.reason),
        (Verdict::Deny, Reason::Unidentified)
    );
    assert!(!decision.forwarded);
}

#[test]
fn other_bots_are_decided_with_a_copy() {
    let enforced = bot(Enforcement::Enforce, &["AcmeBot"]);
    let reported = bot(Enforcement::Report, &["AcmeBot"]);
    for robots_identity in [
        RobotsIdentity::Bot(&enforced),
        RobotsIdentity::Bot(&reported),
        RobotsIdentity::Token("AnyBot"),
        RobotsIdentity::Wildcard,
    ] {
        assert!(
            without_copy(question(robots_identity, "/", PATH)).is_none(),
            "{robots_identity:?}"
        );
        assert!(without_copy(tunnel(robots_identity)).is_none(), "{robots_identity:?}");
    }
}

#[test]
fn the_enforcement_report_forwards_denied_requests() {
    let reported = bot(Enforcement::Report, &["AcmeBot"]);
    for (known, path, reason) in [
        (Known::rules(FILE), "/private", Reason::Rule),
        (Known::last_copy(FILE), "/private", Reason::LastCopy),
        (Known::Unreachable, "/", Reason::Unreachable),
    ] {
        let decision = decide(RobotsIdentity::Bot(&reported), &known, path);
        assert_eq!(
            (decision.verdict, decision.reason),
            (Verdict::Deny, reason),
            "{known:?}"
        );
        assert_eq!(decision.enforcement, Enforcement::Report, "{known:?}");
        assert!(decision.forwarded, "{known:?}");
    }
}

#[test]
fn the_general_enforcement_applies_only_to_unconfigured_clients() {
    let enforced = bot(Enforcement::Enforce, &["AcmeBot"]);
    for (robots_identity, reason, forwarded) in [
        (RobotsIdentity::Token("AnyBot"), Reason::Rule, true),
        (RobotsIdentity::Wildcard, Reason::Rule, true),
        (RobotsIdentity::Bot(&enforced), Reason::Rule, false),
        (
            RobotsIdentity::Refused(Reason::Unidentified),
            Reason::Unidentified,
            true,
        ),
        (RobotsIdentity::Refused(Reason::Identity), Reason::Identity, false),
    ] {
        let mut question = question(robots_identity, "/private", PATH);
        question.terms.enforcement = Enforcement::Report;
        let decision = decided(question, &Known::rules(FILE));
        assert_eq!(
            (decision.verdict, decision.reason, decision.forwarded),
            (Verdict::Deny, reason, forwarded),
            "{robots_identity:?}"
        );
    }
    // A client that has a proof or sends several User-Agent fields gets `enforce`. Otherwise, a configured bot that
    // hides its name could evade its own enforcement.
    let mut several = question(RobotsIdentity::Refused(Reason::Unidentified), "/", PATH);
    several.terms.enforcement = Enforcement::Report;
    several.subject.identity = Identity::Unidentified(Cause::Several);
    let mut proven = question(RobotsIdentity::Refused(Reason::Unidentified), "/", PATH);
    proven.terms.enforcement = Enforcement::Report;
    proven.subject.proof = Some("credential");
    for mut question in [several, proven] {
        let decision = decided(question.clone(), &Known::rules(FILE));
        assert_eq!((decision.reason, decision.forwarded), (Reason::Unidentified, false));
        question.terms.unidentified = Unidentified::Wildcard;
        question.target.path = b"/private".to_vec();
        let decision = decided(question, &Known::rules(FILE));
        assert_eq!((decision.reason, decision.forwarded), (Reason::Rule, false));
    }
}
