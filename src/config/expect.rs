//! `[[expect]]`: test cases that a configuration has to pass before robotgate uses it. This module does not run them.

use url::Url;

use super::table::Table;
use crate::{decision::Verdict, origin::Scheme, usage::Purpose};

/// One `[[expect]]`: which verdict a bot's request must get if the site has a given robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The User-Agent field of the request.
    pub agent: String,
    /// The requested http, https or ftp URL, as written in the file.
    pub url: String,
    /// The purpose of the request. If `None`, the purposes of the bot apply.
    pub purpose: Option<Purpose>,
    /// The text of the origin's robots.txt.
    pub robots: String,
    pub verdict: Verdict,
    /// The line of the file where the entry begins, from 1.
    pub line: usize,
}

// === impl Expectation ===

impl Expectation {
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let agent = table.required("agent", r#""AcmeBot""#, Table::text);
        let url = table.required("url", r#""https://example.com/private""#, |table, key| {
            table.parsed(key, web_address)
        });
        let purpose = table.parsed("purpose", str::parse::<Purpose>);
        table.has_words("purpose", Purpose::ALL.map(Purpose::as_str));
        let robots = table.required("robots", r#""User-agent: *\nDisallow: /private""#, Table::text);
        let verdict = table.required("verdict", r#""deny""#, Table::choice);
        Some(Self {
            agent: agent?.into_inner().to_owned(),
            url: url?,
            purpose,
            robots: robots?.into_inner().to_owned(),
            verdict: verdict?.into_inner(),
            line: table.checker.line(&table.span()?),
        })
    }
}

fn web_address(text: &str) -> Result<String, String> {
    match Url::parse(text) {
        Ok(url) if Scheme::parse(url.scheme().as_bytes()).is_some() => Ok(text.to_owned()),
        Ok(_) => Err(format!(
            "\"{text}\" is not an http, https or ftp URL; write one like \"https://example.com/page\""
        )),
        Err(error) => Err(format!(
            "\"{text}\" is not a URL ({error}); write one like \"https://example.com/page\""
        )),
    }
}
