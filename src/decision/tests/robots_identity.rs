//! Tests which group of a robots.txt decides for an identity.

use super::*;

fn matched_agent(robots_identity: RobotsIdentity<'_>, file: &str) -> (String, Option<u32>) {
    let decision = decide(robots_identity, &Known::rules(file), "/x");
    let token = decision.agent().expect("a copy was looked at");
    (token.to_owned(), rule_line(&decision))
}

const BOTH: &str = "\
User-agent: AcmeBot
Disallow: /x
User-agent: AcmeBot-News
Disallow: /x
User-agent: *
Disallow: /x
";
const SECOND: &str = "\
User-agent: *
Disallow: /x
User-agent: acmebot
Disallow: /x
";
const NONE: &str = "\
User-agent: OtherBot
Disallow: /x
User-agent: *
Disallow: /x
";

#[test]
fn the_first_of_the_bots_tokens_that_has_a_group_is_used() {
    let news = bot(Enforcement::Enforce, &["AcmeBot-News", "AcmeBot"]);
    let robots_identity = RobotsIdentity::Bot(&news);
    assert_eq!(
        matched_agent(robots_identity, BOTH),
        ("AcmeBot-News".to_owned(), Some(4)),
        "the bot's order, not the file's"
    );
    assert_eq!(matched_agent(robots_identity, SECOND), ("AcmeBot".to_owned(), Some(4)));
    assert_eq!(
        matched_agent(robots_identity, NONE),
        ("AcmeBot-News".to_owned(), Some(4)),
        "the rules for *"
    );
    assert_eq!(matched_agent(robots_identity, ""), ("AcmeBot-News".to_owned(), None));
}

#[test]
fn a_bots_own_group_with_only_an_empty_rule_replaces_the_wildcard_group() {
    let news = bot(Enforcement::Enforce, &["AcmeBot-News", "AcmeBot"]);
    let file = "User-agent: *\nDisallow: /\n\nUser-agent: AcmeBot-News\nAllow:\n\nUser-agent: AcmeBot\nDisallow: /\n";
    let known = Known::rules(file);
    let decision = decide(RobotsIdentity::Bot(&news), &known, "/x");
    assert_eq!((decision.verdict, rule_line(&decision)), (Verdict::Allow, Some(5)));
}

#[test]
fn a_bot_without_tokens_gets_the_rules_for_all() {
    let nameless = bot(Enforcement::Enforce, &[]);
    assert_eq!(
        matched_agent(RobotsIdentity::Bot(&nameless), NONE),
        ("*".to_owned(), Some(4))
    );
}

#[test]
fn a_token_with_a_digit_matches_the_first_word_of_an_agent_line() {
    let file = "User-agent: *\nDisallow: /x\nUser-agent: MJ12bot/v1.4 (x)\nDisallow: /x\n";
    let majestic = bot(Enforcement::Enforce, &["MJ12bot"]);
    assert_eq!(
        matched_agent(RobotsIdentity::Bot(&majestic), file),
        ("MJ12bot".to_owned(), Some(4))
    );
    assert_eq!(
        matched_agent(RobotsIdentity::Token("mj12BOT"), file),
        ("mj12BOT".to_owned(), Some(4))
    );
    assert_eq!(
        matched_agent(RobotsIdentity::Token("MJ13bot"), file),
        ("MJ13bot".to_owned(), Some(2))
    );
    assert_eq!(
        matched_agent(RobotsIdentity::Token("MJ12"), file),
        ("MJ12".to_owned(), Some(2))
    );
}

#[test]
fn an_unconfigured_bot_is_matched_by_its_product_token() {
    assert_eq!(
        matched_agent(RobotsIdentity::Token("OTHERBOT"), NONE),
        ("OTHERBOT".to_owned(), Some(2))
    );
    assert_eq!(
        matched_agent(RobotsIdentity::Token("OtherBot-Images"), NONE),
        ("OtherBot-Images".to_owned(), Some(4))
    );
}

#[test]
fn the_wildcard_gets_only_the_rules_for_all() {
    assert_eq!(matched_agent(RobotsIdentity::Wildcard, BOTH), ("*".to_owned(), Some(6)));
    assert_eq!(
        matched_agent(RobotsIdentity::Wildcard, "User-agent: AcmeBot\nDisallow: /x\n"),
        ("*".to_owned(), None)
    );
}

#[test]
fn the_token_of_a_bot_is_the_first_of_its_robots_agents() {
    let news = bot(Enforcement::Enforce, &["AcmeBot-News", "AcmeBot"]);
    for (robots_identity, token) in [
        (RobotsIdentity::Bot(&news), "AcmeBot-News"),
        (RobotsIdentity::Token("AnyBot"), "AnyBot"),
        (RobotsIdentity::Wildcard, "*"),
        (RobotsIdentity::Refused(Reason::Unidentified), "*"),
    ] {
        assert_eq!(robots_identity.token(), token, "{robots_identity:?}");
    }
}

#[test]
fn unidentified_bots_are_refused_unless_the_setting_is_wildcard() {
    let acme = Arc::new(bot(Enforcement::Enforce, &["AcmeBot"]));
    for unidentified in [Unidentified::Deny, Unidentified::Wildcard] {
        let identity = Identity::Bot(acme.clone());
        assert!(matches!(RobotsIdentity::new(&identity, unidentified), RobotsIdentity::Bot(bot) if *bot == *acme));
        let identity = Identity::Token("AnyBot".into());
        assert!(matches!(
            RobotsIdentity::new(&identity, unidentified),
            RobotsIdentity::Token("AnyBot")
        ));
    }
    for cause in [Cause::Missing, Cause::Several, Cause::BrowserOnly, Cause::NoToken] {
        let identity = Identity::Unidentified(cause);
        assert!(
            matches!(
                RobotsIdentity::new(&identity, Unidentified::Deny),
                RobotsIdentity::Refused(Reason::Unidentified)
            ),
            "{cause}"
        );
        assert!(
            matches!(
                RobotsIdentity::new(&identity, Unidentified::Wildcard),
                RobotsIdentity::Wildcard
            ),
            "{cause}"
        );
    }
    for (mismatch, reason) in [
        (IdentityMismatch::Agent, Reason::Identity),
        (
            IdentityMismatch::Unproven {
                by: ProofKinds::default(),
            },
            Reason::Unauthenticated,
        ),
    ] {
        for unidentified in [Unidentified::Deny, Unidentified::Wildcard] {
            let identity = Identity::Refused(mismatch);
            let robots_identity = RobotsIdentity::new(&identity, unidentified);
            assert!(
                matches!(robots_identity, RobotsIdentity::Refused(found) if found == reason),
                "{mismatch}"
            );
        }
    }
}
