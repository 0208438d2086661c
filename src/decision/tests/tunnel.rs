//! Tests decisions on a CONNECT.

use super::*;

const ALL_ALLOWED: &str = "User-agent: *\nAllow: /\n";
const ALL_DISALLOWED: &str = "User-agent: *\nDisallow: /\n";

#[test]
fn a_tunnel_is_decided_by_the_site_access_of_its_origin() {
    use Reason::{LastCopy, NoRobots, NoRule, Rule, Soft404, Unreachable, UnreachableTooLong, Unverifiable};
    for (known, verdict, reason, line) in [
        (Known::rules(""), Verdict::Allow, NoRule, None),
        (Known::rules(ALL_ALLOWED), Verdict::Allow, Rule, Some(2)),
        (
            Known::rules("User-agent: *\nDisallow:\n"),
            Verdict::Allow,
            Rule,
            Some(2),
        ),
        (Known::rules(ALL_DISALLOWED), Verdict::Deny, Rule, Some(2)),
        (
            Known::rules("User-agent: *\nDisallow: /a\nDisallow: *\n"),
            Verdict::Deny,
            Rule,
            Some(3),
        ),
        (Known::rules(FILE), Verdict::Unverifiable, Unverifiable, None),
        (
            Known::rules("User-agent: *\nDisallow: /\nAllow: /a\n"),
            Verdict::Unverifiable,
            Unverifiable,
            None,
        ),
        (Known::last_copy(""), Verdict::Allow, LastCopy, None),
        (Known::last_copy(ALL_ALLOWED), Verdict::Allow, LastCopy, Some(2)),
        (Known::last_copy(ALL_DISALLOWED), Verdict::Deny, LastCopy, Some(2)),
        (Known::last_copy(FILE), Verdict::Unverifiable, Unverifiable, None),
        (Known::NoRobots, Verdict::Allow, NoRobots, None),
        (Known::Soft404, Verdict::Allow, Soft404, None),
        (Known::Unreachable, Verdict::Deny, Unreachable, None),
        (Known::too_long(), Verdict::Allow, UnreachableTooLong, None),
    ] {
        let decision = decide_tunnel(RobotsIdentity::Token("AnyBot"), &known, false);
        let found = (decision.verdict, decision.reason, rule_line(&decision));
        assert_eq!(found, (verdict, reason, line), "{known:?}");
        assert_eq!(decision.forwarded, verdict == Verdict::Allow, "{known:?}");
    }
}

#[test]
fn a_tunnel_is_decided_by_the_bots_own_group() {
    let known = Known::rules("User-agent: *\nDisallow: /\n\nUser-agent: GoodBot\nDisallow:\n");
    for (token, verdict, line) in [("GoodBot", Verdict::Allow, 5), ("OtherBot", Verdict::Deny, 2)] {
        let decision = decide_tunnel(RobotsIdentity::Token(token), &known, false);
        assert_eq!(
            (decision.verdict, rule_line(&decision)),
            (verdict, Some(line)),
            "{token}"
        );
    }
}

#[test]
fn an_unverifiable_tunnel_needs_the_setting_or_a_reported_bot() {
    let known = Known::rules(FILE);
    let enforced = bot(Enforcement::Enforce, &["AcmeBot"]);
    let reported = bot(Enforcement::Report, &["AcmeBot"]);
    for (robots_identity, setting, forwards) in [
        (RobotsIdentity::Bot(&enforced), false, false),
        (RobotsIdentity::Bot(&enforced), true, true),
        (RobotsIdentity::Bot(&reported), false, true),
        (RobotsIdentity::Bot(&reported), true, true),
        (RobotsIdentity::Token("AnyBot"), false, false),
        (RobotsIdentity::Token("AnyBot"), true, true),
        (RobotsIdentity::Wildcard, false, false),
    ] {
        let decision = decide_tunnel(robots_identity, &known, setting);
        let found = (decision.verdict, decision.reason, decision.rule);
        assert_eq!(
            found,
            (Verdict::Unverifiable, Reason::Unverifiable, None),
            "{robots_identity:?} {setting}"
        );
        assert_eq!(decision.forwarded, forwards, "{robots_identity:?} {setting}");
    }
}

