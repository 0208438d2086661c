//! Tests that what `lint` says is true, mostly by deciding all short paths with random files.

use std::collections::BTreeSet;

use proptest::{prelude::*, sample::select};

use super::super::{super::RobotsTxt, *};

/// Findings that say that a line has no effect.
const NO_USE: &[Lint] = &[
    Lint::ShadowedRule,
    Lint::DuplicateRule,
    Lint::RedundantRule,
    Lint::NoLeadingSlash,
    Lint::NeverMatches,
    Lint::UrlInRule,
    Lint::EmptyRule,
    Lint::RuleBeforeUserAgent,
];

const AGENTS: &[&str] = &["a", "b", "c", "MJ12", "MJ13", "MJ", "a*", "other"];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, max_shrink_iters: 2000, ..Default::default() })]

    #[test]
    fn removing_any_set_of_useless_rules_changes_no_decision(file in file(), mask: u64) {
        let findings = lint(file.as_bytes());
        let lines: BTreeSet<u32> = lines_of(&findings, NO_USE);
        // Replace a line instead of removing it, so that the groups stay the same.
        let without = |mask: u64| (1..).zip(file.lines()).map(|(number, line)| {
            if lines.contains(&number) && mask >> (number % 64) & 1 == 1 { "Disallow:" } else { line }
        }).collect::<Vec<&str>>().join("\n");
        let before = RobotsTxt::parse(file.as_bytes());
        for after in [without(u64::MAX), without(mask)] {
            let after = RobotsTxt::parse(after.as_bytes());
            for agent in AGENTS {
                let (before, after) = (before.product(agent), after.product(agent));
                for path in paths() {
                    prop_assert_eq!(before.decide(&path).allowed, after.decide(&path).allowed, "{} {}\n{:#?}", agent, path.escape_ascii(), findings);
                }
            }
        }
    }

    #[test]
    fn removing_the_lines_that_lint_says_to_remove_changes_no_decision(file in prop_oneof![file(), grouped()], mask: u64) {
        let findings = lint(file.as_bytes());
        let lines: Vec<u32> = lines_to_remove(&findings).into_iter().collect();
        let matched_agent = (0..).zip(&lines).filter(|(at, _)| mask >> (at % 64) & 1 == 1).map(|(_, line)| *line).collect();
        let mut sets: Vec<BTreeSet<u32>> = vec![lines.iter().copied().collect(), matched_agent];
        sets.extend(lines.iter().map(|line| BTreeSet::from([*line])));
        for without in sets.iter().filter(|lines| !lines.is_empty()) {
            same(&file, &edited(&file, without), &findings)?;
        }
    }

    #[test]
    fn removing_a_useless_wildcard_changes_no_decision(pattern in pattern()) {
        let file = format!("User-agent: *\nDisallow: {pattern}");
        let findings = lint(file.as_bytes());
        if !lines_of(&findings, &[Lint::UselessWildcard]).is_empty() {
            let mut short = file.clone();
            while short.contains("**") {
                short = short.replace("**", "*");
            }
            if !pattern.contains("**") {
                short = file.strip_suffix("*$").unwrap_or(&file).trim_end_matches('*').to_owned();
            }
            prop_assert_ne!(&short, &file);
            same(&file, &short, &findings)?;
        }
    }

    #[test]
    fn a_rule_reported_as_never_deciding_never_decides(file in file()) {
        let robots = RobotsTxt::parse(file.as_bytes());
        let findings = lint(file.as_bytes());
        let never: BTreeSet<u32> = findings
            .iter()
            .filter(|finding| {
                matches!(
                    finding.code,
                    Lint::ShadowedRule | Lint::DuplicateRule | Lint::NoLeadingSlash | Lint::NeverMatches
                        | Lint::UrlInRule | Lint::RuleBeforeUserAgent
                ) || finding.message.starts_with("This rule never decides")
            })
            .map(|finding| finding.line)
            .collect();
        for agent in AGENTS {
            for path in paths() {
                let decider = robots.product(agent).decide(&path).rule.map(|id| robots.rule(id).line);
                prop_assert!(decider.is_none_or(|line| !never.contains(&line)), "{agent} {decider:?}\n{findings:#?}");
            }
        }
    }

    #[test]
    fn findings_about_agents_are_true(file in file()) {
        let robots = RobotsTxt::parse(file.as_bytes());
        let findings = lint(file.as_bytes());
        let has = |code| findings.iter().any(|finding| finding.code == code);
        let allowed = |agent: &str| paths().iter().all(|path| robots.product(agent).decide(path).allowed);
        if has(Lint::NoRules) || has(Lint::EmptyFile) {
            prop_assert!(AGENTS.iter().all(|agent| allowed(agent)));
        }
        if has(Lint::BlocksEverything) {
            prop_assert!(paths().iter().all(|path| !robots.product("other").decide(path).allowed));
        }
        for finding in findings.iter().filter(|finding| finding.code == Lint::GroupWithoutRules) {
            let name = finding.text.split_once(": ").map_or("", |(_, name)| name);
            prop_assert!(allowed(if name == "*" { "other" } else { name }), "{findings:#?}");
        }
        for finding in findings.iter().filter(|finding| finding.code == Lint::OnlyAllows) {
            let number = finding.line as usize;
            let before: Vec<&str> = file.lines().take(number).collect();
            let name = before.iter().rev().find_map(|line| line.strip_prefix("User-agent: ")).unwrap_or_default();
            prop_assert!(allowed(if name == "*" { "other" } else { name }), "{findings:#?}");
        }
    }

    #[test]
    fn any_bytes_can_be_linted(body: Vec<u8>) {
        for finding in lint(&body) {
            prop_assert!(!finding.message.contains(char::is_control) && !finding.text.contains(char::is_control));
        }
    }
}

