//! An explanation always agrees with the engine's decision.

use proptest::prelude::*;
use robotgate::robots::{Choice, Explanation, LossReason, Profile, RobotsTxt, RuleKind, explain, path_of_url};

use super::{cases, properties};

const AGENTS: &[&str] = &["a", "FooBot", "foo-bot", "MJ", "MJ12bot", "8", "b", "*", ""];

#[test]
fn explain_agrees_with_the_engine_for_the_stated_cases() {
    for case in cases::all() {
        let body = case.body();
        let path = path_of_url(case.url.as_bytes());
        let why = explain(Profile::Google, &body, Choice::Agent(&case.agent), &path);
        let line = why.rule.as_ref().map_or(0, |rule| rule.line);
        assert_eq!((why.allowed, line), (case.allowed, case.line), "{}", case.id);
        as_the_engine_decides(&body, &case.agent, &path).unwrap_or_else(|error| panic!("{}: {error}", case.id));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 192, ..Default::default() })]

    #[test]
    fn explain_agrees_with_the_engine_for_any_bytes(body: Vec<u8>, agent: String, url: Vec<u8>) {
        as_the_engine_decides(&body, &agent, &path_of_url(&url))?;
    }

    #[test]
    fn explain_agrees_with_the_engine_for_plausible_files(
        body in properties::body(properties::line()),
        urls in properties::urls(),
    ) {
        for (url, agent) in urls.iter().flat_map(|url| AGENTS.iter().map(move |agent| (url, agent))) {
            as_the_engine_decides(&body, agent, &path_of_url(url))?;
        }
    }
}

fn as_the_engine_decides(body: &[u8], agent: &str, path: &[u8]) -> Result<(), TestCaseError> {
    for profile in [Profile::Google, Profile::Rfc9309] {
        let robots = RobotsTxt::parse_as(profile, body);
        for (choice, picked) in [
            (Choice::Agent(agent), robots.agent(agent)),
            (Choice::Product(agent), robots.product(agent)),
            (Choice::Everyone, robots.product("")),
        ] {
            let found = picked.decide(path);
            let rule = found.rule.map(|id| robots.rule(id));
            let why = explain(profile, body, choice, path);
            let is_matched = profile == Profile::Google || path != b"/robots.txt";
            let choice = why.choice;
            prop_assert_eq!(
                &Explanation {
                    choice,
                    ..picked.explain(path)
                },
                &why
            );

            prop_assert_eq!(why.allowed, found.allowed);
            prop_assert_eq!(
                why.rule.as_ref().map(|rule| (rule.kind, rule.line, &*rule.text)),
                rule.as_ref().map(|rule| (rule.kind, rule.line, &*rule.text))
            );
            prop_assert_eq!(why.choice != Choice::Everyone, picked.is_specific());
            prop_assert_eq!(why.groups.is_empty(), picked.group().is_none());
            prop_assert_eq!(
                why.groups
                    .iter()
                    .filter(|_| is_matched)
                    .map(|group| group.rules)
                    .sum::<usize>(),
                why.considered
            );
            prop_assert!(
                why.groups
                    .iter()
                    .all(|group| group.agents.iter().any(|line| line.names(why.choice)))
            );

            let length = why.rule.as_ref().map_or(0, |rule| rule.pattern.len());
            for other in &why.competitors {
                let (its, won) = (other.rule.pattern.len(), why.rule.as_ref());
                let right = match other.lost {
                    LossReason::ShorterMatch => its < length,
                    LossReason::TieEarlier => its == length && won.is_some_and(|won| won.line < other.rule.line),
                    LossReason::TieAllowWins => {
                        its == length
                            && other.rule.kind == RuleKind::Disallow
                            && won.is_some_and(|won| won.kind == RuleKind::Allow)
                    }
                    LossReason::DoesNotMatch { fits } => its >= length && fits < its,
                    LossReason::NeverMatches => !other.rule.pattern.starts_with(['/', '*']),
                };
                prop_assert!(right, "{:?}", other);
            }
        }
    }
    Ok(())
}