#[test]
fn the_unverifiable_setting_allows_no_denied_tunnel() {
    for known in [
        Known::rules(ALL_DISALLOWED),
        Known::last_copy(ALL_DISALLOWED),
        Known::Unreachable,
    ] {
        let decision = decide_tunnel(RobotsIdentity::Token("AnyBot"), &known, true);
        assert_eq!(
            (decision.verdict, decision.forwarded),
            (Verdict::Deny, false),
            "{known:?}"
        );
    }
    assert!(!decide_tunnel(RobotsIdentity::Refused(Reason::Unidentified), &Known::NoRobots, true).forwarded);
}

#[test]
fn report_forwards_a_tunnel_that_is_denied() {
    let reported = bot(Enforcement::Report, &["AcmeBot"]);
    let decision = decide_tunnel(RobotsIdentity::Bot(&reported), &Known::rules(ALL_DISALLOWED), false);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Deny, Reason::Rule));
    assert!(decision.forwarded);
}

#[test]
fn tunnels_of_exempt_and_unidentified_bots_need_no_copy() {
    let exempt = bot(Enforcement::Exempt, &["AcmeBot"]);
    let allowed = without_copy(tunnel(RobotsIdentity::Bot(&exempt))).expect("a decision without a copy");
    assert_eq!((allowed.verdict, allowed.reason), (Verdict::Allow, Reason::Exempt));
    assert!(allowed.forwarded);
    let denied =
        without_copy(tunnel(RobotsIdentity::Refused(Reason::Unidentified))).expect("a decision without a copy");
    assert_eq!((denied.verdict, denied.reason), (Verdict::Deny, Reason::Unidentified));
    assert!(!denied.forwarded);
}

#[test]
fn every_connect_is_denied_if_the_mode_refuses_connect() {
    let bots = [Enforcement::Enforce, Enforcement::Report, Enforcement::Exempt].map(|how| bot(how, &["AcmeBot"]));
    let askers = bots.iter().map(RobotsIdentity::Bot);
    for robots_identity in askers.chain([
        RobotsIdentity::Token("AnyBot"),
        RobotsIdentity::Wildcard,
        RobotsIdentity::Refused(Reason::Unidentified),
    ]) {
        let decision = connect_refused(robots_identity);
        let found = (decision.verdict, decision.reason, decision.rule);
        assert_eq!(
            found,
            (Verdict::Deny, Reason::ConnectRefused, None),
            "{robots_identity:?}"
        );
        assert!(!decision.forwarded, "{robots_identity:?}");
    }
}

#[test]
fn a_prohibited_origin_is_denied_to_every_bot() {
    let bots = [Enforcement::Enforce, Enforcement::Report].map(|how| bot(how, &["AcmeBot"]));
    let exempt = bot(Enforcement::Exempt, &["AcmeBot"]);
    let askers = bots.iter().map(RobotsIdentity::Bot);
    let known = Known::prohibited();
    for robots_identity in askers.chain([RobotsIdentity::Token("AnyBot"), RobotsIdentity::Wildcard]) {
        for decision in [
            egress(robots_identity),
            decide(robots_identity, &known, "/"),
            decide_tunnel(robots_identity, &known, true),
        ] {
            let found = (decision.verdict, decision.reason, decision.rule, decision.forwarded);
            assert_eq!(
                found,
                (Verdict::Deny, Reason::Egress, None, false),
                "{robots_identity:?}"
            );
        }
    }
    for robots_identity in [
        RobotsIdentity::Bot(&exempt),
        RobotsIdentity::Refused(Reason::Unidentified),
    ] {
        let decision = egress(robots_identity);
        assert_eq!(
            (decision.reason, decision.forwarded),
            (Reason::Egress, false),
            "{robots_identity:?}"
        );
    }
    assert_eq!(known.lookup().answer(&Policy::default()).holds().as_str(), "egress");
    // Bots may reach the origin, but its robots.txt redirects to a forbidden address.
    let redirected = Known::Failed(FetchError::Redirect("http://10.0.0.1/".to_owned()).into());
    let decision = decide(RobotsIdentity::Token("AnyBot"), &redirected, "/");
    assert_eq!(decision.reason, Reason::Unreachable);
}