#[test]
fn a_useful_rule_has_no_finding() {
    for file in [
        "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c",
        "User-agent: *\nDisallow: /\nAllow: /a$\nAllow: /*.x",
        "User-agent: *\nDisallow: /*a\nAllow: /ab",
    ] {
        assert_eq!(lines_of(&lint(file.as_bytes()), NO_USE), BTreeSet::new(), "{file}");
    }
}

#[test]
fn findings_describe_the_meaning_of_their_lines() {
    for (file, code, agent, path, allowed) in [
        (
            "User-agent: a\n\nUser-agent: b\nDisallow: /a",
            Lint::JoinedGroups,
            "a",
            "/a",
            false,
        ),
        (
            "User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /a",
            Lint::JoinedGroups,
            "a",
            "/a",
            false,
        ),
        (
            "User-agent: a\nDisallow: /a\nUser-agent: a/2\nDisallow: /b",
            Lint::MergedGroups,
            "a",
            "/b",
            false,
        ),
        ("User-agent: a, b\nDisallow: /a", Lint::SeveralAgents, "b", "/a", true),
        ("User-agent: a, b\nDisallow: /a", Lint::SeveralAgents, "a", "/a", false),
        ("User-agent: *\nDisallow: /a#b", Lint::HashInValue, "a", "/a", false),
        ("User-agent: *\nDisallow /a", Lint::MissingColon, "a", "/a", false),
        ("User-agent: *\nDisallow /a /b", Lint::LostRecord, "a", "/a", true),
        ("User-agent: *\nDisalow: /a", Lint::AcceptedTypo, "a", "/a", false),
        ("User-agent: *\nDisllow: /a", Lint::MisspeltKey, "a", "/a", true),
        (
            "User-agent: *\n\u{feff}Disallow: /a",
            Lint::MisplacedByteOrderMark,
            "a",
            "/a",
            true,
        ),
        (
            "\u{feff}User-agent: *\nDisallow: /a",
            Lint::ByteOrderMark,
            "a",
            "/a",
            false,
        ),
        ("User-agent: *\nDisallow: /a\0b", Lint::Nul, "a", "/a", false),
        ("User-agent: *\nDisallow: /%61", Lint::NeedlessEscape, "a", "/a", true),
        ("User-agent: *\nDisallow: /a$b", Lint::DollarInside, "a", "/a$b", false),
        (
            "User-agent: *\nDisallow: /a*$",
            Lint::UselessWildcard,
            "a",
            "/ab",
            false,
        ),
        ("User-agent: *\nDisallow: /a /b", Lint::SpaceInPattern, "a", "/a", true),
        (
            "User-agent: *\nDisallow: /\\.html",
            Lint::RegularExpression,
            "a",
            "/.html",
            true,
        ),
        ("User-agent: a Disallow: /", Lint::SwallowedRecord, "a", "/a", true),
        ("Disallow: /a", Lint::RuleBeforeUserAgent, "a", "/a", true),
        (
            "User-agent: *bot\nDisallow: /a",
            Lint::UnreachableGroup,
            "bot",
            "/a",
            true,
        ),
        ("User-agent: 3a\nDisallow: /a", Lint::UnnamedAgent, "3a", "/a", false),
        ("User-agent: a3\nDisallow: /a", Lint::CutAgent, "a", "/a", false),
        ("User-agent: a3\nDisallow: /a", Lint::CutAgent, "a3", "/a", false),
        (
            "User-agent: *\nDisallow: /a\nUser-agent: a",
            Lint::GroupWithoutRules,
            "a",
            "/a",
            true,
        ),
    ] {
        let found = lint(file.as_bytes()).iter().any(|finding| finding.code == code);
        assert!(found, "{file:?}: {code}");
        let robots = RobotsTxt::parse(file.as_bytes());
        assert_eq!(
            robots.product(agent).decide(path.as_bytes()).allowed,
            allowed,
            "{file:?}"
        );
    }
}

