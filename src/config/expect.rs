//! `[[expect]]`: cases that a configuration must meet before it is used.
//!
//! They are read here and never run.

use toml::Spanned;
use url::Url;

use super::check::Checker;
use super::written::{self, Table};
use crate::decision::Verdict;

/// One `[[expect]]`: what a bot's request must come to, given a robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The User-Agent field of the request.
    pub agent: String,
    /// The URL asked for, http or https, as it was written.
    pub url: String,
    /// The text of the origin's robots.txt.
    pub robots: String,
    /// What it must come to.
    pub verdict: Verdict,
    /// Where the entry begins in the file, from 1.
    pub line: usize,
}

// === impl Expectation ===

impl Expectation {
    pub(super) fn check(entry: Spanned<Table<written::Expect>>, checker: &mut Checker<'_>) -> Option<Self> {
        let table = entry.span();
        let Table(written) = entry.into_inner();
        let agent = checker
            .required(written.agent, &table, ("agent", r#""AcmeBot""#))
            .map(Spanned::into_inner);
        let url = checker
            .required(written.url, &table, ("url", r#""https://example.com/private""#))
            .and_then(|url| checker.parsed(&url, web_address));
        let robots = checker
            .required(
                written.robots,
                &table,
                ("robots", r#""User-agent: *\nDisallow: /private""#),
            )
            .map(Spanned::into_inner);
        let verdict = checker.required(written.verdict, &table, ("verdict", r#""deny""#));
        Some(Self {
            agent: agent?,
            url: url?,
            robots: robots?,
            verdict: verdict?,
            line: checker.line(&table),
        })
    }
}

fn web_address(text: &str) -> Result<String, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        Ok(_) => Err(format!("\"{text}\" is neither http nor https")),
        Err(error) => Err(format!(
            "\"{text}\" is not a URL ({error}); write one like \"https://example.com/page\""
        )),
    }
}
