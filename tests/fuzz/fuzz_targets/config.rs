//! Parses configurations. The result is either a usable configuration, or all mistakes, each with a position that
//! exists in the text, and a message without control characters. Parsing the text again gives the same result. The time
//! is bounded.
//!
//! An input is the text of a configuration.

#![no_main]

use std::{path::Path, time::Duration};

use libfuzzer_sys::{Corpus, fuzz_target};
use robotgate::{
    config::{Config, ConfigError, Environment, Problem, Problems},
    fuzzing::unmet,
};
use toml::de::{DeTable, DeValue};

use timed::timed;

#[path = "../seeds.rs"]
mod seeds;
#[path = "../timed.rs"]
mod timed;

fuzz_target!(init: seeds::write("config", texts()), |data: &[u8]| -> Corpus {
    let Ok(text) = str::from_utf8(data) else {
        return Corpus::Reject;
    };
    if DeTable::parse(text).is_ok_and(|table| names_a_file(&DeValue::Table(table.into_inner()))) {
        return Corpus::Reject;
    }
    let (read, taken) = timed(|| parse(text));
    let most = SLACK + EACH * u32::try_from(text.len()).unwrap_or(u32::MAX);
    assert!(taken <= most, "it took {taken:?}, {most:?} are in proportion");
    assert!(read == parse(text), "the same text is read in two ways");
    match &read {
        Ok(config) => {
            for (line, complaint) in unmet(config) {
                assert!(line >= 1 && line <= text.split('\n').count(), "{line}: {complaint}");
            }
        }
        Err(problems) => problems_have_valid_positions(text, problems),
    }
    if !text.starts_with('\u{feff}') {
        a_leading_comment_shifts_every_line_by_one(text, &read);
    }
    Corpus::Keep
});

/// Returns a text with mistakes, the shipped configuration files, and each section of these files with its
/// commented-out defaults as keys.
fn texts() -> Vec<(String, String)> {
    let mut texts = vec![("mistakes".to_owned(), MISTAKES.to_owned())];
    for (name, text) in SHIPPED {
        texts.push((name.to_owned(), text.to_owned()));
        let written_out = |line: &'static str| match line.strip_prefix('#') {
            Some(default) => default.starts_with(|c: char| c.is_ascii_lowercase()).then_some(default),
            None => Some(line),
        };
        let lines: Vec<_> = text
            .lines()
            .filter_map(written_out)
            .filter(|line| !line.is_empty())
            .collect();
        let text = lines.join("\n").replace("/var/lib/robotgate", NOWHERE);
        let headed = text.replace("\n[", "\n\0[");
        let sections = headed.split('\0').enumerate();
        texts.extend(sections.map(|(at, section)| (format!("{name}-{at}"), section.to_owned())));
    }
    texts
}

fn parse(text: &str) -> Result<Config, Problems> {
    let environment = Environment {
        state_dir: NOWHERE.into(),
        cores: 2,
    };
    match Config::parse_in(&environment, "robotgate.toml", text, Path::new(NOWHERE)) {
        Ok(config) => Ok(config),
        Err(ConfigError::Invalid(problems)) => Err(problems),
        Err(error) => panic!("a text is read from no file and no variable: {error}"),
    }
}

/// Returns whether the value contains a path at which a file can exist. Paths below [`NOWHERE`] and relative paths,
/// which are resolved below it, lead to no file.
fn names_a_file(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::String(text) => text.starts_with('/') && !text.starts_with(NOWHERE),
        DeValue::Array(list) => list.iter().any(|item| names_a_file(item.get_ref())),
        DeValue::Table(table) => table.values().any(|item| names_a_file(item.get_ref())),
        _ => false,
    }
}

fn problems_have_valid_positions(text: &str, problems: &Problems) {
    let shown = problems.to_string();
    assert!(
        shown.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')),
        "{shown:?}"
    );
    let lines: Vec<_> = text.split('\n').collect();
    let mut number = 0;
    let mut before = (0, 0);
    for problem in problems.iter() {
        has_a_valid_position(&lines, problem);
        assert!(before <= (problem.line, problem.column));
        before = (problem.line, problem.column);
        number += 1;
    }
    assert!(number > 0);
    assert_eq!(shown.split('\n').count(), 3 * number, "{shown}");
}

fn has_a_valid_position(lines: &[&str], problem: &Problem) {
    let line = lines.get(problem.line - 1).expect("the line is in the text");
    let (shown, length) = (&problem.source_line, line.trim_end_matches('\r').chars().count());
    assert_eq!(shown.chars().count(), length);
    assert!((1..=line.chars().count() + 1).contains(&problem.column), "{problem}");
    assert!(
        problem.width >= 1 && problem.column - 1 + problem.width <= length.max(problem.column),
        "{problem}"
    );
    assert!(
        !problem.message.is_empty() && !problem.message.contains(char::is_control),
        "{problem:?}"
    );
    assert!(!problem.key.contains(char::is_control), "{problem:?}");
}

fn a_leading_comment_shifts_every_line_by_one(text: &str, read: &Result<Config, Problems>) {
    match (read, parse(&format!("# x\n{text}"))) {
        (Ok(config), Ok(mut moved)) => {
            for expectation in &mut moved.expect {
                expectation.line -= 1;
            }
            assert!(moved == *config, "a comment changes what is meant");
        }
        (Err(problems), Err(moved)) => {
            let place = |problem: &Problem, by| (problem.line - by, problem.column, problem.width, problem.key.clone());
            let here: Vec<_> = problems.iter().map(|problem| place(problem, 0)).collect();
            let moved: Vec<_> = moved.iter().map(|problem| place(problem, 1)).collect();
            assert_eq!(here, moved, "{problems}");
        }
        (Ok(_), Err(problems)) => panic!("a comment makes it bad: {problems}"),
        (Err(problems), Ok(_)) => panic!("a comment makes it good: {problems}"),
    }
}

const NOWHERE: &str = "/nowhere/at/all";
/// Maximum time for each byte of the text. It is long because the parser reads the rest of the text again after each
/// mistake.
const EACH: Duration = Duration::from_micros(100);
/// Additional time, for a page fault or for an interrupt that Linux charges to this process.
const SLACK: Duration = Duration::from_millis(50);
const SHIPPED: [(&str, &str); 4] = [
    ("robotgate", include_str!("../../../conf/robotgate.toml")),
    ("google-12-hours", include_str!("../../../conf/google-12-hours.toml")),
    ("polite", include_str!("../../../conf/polite.toml")),
    (
        "rfc9309-cached-copy",
        include_str!("../../../conf/rfc9309-cached-copy.toml"),
    ),
];
const MISTAKES: &str = r#"
[proxy]
listen = ["::1", 1]
max-header-bytes = "1 KB"
bogus = 1
[[https.tunnel]]
host = "a"
until = 2027-01-31
[[bot]]
name = "a"
user-agents = "a"
[[bot]]
name = "A"
[egress]
ports = [80, "1-2"]
"#;
