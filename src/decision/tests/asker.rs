//! Which group of a file decides for an asker.

use super::*;

/// Returns the token that was used and the line of the rule that decides.
fn picked(asker: Asker<'_>, file: &str) -> (String, Option<u32>) {
    let decision = decide(asker, &Known::rules(file), "/x");
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
fn of_several_tokens_the_bots_first_with_a_group_of_its_own_is_used() {
    let news = bot(Enforcement::Enforce, &["AcmeBot-News", "AcmeBot"]);
    let asker = Asker::Bot(&news);
    assert_eq!(
        picked(asker, BOTH),
        ("AcmeBot-News".to_owned(), Some(4)),
        "the bot's order, not the file's"
    );
    assert_eq!(picked(asker, SECOND), ("AcmeBot".to_owned(), Some(4)));
    assert_eq!(
        picked(asker, NONE),
        ("AcmeBot-News".to_owned(), Some(4)),
        "the rules for *"
    );
    assert_eq!(picked(asker, ""), ("AcmeBot-News".to_owned(), None));
}

#[test]
fn a_group_of_ones_own_without_rules_hides_the_one_for_all() {
    let news = bot(Enforcement::Enforce, &["AcmeBot-News", "AcmeBot"]);
    let file = "User-agent: *\nDisallow: /\n\nUser-agent: AcmeBot-News\nAllow:\n\nUser-agent: AcmeBot\nDisallow: /\n";
    let known = Known::rules(file);
    let decision = decide(Asker::Bot(&news), &known, "/x");
    assert_eq!((decision.verdict, rule_line(&decision)), (Verdict::Allow, Some(5)));
}

#[test]
fn a_bot_without_tokens_gets_the_rules_for_all() {
    let nameless = bot(Enforcement::Enforce, &[]);
    assert_eq!(picked(Asker::Bot(&nameless), NONE), ("*".to_owned(), Some(4)));
}

#[test]
fn a_token_with_a_digit_finds_its_group_by_the_whole_first_word() {
    let file = "User-agent: *\nDisallow: /x\nUser-agent: MJ12bot/v1.4 (x)\nDisallow: /x\n";
    let majestic = bot(Enforcement::Enforce, &["MJ12bot"]);
    assert_eq!(picked(Asker::Bot(&majestic), file), ("MJ12bot".to_owned(), Some(4)));
    assert_eq!(picked(Asker::Token("mj12BOT"), file), ("mj12BOT".to_owned(), Some(4)));
    assert_eq!(picked(Asker::Token("MJ13bot"), file), ("MJ13bot".to_owned(), Some(2)));
    assert_eq!(picked(Asker::Token("MJ12"), file), ("MJ12".to_owned(), Some(2)));
}

#[test]
fn an_unconfigured_bot_goes_by_its_product_token() {
    assert_eq!(picked(Asker::Token("OTHERBOT"), NONE), ("OTHERBOT".to_owned(), Some(2)));
    assert_eq!(
        picked(Asker::Token("OtherBot-Images"), NONE),
        ("OtherBot-Images".to_owned(), Some(4))
    );
}

#[test]
fn nobody_in_particular_gets_only_the_rules_for_all() {
    assert_eq!(picked(Asker::Wildcard, BOTH), ("*".to_owned(), Some(6)));
    assert_eq!(
        picked(Asker::Wildcard, "User-agent: AcmeBot\nDisallow: /x\n"),
        ("*".to_owned(), None)
    );
}

#[test]
fn the_token_is_the_bots_first() {
    let news = bot(Enforcement::Enforce, &["AcmeBot-News", "AcmeBot"]);
    for (asker, token) in [
        (Asker::Bot(&news), "AcmeBot-News"),
        (Asker::Token("AnyBot"), "AnyBot"),
        (Asker::Wildcard, "*"),
        (Asker::Refused(Reason::Unidentified), "*"),
    ] {
        assert_eq!(asker.token(), token, "{asker:?}");
    }
}

#[test]
fn the_unidentified_are_nobody_unless_the_rules_for_all_shall_hold() {
    let acme = Arc::new(bot(Enforcement::Enforce, &["AcmeBot"]));
    for unidentified in [Unidentified::Deny, Unidentified::Wildcard] {
        let identity = Identity::Bot(acme.clone());
        assert!(matches!(Asker::new(&identity, unidentified), Asker::Bot(bot) if *bot == *acme));
        let identity = Identity::Token("AnyBot".into());
        assert!(matches!(Asker::new(&identity, unidentified), Asker::Token("AnyBot")));
    }
    for cause in [Cause::Missing, Cause::Several, Cause::BrowserOnly, Cause::NoToken] {
        let identity = Identity::Unidentified(cause);
        assert!(
            matches!(
                Asker::new(&identity, Unidentified::Deny),
                Asker::Refused(Reason::Unidentified)
            ),
            "{cause}"
        );
        assert!(
            matches!(Asker::new(&identity, Unidentified::Wildcard), Asker::Wildcard),
            "{cause}"
        );
    }
    for (misfit, reason) in [
        (Misfit::Agent, Reason::Identity),
        (Misfit::Unproven { by_credential: true }, Reason::Unauthenticated),
        (Misfit::Unproven { by_credential: false }, Reason::Unauthenticated),
    ] {
        for unidentified in [Unidentified::Deny, Unidentified::Wildcard] {
            let identity = Identity::Refused(misfit);
            let asker = Asker::new(&identity, unidentified);
            assert!(matches!(asker, Asker::Refused(found) if found == reason), "{misfit}");
        }
    }
}
