//! Makes inputs of the fuzz target `decide` from the cases in `tests/cases` that say whether a URL is allowed.

use data_encoding::BASE64;
use serde::Deserialize;

use crate::input::Input;

#[derive(Deserialize)]
struct Case {
    id: String,
    robots: Option<String>,
    robots_b64: Option<String>,
    agent: String,
    url: String,
}

/// Returns an input for each case, and the name of the case.
///
/// # Panics
/// If a case cannot be read.
pub fn inputs() -> impl Iterator<Item = (String, Vec<u8>)> {
    let cases = CASES.iter().flat_map(|file| file.lines());
    cases.map(|line| match serde_json::from_str::<Case>(line) {
        Ok(case) => (case.id.replace('/', "-"), case.input()),
        Err(error) => panic!("{error}: {line}"),
    })
}

// === impl Case ===

impl Case {
    fn input(&self) -> Vec<u8> {
        let decoded = match self.robots_b64.as_ref().map(|base64| BASE64.decode(base64.as_bytes())) {
            Some(Ok(decoded)) => decoded,
            Some(Err(error)) => panic!("{}: {error}", self.id),
            None => Vec::new(),
        };
        let input = Input {
            agent: self.agent.as_str().into(),
            url: self.url.as_bytes(),
            body: self.robots.as_deref().map_or(&decoded, str::as_bytes),
        };
        input.write()
    }
}

const CASES: &[&str] = &[
    include_str!("../cases/seeds.jsonl"),
    include_str!("../cases/rfc9309.jsonl"),
    include_str!("../cases/tricky.jsonl"),
];
