//! `[[expect]]`: cases that a configuration must meet before it is used.
//!
//! They run against the robots.txt that they bring along: nothing is fetched.

use std::sync::Arc;
use std::time::SystemTime;

use toml::Spanned;
use url::Url;

use super::Config;
use super::check::Checker;
use super::written::{self, Table};
use crate::cache::{Answer, RobotsCopy};
use crate::decision::{Asker, Decision, Verdict};
use crate::origin::readings;

/// One `[[expect]]`: what a bot's request must come to, given a robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The User-Agent field of the request.
    pub agent: String,
    /// The URL asked for, http or https.
    pub url: Url,
    /// The text of the origin's robots.txt.
    pub robots: String,
    /// What it must come to.
    pub verdict: Verdict,
    /// Where the entry begins in the file, from 1.
    pub line: usize,
}

/// An expectation that the configuration does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Where the entry begins in the file, from 1.
    pub line: usize,
    /// What was expected of what, and what it came to.
    pub message: String,
}

// === impl Expectation ===

impl Expectation {
    pub(super) fn check(entry: Spanned<Table<written::Expect>>, checker: &mut Checker<'_>) -> Option<Self> {
        let table = entry.span();
        let Table(written) = entry.into_inner();
        let agent = checker
            .required(written.agent, &table, "agent")
            .map(Spanned::into_inner);
        let url = checker
            .required(written.url, &table, "url")
            .and_then(|url| checker.parsed(&url, web_address));
        let robots = checker
            .required(written.robots, &table, "robots")
            .map(Spanned::into_inner);
        let verdict = checker.required(written.verdict, &table, "verdict");
        Some(Self {
            agent: agent?,
            url: url?,
            robots: robots?,
            verdict: verdict?,
            line: checker.line(&table),
        })
    }
}

impl Config {
    /// Runs every `[[expect]]`, and tells those that the configuration does not meet.
    pub fn unmet_expectations(&self) -> Vec<Unmet> {
        self.expect
            .iter()
            .filter_map(|expectation| {
                let message = expectation.unmet(self)?;
                Some(Unmet {
                    line: expectation.line,
                    message,
                })
            })
            .collect()
    }
}

impl Expectation {
    /// What the expectation comes to instead of what it says, as a sentence.
    fn unmet(&self, config: &Config) -> Option<String> {
        let decision = self.decide(config);
        if decision.verdict == self.verdict {
            return None;
        }
        Some(format!(
            "expected \"{}\" for {} as \"{}\", but it comes to \"{}\" (reason: {}); correct the entry or the rules \
             that it tests",
            self.verdict.as_str(),
            self.url,
            self.agent,
            decision.verdict.as_str(),
            decision.reason.as_str(),
        ))
    }

    fn decide(&self, config: &Config) -> Decision {
        let identity = config.bots.identify([self.agent.as_bytes()]);
        let asker = Asker::new(&identity, config.identity.unidentified);
        let copy = Arc::new(RobotsCopy::new(self.robots.as_bytes(), SystemTime::UNIX_EPOCH));
        let answer = Answer::Rules(&copy);
        if self.verdict == Verdict::Unverifiable {
            return Decision::of_asker(asker).unwrap_or_else(|| Decision::on_tunnel(asker, answer, false));
        }
        let path = &self.url[url::Position::BeforePath..url::Position::AfterQuery];
        let readings = readings(path.as_bytes());
        Decision::without_copy(asker, &readings).unwrap_or_else(|| Decision::on_path(asker, answer, &readings))
    }
}

fn web_address(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Ok(_) => Err(format!("\"{text}\" is neither http nor https")),
        Err(error) => Err(format!(
            "\"{text}\" is not a URL ({error}); write one like \"https://example.com/page\""
        )),
    }
}
