//! The lines of a robots.txt about the use of content: the cases in `tests/cases/usage.jsonl`, and random files, for
//! which the engine and a simple model must agree.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use proptest::{prelude::*, sample::select};
use robotgate::robots::{RobotsTxt, path_of_url};
use robotgate::usage::Vocabulary;
use serde::Deserialize;

use super::{
    properties::{body, bytes, of_cases},
    usage_model::{self, Said},
};

#[derive(Deserialize)]
struct Case {
    robots: Option<String>,
    robots_b64: Option<String>,
    agent: String,
    url: String,
    usage: Option<BTreeMap<String, Option<String>>>,
    usage_lines: Vec<u32>,
    signals: BTreeMap<String, Option<String>>,
}

#[test]
fn the_stated_cases_give_the_expected_answers() {
    let cases: Vec<Case> = CASES
        .lines()
        .map(|line| serde_json::from_str(line).expect("a case is JSON"))
        .collect();
    assert_eq!(cases.len(), 113);
    for case in &cases {
        let body = match (&case.robots, &case.robots_b64) {
            (Some(text), _) => text.clone().into_bytes(),
            (_, base64) => BASE64
                .decode(base64.as_ref().expect("a file").as_bytes())
                .expect("base64"),
        };
        let robots = RobotsTxt::parse(&body);
        let is_allowed = robots
            .agent(&case.agent)
            .decide(&path_of_url(case.url.as_bytes()))
            .allowed;
        assert_eq!(is_allowed, case.usage.is_some(), "{}", case.url);
        let said = engine(&body, &case.agent, case.url.as_bytes());
        if let Some(usage) = &case.usage {
            let expected = usage
                .iter()
                .map(|(label, value)| (&**label, value.as_ref().map(|value| value == "y")));
            assert_eq!(said.usage, expected.collect(), "{}", String::from_utf8_lossy(&body));
            assert_eq!(said.usage_lines, case.usage_lines, "{}", String::from_utf8_lossy(&body));
        }
        let expected = case
            .signals
            .iter()
            .map(|(label, value)| (&**label, value.as_ref().map(|value| value == "yes")));
        assert_eq!(said.signals, expected.collect(), "{}", String::from_utf8_lossy(&body));
        assert_eq!(usage_model::read(&body, &case.agent, case.url.as_bytes()), said);
    }
}

proptest! {
    #![proptest_config(of_cases(300))]

    #[test]
    fn the_engine_and_the_model_agree(
        body in body(line()),
        agent in select(&["a", "b", "c"][..]),
        url in bytes("http://e(?-u:/[ab/]{0,4}(\\.pdf|)|/%61|/%C3%A9|\\?a)"),
    ) {
        prop_assert_eq!(engine(&body, agent, &url), usage_model::read(&body, agent, &url));
    }
}

#[test]
fn a_search_that_exceeds_its_budget_gives_no_answer() {
    let robots = RobotsTxt::parse(b"User-agent: *\nContent-Usage: /*.pdf train-ai=n\nContent-Usage: /a train-ai=n");
    let mut budget = 20;
    let usage = robots
        .agent("a")
        .usage_within(b"/x.pdf", &mut budget)
        .expect("within the budget");
    let train = usage
        .preference(Vocabulary::ContentUsage, "train-ai")
        .expect("line 2 says so");
    assert_eq!((train.allowed, train.line), (false, 2));
    // The search used 13 of the budget of 20: 3 for the lines, 5 for the bytes of "x.pdf" in the path, and 5 for the
    // bytes of "*.pdf" in the pattern.
    assert_eq!(budget, 7);
    assert!(robots.agent("a").usage_within(b"/long/x.pdf", &mut budget).is_none());
}

fn engine(body: &[u8], agent: &str, url: &[u8]) -> Said {
    let robots = RobotsTxt::parse(body);
    let agent = robots.agent(agent);
    let mut budget = usize::MAX;
    let usage = agent
        .usage_within(&path_of_url(url), &mut budget)
        .expect("within the budget");
    let usage_lines = agent.usage_lines(&path_of_url(url));
    let said = |vocabulary: Vocabulary| {
        let labels = vocabulary.labels().iter();
        labels
            .map(|label| {
                (
                    label.name,
                    usage.preference(vocabulary, label.name).map(|said| said.allowed),
                )
            })
            .collect()
    };
    Said {
        usage: said(Vocabulary::ContentUsage),
        usage_lines,
        signals: said(Vocabulary::ContentSignal),
    }
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let agent = bytes(r"(?i-u:user-agent|useragent)(?-u: ?:? ?)(?-u:\*|\*x|a|b|a/1|)");
    let rule = bytes(r"(?-u:Dis|dis|)(?-u:allow: ?)(?-u:/|/a|/b\*|)");
    let member = r#"(?-u:(train-ai|search|Search|x|)(=y|=n|=N|="n"|=\?0|=1\.5|=\(n y\)|=\(n|=|)(;q|;q=1|;|))"#;
    let usage = bytes(&format!(
        r"(?i-u:content-usage|content-usages)(?-u: ?:|) ?(?-u:/[ab/]{{0,2}}|/%61|/%c3%a9|/\xc3\xa9|/\xff|/\*\.pdf\$|/a\*|/a\$|a|)(?-u: |\t|  ){member}(?-u:, ?|,| , |){member}"
    ));
    let signal = bytes(
        r"(?i-u:content-signal)(?-u: ?: ?)(?i-u:(search|ai-train|ai-input|x)( = |=|)(yes|no|maybe|)(,|, |;)){0,2}(?i-u:(search|ai-train)=(yes|no))",
    );
    let other = bytes(r"(?-u:crawl-delay: 3|sitemap: /s|# x|)");
    prop_oneof![4 => agent, 2 => rule, 6 => usage, 2 => signal, 1 => other]
}

const CASES: &str = include_str!("../../cases/usage.jsonl");
