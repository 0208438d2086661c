//! Tests which gap a decision requires (from the bot's delay and its group's `Crawl-delay`), and what a deferral says.

use super::*;
use crate::pace::{BeyondMax, Cause, Policy as Pace};

const DELAYS: &str = "\
User-agent: *
Crawl-delay: 20
Disallow: /private

User-agent: acme
Crawl-delay: 2.5
Disallow: /private

User-agent: quick
Disallow: /private
";

fn paced(identity: RobotsIdentity<'_>, known: &Known, path: &str, pace: Pace) -> Decision {
    let mut question = question(identity, path, PATH);
    question.terms.pace = Some(pace);
    decided(question, known)
}

fn enforcing() -> Pace {
    Pace {
        delay: Duration::from_secs(1),
        crawl_delay: CrawlDelay::Enforce,
        ..Pace::default()
    }
}

fn gap(decision: &Decision) -> Option<Duration> {
    decision.limits().expect("it is not too slow").map(|limits| limits.gap)
}

#[test]
fn without_a_pace_a_decision_has_no_gap() {
    let decision = decide(RobotsIdentity::Token("acme"), &Known::rules(DELAYS), "/");
    assert_eq!(gap(&decision), None);
}

#[test]
fn the_crawl_delay_of_the_bots_group_can_lengthen_the_gap() {
    let ignoring = Pace {
        crawl_delay: CrawlDelay::Ignore,
        ..enforcing()
    };
    for (agent, milliseconds) in [("acme", 2500), ("other", 20_000), ("quick", 1000)] {
        let identity = RobotsIdentity::Token(agent);
        let decision = paced(identity, &Known::rules(DELAYS), "/", enforcing());
        assert_eq!(gap(&decision), Some(Duration::from_millis(milliseconds)), "{agent}");
        let decision = paced(identity, &Known::rules(DELAYS), "/", ignoring);
        assert_eq!(gap(&decision), Some(Duration::from_secs(1)), "{agent}");
        let decision = paced(identity, &Known::NoRobots, "/", enforcing());
        assert_eq!(gap(&decision), Some(Duration::from_secs(1)), "{agent}");
    }
}

#[test]
fn without_enforcement_only_the_delay_of_the_bot_sets_the_gap() {
    for (enforcement, milliseconds) in [
        (Enforcement::Enforce, 2500),
        (Enforcement::Report, 2000),
        (Enforcement::Exempt, 2000),
    ] {
        let bot = Bot {
            delay: Some(Duration::from_secs(2)),
            ..bot(enforcement, &["acme"])
        };
        let decision = paced(RobotsIdentity::Bot(&bot), &Known::rules(DELAYS), "/", enforcing());
        assert!(decision.forwarded);
        assert_eq!(
            gap(&decision),
            Some(Duration::from_millis(milliseconds)),
            "{enforcement:?}"
        );
    }
}

#[test]
fn a_crawl_delay_beyond_the_longest_is_clipped_or_refused() {
    let file = Known::rules("User-agent: *\nCrawl-delay: 301\nDisallow: /private");
    let identity = RobotsIdentity::Token("acme");
    let clipping = paced(identity, &file, "/", enforcing());
    assert_eq!(
        (clipping.reason, gap(&clipping)),
        (Reason::NoRule, Some(Duration::from_secs(300)))
    );

    let refusing = Pace {
        beyond_max: BeyondMax::Refuse,
        ..enforcing()
    };
    let refused = paced(identity, &file, "/", refusing);
    assert_eq!((refused.verdict, refused.reason), (Verdict::Deny, Reason::Pace));
    assert_eq!(refused.pace_cause(), Some(Cause::CrawlDelay));
    assert!(!refused.forwarded && refused.rule().is_none() && refused.retry_after().is_none());
    assert_eq!(
        refused.shown_error().as_deref(),
        Some("the site's Crawl-delay, 301 s, is longer than pace.crawl-delay-max, 300 s")
    );
    // If a rule refuses the request anyway, the reason stays `rule`.
    assert_eq!(paced(identity, &file, "/private", refusing).reason, Reason::Rule);
    let file = Known::rules("User-agent: *\nCrawl-delay: 300\nDisallow:");
    assert_eq!(paced(identity, &file, "/", refusing).verdict, Verdict::Allow);
}

#[test]
fn a_deferral_names_its_cause_and_when_to_retry() {
    let allowed = paced(RobotsIdentity::Token("acme"), &Known::rules(DELAYS), "/", enforcing());
    assert_eq!(allowed.pace_cause(), None);
    let mut sentences = std::collections::HashSet::new();
    for cause in Cause::ALL {
        let (at, not_before) = (at(3), at(4));
        let deferred = allowed.clone().deferred(Deferral { at, not_before, cause });
        assert_eq!(deferred.pace_cause(), Some(cause));
        assert!(sentences.insert(deferred.sentence()), "{cause}");
    }
    for (later, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (90_000, 90)] {
        let deferral = Deferral {
            cause: Cause::Delay,
            at: at(3),
            not_before: at(3) + Duration::from_millis(later),
        };
        let deferred = allowed.clone().deferred(deferral);
        assert_eq!((deferred.verdict, deferred.reason), (Verdict::Defer, Reason::Pace));
        assert!(!deferred.forwarded);
        assert_eq!(deferred.retry_after(), Some(seconds), "{later} ms");
    }
}