fn lines_to_remove(findings: &[Finding]) -> BTreeSet<u32> {
    let reported = findings
        .iter()
        .filter(|finding| finding.message.to_lowercase().contains("remove "));
    reported.map(|finding| finding.line).collect()
}

fn edited(file: &str, lines: &BTreeSet<u32>) -> String {
    let kept = (1..).zip(file.lines()).filter(|(number, _)| !lines.contains(number));
    kept.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

fn same(before: &str, after: &str, findings: &[Finding]) -> Result<(), TestCaseError> {
    let [old, new] = [before, after].map(|file| RobotsTxt::parse(file.as_bytes()));
    for agent in AGENTS {
        let google = [&old, &new].map(|robots| robots.agent(agent));
        let robotgate = [&old, &new].map(|robots| robots.product(agent));
        for path in short_paths() {
            for [old, new] in [google, robotgate] {
                let [old, new] = [old, new].map(|agent| agent.decide(&path).allowed);
                prop_assert_eq!(
                    old,
                    new,
                    "{} {}\n{}\n\n{}\n{:#?}",
                    agent,
                    path.escape_ascii(),
                    before,
                    after,
                    findings
                );
            }
        }
    }
    Ok(())
}

fn lines_of(findings: &[Finding], codes: &[Lint]) -> BTreeSet<u32> {
    let of = findings.iter().filter(|finding| codes.contains(&finding.code));
    of.map(|finding| finding.line).collect()
}

/// Returns all paths of up to five of the characters `/`, `a`, `b` and `$`, and some paths of index pages.
fn paths() -> Vec<Vec<u8>> {
    let mut paths = vec![b"/".to_vec()];
    let mut last = paths.clone();
    for _ in 0..4 {
        last = last
            .iter()
            .flat_map(|path| b"/ab$".iter().map(|byte| [&path[..], &[*byte]].concat()))
            .collect();
        paths.extend_from_slice(&last);
    }
    for dir in ["/", "/a/", "/a/b/", "/b/"] {
        for page in ["index.html", "index.htm", "index.htmla"] {
            paths.push(format!("{dir}{page}").into_bytes());
        }
    }
    paths
}

fn short_paths() -> Vec<Vec<u8>> {
    let mut paths = paths();
    paths.retain(|path| path.len() <= 4 || path.ends_with(b"index.html"));
    paths.extend([
        b"/abcdefgh".to_vec(),
        b"/robots.txt.a".to_vec(),
        b"/a/b/ab".to_vec(),
        b"/ab/".to_vec(),
    ]);
    paths
}

fn grouped() -> impl Strategy<Value = String> {
    let agent = select(vec!["*", "*", "a", "a", "b", "MJ12", "a*"]);
    let agents = prop::collection::vec(agent.prop_map(|name| format!("User-agent: {name}\n")), 1..4);
    let pattern = prop_oneof![
        4 => select(vec!["", "/", "/a", "/a*", "/a*$", "/ab", "/a**b", "/a$*", "/a**/index.html", "/a/b", "/robots.txt", "x"]).prop_map(str::to_owned),
        1 => pattern(),
    ];
    let rule = (select(vec!["Allow", "Disallow", "Disallow"]), pattern);
    let rules = prop::collection::vec(rule.prop_map(|(key, pattern)| format!("{key}: {pattern}\n")), 1..4);
    let between = select(vec!["", "", "\n", "Crawl-delay: 1\n", "Sitemap: https://a/\n"]);
    let group =
        (agents, between, rules).prop_map(|(agents, between, rules)| agents.concat() + between + &rules.concat());
    prop::collection::vec(group, 1..6).prop_map(|groups| groups.concat())
}

fn file() -> impl Strategy<Value = String> {
    let agent =
        select(vec!["*", "*", "a", "a", "b", "c", "MJ12", "MJ13", "?"]).prop_map(|name| format!("User-agent: {name}"));
    let rule = (select(vec!["Allow", "Disallow"]), pattern()).prop_map(|(key, pattern)| format!("{key}: {pattern}"));
    let line = prop_oneof![2 => agent, 9 => rule, 1 => Just(String::new())];
    prop::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "/(a|b|/|a/|\\*|\\*\\*|\\$){0,4}[*]{0,3}[$]?",
        1 => "[*]?(a|b|/|\\*){0,3}[$]?",
        1 => "(/|/a/|/a/b/|/b/|\\*/)index[.]htm(l|a|l[*]|l[$])?",
        1 => "(https://a/b)?",
    ]
}
