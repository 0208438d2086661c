//! The stated cases as a fuzzer's first inputs.

use std::{fs, io, path::Path};

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

/// Puts every case into the corpus, a file each.
///
/// # Panics
/// When the corpus cannot be written: a fuzzer without seeds would find little, and look well.
pub fn write() {
    if let Err(error) = try_write(Path::new(CORPUS)) {
        panic!("{CORPUS}: {error}");
    }
}

fn try_write(corpus: &Path) -> io::Result<()> {
    fs::create_dir_all(corpus)?;
    for line in CASES.iter().flat_map(|file| file.lines()) {
        let case: Case = serde_json::from_str(line)?;
        fs::write(corpus.join(case.id.replace('/', "-")), case.input()?)?;
    }
    Ok(())
}

// === impl Case ===

impl Case {
    fn input(&self) -> io::Result<Vec<u8>> {
        let decoded = match &self.robots_b64 {
            Some(base64) => BASE64.decode(base64.as_bytes()).map_err(io::Error::other)?,
            None => Vec::new(),
        };
        let input = Input {
            agent: self.agent.as_str().into(),
            url: self.url.as_bytes(),
            body: self.robots.as_deref().map_or(&decoded, str::as_bytes),
        };
        Ok(input.write())
    }
}

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/decide");
const CASES: &[&str] = &[
    include_str!("../cases/seeds.jsonl"),
    include_str!("../cases/rfc9309.jsonl"),
    include_str!("../cases/tricky.jsonl"),
];
