//! The engine and the model give the answers that `tests/cases` states for Google's parser and for RFC 9309.

use data_encoding::BASE64;
use robotgate::robots::{Profile, RobotsTxt, path_of_url};
use serde::Deserialize;

use super::{model, rfc9309};

#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    robots: Option<String>,
    robots_b64: Option<String>,
    pub agent: String,
    pub url: String,
    pub allowed: bool,
    pub line: u32,
    rfc_allowed: Option<bool>,
}

#[test]
fn the_seed_cases_give_the_expected_answers() {
    run(SEEDS);
}

#[test]
fn the_rfc_cases_give_the_answers_of_google() {
    run(RFC9309);
}

#[test]
fn the_cases_with_an_rfc_answer_agree_in_the_rfc9309_profile() {
    let stated: Vec<Case> = all().filter(|case| case.rfc_allowed.is_some()).collect();
    assert_eq!(stated.len(), 99 + 21 + 123);
    let wrong: Vec<String> = stated.iter().filter_map(Case::fault_in_rfc9309_profile).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Spellings that RFC 9309 §2.2.2 and §2.2.3 treat as equal or as different, in the engine and in the model.
#[test]
fn the_rfc9309_profile_compares_spellings_as_the_rfc_says() {
    for (pattern, path, same) in [
        // The table in §2.2.2.
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", true),
        (
            "/foo/bar?baz=https://foo.bar",
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            true,
        ),
        ("/foo/bar/\u{30c4}", "/foo/bar/%E3%83%84", true),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", true),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", true),
        // Special characters and their escapes.
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true),
        ("/path/file-with-a-%2a.html", "/path/file-with-a-%2A.html", true),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", false),
        ("/path/file-with-a-*.html", "/path/file-with-a-%2A.html", true),
        ("/path/foo-%24", "/path/foo-$", true),
        ("/path/foo-%24", "/path/foo-", false),
        ("/path/foo-$", "/path/foo-$", false),
        ("/a$b", "/a%24b", true),
        ("/a$$", "/a$", true),
        ("/a$$", "/a$b", false),
        // The character `{` is neither reserved nor unreserved, so it differs from its escape.
        ("/%7b", "/%7B", true),
        ("/{", "/%7B", false),
        // Escaped URL delimiters differ from plain ones, except in a query.
        ("/a%2Fb", "/a/b", false),
        ("/a/b", "/a%2fb", false),
        ("/a?b", "/a%3Fb", false),
        ("/a%2Fb", "/a%2fb", true),
        ("/a?b%2Fc%3fd", "/a?b/c?d", true),
        ("/*?b*%2Fc", "/a?b/c", true),
        ("/a%3Bb", "/a;b", true),
        ("/%20", "/%2520", false),
        ("/%zz", "/%ZZ", false),
        // Escapes are decoded only once.
        ("/%2561", "/%61", false),
        ("/%+1", "/%+1", true),
    ] {
        let body = format!("User-agent: *\nDisallow: {pattern}");
        let robots = RobotsTxt::parse_as(Profile::Rfc9309, body.as_bytes());
        let url = format!("http://e{path}");
        let found = robots.agent("a").decide(&path_of_url(url.as_bytes())).allowed;
        let modelled = rfc9309::decide(body.as_bytes(), "a", url.as_bytes()).0;
        assert_eq!((found, modelled), (!same, !same), "{pattern} and {path}");
    }
}

#[test]
fn the_tricky_cases_give_the_expected_answers() {
    run(TRICKY);
}

/// Returns every case with an answer of Google's parser.
pub fn all() -> impl Iterator<Item = Case> {
    [SEEDS, RFC9309, TRICKY].into_iter().flat_map(read)
}

fn run(file: (&str, usize)) {
    let wrong: Vec<String> = read(file).iter().filter_map(Case::fault).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn read((lines, count): (&str, usize)) -> Vec<Case> {
    let cases: Vec<Case> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a case is JSON"))
        .collect();
    assert_eq!(cases.len(), count);
    cases
}

// === impl Case ===

impl Case {
    fn fault_in_rfc9309_profile(&self) -> Option<String> {
        let robots = RobotsTxt::parse_as(Profile::Rfc9309, &self.body());
        let found = robots.agent(&self.agent).decide(&path_of_url(self.url.as_bytes()));
        let wanted = self.rfc_allowed.expect("each case of the RFC has its answer");
        let line = found.rule.map_or(0, |id| robots.rule(id).line);
        let modelled = rfc9309::decide(&self.body(), &self.agent, self.url.as_bytes());
        (found.allowed != wanted || modelled != (found.allowed, line)).then(|| {
            let Self { id, .. } = self;
            format!("{id}: engine {:?}, model {modelled:?}", (found.allowed, line))
        })
    }

    fn fault(&self) -> Option<String> {
        let body = self.body();
        let robots = RobotsTxt::parse(&body);
        let found = robots.agent(&self.agent).decide(&path_of_url(self.url.as_bytes()));
        let line = found.rule.map_or(0, |id| robots.rule(id).line);
        let wanted = (self.allowed, self.line);
        let modelled = model::decide(&body, &self.agent, self.url.as_bytes());
        ((found.allowed, line) != wanted || modelled != wanted).then(|| {
            let Self { id, .. } = self;
            let allowed = found.allowed;
            format!(
                "{id}: engine {:?}, model {modelled:?}, wanted {wanted:?}",
                (allowed, line)
            )
        })
    }

    pub fn body(&self) -> Vec<u8> {
        match (&self.robots, &self.robots_b64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(base64)) => BASE64.decode(base64.as_bytes()).expect("a case is base64"),
            _ => panic!("{}: one of robots and robots_b64", self.id),
        }
    }
}

/// Each file and its number of cases.
const SEEDS: (&str, usize) = (include_str!("../../cases/seeds.jsonl"), 99);
const RFC9309: (&str, usize) = (include_str!("../../cases/rfc9309.jsonl"), 21);
const TRICKY: (&str, usize) = (include_str!("../../cases/tricky.jsonl"), 188);
