//! What holds for any file, agent and URL.

use proptest::prelude::*;
use robotgate::robots::{RobotsTxt, Whole, path_of_url};

use super::model;

const AGENTS: &[&str] = &["a", "FooBot", "foo-bot", "MJ", "b", "*", ""];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..Default::default() })]

    #[test]
    fn any_bytes_parse_and_decide(body: Vec<u8>, agent: String, url: Vec<u8>) {
        agrees_with_the_model(&body, &agent, &url)?;
    }

    #[test]
    fn files_that_look_like_files_decide_as_the_model(
        body in body(),
        agent in prop::sample::select(AGENTS),
        urls in prop::collection::vec(url(), 1..8),
    ) {
        for url in &urls {
            agrees_with_the_model(body.as_bytes(), agent, url.as_bytes())?;
        }
    }

    #[test]
    fn the_whole_holds_for_each_path(
        body in body(),
        agent in prop::sample::select(AGENTS),
        urls in prop::collection::vec(url(), 1..20),
    ) {
        let robots = RobotsTxt::parse(body.as_bytes());
        let agent = robots.agent(agent);
        for url in &urls {
            let allowed = agent.decide(&path_of_url(url.as_bytes())).allowed;
            match agent.whole() {
                Whole::AllAllowed => prop_assert!(allowed, "{url}"),
                Whole::AllDisallowed => prop_assert!(!allowed, "{url}"),
                Whole::Mixed => {}
            }
        }
    }

    #[test]
    fn a_rule_is_found_in_its_line(body in body(), url in url()) {
        let robots = RobotsTxt::parse(body.as_bytes());
        for agent in AGENTS {
            let found = robots.product(agent).decide(&path_of_url(url.as_bytes()));
            let Some(rule) = found.rule.map(|id| robots.rule(id)) else {
                prop_assert!(found.allowed);
                continue;
            };
            let lines: Vec<&str> = body.split('\n').collect();
            prop_assert!(lines[rule.line as usize - 1].contains(&*rule.text));
            prop_assert!(rule.pattern.is_ascii());
        }
    }

    #[test]
    fn a_path_begins_with_a_slash_and_is_its_own(url: Vec<u8>) {
        let path = path_of_url(&url);
        prop_assert!(path.starts_with(b"/"));
        prop_assert!(!path.contains(&0));
        // Behind an authority, it is read as it stands.
        let again = [b"http://e", &*path].concat();
        prop_assert_eq!(path_of_url(&again), path);
    }
}

fn agrees_with_the_model(body: &[u8], agent: &str, url: &[u8]) -> Result<(), TestCaseError> {
    let robots = RobotsTxt::parse(body);
    let found = robots.agent(agent).decide(&path_of_url(url));
    let line = found.rule.map_or(0, |id| robots.rule(id).line);
    prop_assert_eq!((found.allowed, line), model::decide(body, agent, url));
    Ok(())
}

/// Lines of LF only, so that they are easily numbered.
fn body() -> impl Strategy<Value = String> {
    let agent = text("(user-agent|User agent): ?(\\*|\\* x|a|b|FooBot|foobot/1|foo-bot|MJ12bot|8|)");
    let rule = text(&format!("([Dd]isallow|Disalow|Allow):? ?{PATTERN}"));
    let other = text("(sitemap|crawl-delay|#|foo)?:? ?[a-z/:]{0,4}");
    let line = prop_oneof![3 => agent, 8 => rule, 1 => other];
    prop::collection::vec(line, 0..24).prop_map(|lines| lines.join("\n"))
}

fn url() -> impl Strategy<Value = String> {
    text(&format!("(https?://e|//e|e|)({PATTERN}|/|[?;#]{PATTERN})"))
}

fn text(regex: &str) -> impl Strategy<Value = String> + use<> {
    prop::string::string_regex(regex).expect("the tests' expressions are sound")
}

/// Few letters and many signs, so that patterns and paths often meet.
const PATTERN: &str = "(/|\\*)?([ab/*]|\\*a|/index\\.html?|\\?|\\$|%2f|%2F|\u{e9}|%C3%A9){0,6}\\$?";
