//! Tests the reasons, decisions without a required proof, and `Retry-After`.

use std::collections::HashSet;

use super::*;

#[test]
fn every_reason_is_reached_by_some_decision() {
    let exempt = bot(Enforcement::Exempt, &["AcmeBot"]);
    let any = RobotsIdentity::Token("AnyBot");
    let reached: HashSet<Reason> = [
        decide(any, &Known::rules(FILE), "/private"),
        decide(any, &Known::rules(FILE), "/"),
        decide(any, &Known::rules(FILE), "/robots.txt"),
        decide(any, &Known::NoRobots, "/"),
        decide(any, &Known::Soft404, "/"),
        decide(any, &Known::Unreachable, "/"),
        decide(any, &Known::last_copy(FILE), "/"),
        decide(any, &Known::too_long(), "/"),
        decide(RobotsIdentity::Bot(&exempt), &Known::Unreachable, "/"),
        decide(RobotsIdentity::Refused(Reason::Unidentified), &Known::NoRobots, "/"),
        decide(RobotsIdentity::Refused(Reason::Identity), &Known::NoRobots, "/"),
        decide(RobotsIdentity::Refused(Reason::Unauthenticated), &Known::NoRobots, "/"),
        decide_tunnel(any, &Known::rules(FILE), false),
        connect_refused(any),
        egress(any),
        names_user(any),
        decide(any, &slow_rules(1000), &slow_path()),
        decide(any, &Known::NoRobots, "/").deferred(Deferral {
            at: at(0),
            not_before: at(1),
            cause: crate::pace::Cause::Delay,
        }),
        usage::refused(),
    ]
    .map(|decision| decision.reason)
    .into();
    let missing: Vec<_> = Reason::ALL.iter().filter(|reason| !reached.contains(reason)).collect();
    assert!(missing.is_empty(), "no decision of this list has {missing:?}");
}

#[test]
fn an_answer_without_rules_has_the_same_word_as_its_reason() {
    for known in [
        Known::NoRobots,
        Known::Soft404,
        Known::Failed(FetchError::Status(503).into()),
        Known::prohibited(),
        Known::last_copy(FILE),
        Known::too_long(),
    ] {
        let lookup = known.lookup();
        let holds = lookup.answer(&Policy::default()).holds();
        let decision = decide(RobotsIdentity::Token("AnyBot"), &known, "/");
        assert_eq!(holds.as_str(), decision.reason.as_str(), "{known:?}");
    }
}

#[test]
fn every_reason_and_verdict_has_a_unique_token() {
    let names: HashSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(names.len(), Reason::ALL.len());
    let verdicts = Verdict::ALL.map(Verdict::as_str);
    for name in names.into_iter().chain(verdicts) {
        assert!(sfv::TokenRef::from_str(name).is_ok(), "{name}");
    }
}

#[test]
fn phrases_and_sentences_are_plain_lines() {
    for reason in Reason::ALL {
        for text in [reason.phrase(), reason.sentence()] {
            assert!(!text.is_empty(), "{reason:?}");
            assert!(
                text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
                "{reason:?}: {text:?}"
            );
            assert!(!text.contains("  "), "{reason:?}: {text:?}");
        }
        assert!(reason.sentence().ends_with('.'), "{reason:?}");
    }
}

#[test]
fn the_sentence_of_a_decision_depends_on_the_verdict_and_the_scheme() {
    let any = RobotsIdentity::Token("AnyBot");
    let rules = Known::rules("User-agent: *\nDisallow: /private\nAllow: /private/open\n");
    for (path, sentence) in [
        ("/private", "A rule of the site's robots.txt disallows this URL."),
        ("/private/open", "A rule of the site's robots.txt allows this URL."),
    ] {
        assert_eq!(decide(any, &rules, path).sentence(), sentence, "{path}");
    }
    let mut decision = decide(RobotsIdentity::Refused(Reason::Unauthenticated), &rules, "/");
    for (scheme, speaks_of_connect) in [(Scheme::Http, false), (Scheme::Https, true)] {
        decision.question.target.origin.scheme = scheme;
        assert_eq!(decision.sentence().contains("CONNECT"), speaks_of_connect, "{scheme:?}");
    }
    decision.question.subject.proof = Some("failed");
    for (scheme, speaks_of_connect) in [(Scheme::Http, false), (Scheme::Https, true)] {
        decision.question.target.origin.scheme = scheme;
        let sentence = decision.sentence();
        assert!(
            sentence.starts_with("The client's credential is not valid."),
            "{sentence}"
        );
        assert_eq!(sentence.contains("CONNECT"), speaks_of_connect, "{scheme:?}");
    }
}

#[test]
fn the_phrase_of_a_denial_begins_with_disallowed() {
    for reason in Reason::ALL {
        let phrase = reason.phrase();
        if reason.what_to_do().is_empty() {
            assert_eq!(phrase, "allow", "{reason:?} never refuses");
            continue;
        }
        assert!(phrase.starts_with("Disallowed"), "{reason:?}: {phrase}");
        assert!(
            phrase.len() <= 64,
            "{reason:?}: it has to fit into a line of an error message"
        );
    }
}

#[test]
fn a_bot_without_its_required_proof_is_denied_everything() {
    for reason in [Reason::Identity, Reason::Unauthenticated] {
        let robots_identity = RobotsIdentity::Refused(reason);
        for decision in [
            decide(robots_identity, &Known::NoRobots, "/"),
            decide(robots_identity, &Known::NoRobots, "/robots.txt"),
            decide_tunnel(robots_identity, &Known::NoRobots, true),
        ] {
            assert_eq!((decision.verdict, decision.reason), (Verdict::Deny, reason));
            assert!(!decision.forwarded, "{reason:?}");
        }
    }
    let unproven = RobotsIdentity::Refused(Reason::Unauthenticated);
    assert_eq!(connect_refused(unproven).reason, Reason::Unauthenticated);
    assert!(before_interception(unproven).is_some_and(|decision| !decision.forwarded));
    for robots_identity in [
        RobotsIdentity::Refused(Reason::Identity),
        RobotsIdentity::Refused(Reason::Unidentified),
        RobotsIdentity::Wildcard,
        RobotsIdentity::Token("AnyBot"),
    ] {
        assert_eq!(connect_refused(robots_identity).reason, Reason::ConnectRefused);
        assert!(before_interception(robots_identity).is_none(), "requests inside decide");
    }
}

/// Returns the `Retry-After` of a request that comes `ago` after a fetch of the robots.txt got a 503.
fn retry_after(ago: Duration, pending: bool) -> Option<u64> {
    let mut lookup = Known::Failed(FetchError::Status(503).into()).lookup();
    lookup.at += ago;
    lookup.pending = pending;
    question(RobotsIdentity::Token("AnyBot"), "/", PATH)
        .decide_with(None, lookup)
        .retry_after()
}

#[test]
fn retry_after_names_the_next_fetch_of_the_robots_txt() {
    let unreachable = |ago| retry_after(ago, false);
    assert_eq!(unreachable(Duration::ZERO), Some(300));
    assert_eq!(unreachable(Duration::from_secs(100)), Some(200));
    assert_eq!(unreachable(Duration::from_millis(100_001)), Some(200), "rounded up");
    assert_eq!(unreachable(Duration::from_secs(300)), Some(1), "never at once");
    assert_eq!(unreachable(Duration::from_secs(400)), Some(1));
    assert_eq!(retry_after(Duration::ZERO, true), Some(5), "it is on its way");
    assert_eq!(
        egress(RobotsIdentity::Token("AnyBot")).retry_after(),
        None,
        "it does not end by itself"
    );
}
