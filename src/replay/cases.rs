//! Writes the decisions under a change as `[[expect]]` cases, so that a configuration can keep them as tests.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use serde::Serialize;

use super::{Assumed, LoggedDecision};
use crate::{
    config::{Config, Expectation},
    decision::{Reason, Verdict},
    expect::is_met,
    text::plain_message,
};

/// Cases for decisions: one for each bot, site and rule. The configuration that a case was made with meets it.
#[derive(Debug, Default)]
pub struct Cases {
    done: HashSet<Key>,
    /// Decisions for which no case could be written so far, and the number of attempts.
    failed: HashMap<Key, u32>,
    text: String,
}

/// What one case is written for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    bot: Option<String>,
    origin: String,
    verdict: Verdict,
    reason: Reason,
    rule: Option<String>,
}

/// An `[[expect]]` entry. The fields are in the order in which they are written.
#[derive(Serialize)]
struct Case<'a> {
    agent: &'a str,
    url: &'a str,
    verdict: &'static str,
    robots: &'a str,
}

// === impl Cases ===

impl Cases {
    /// Adds a case for the decision `assumed`, which `config` makes, unless its bot, site and rule already have one.
    /// `agent` replaces the User-Agent of the line.
    pub fn add(&mut self, logged: &LoggedDecision<'_>, assumed: &Assumed, config: &Config, agent: Option<&str>) {
        let key = Key {
            bot: assumed.bot.clone(),
            origin: logged.origin.to_string(),
            verdict: assumed.verdict,
            reason: assumed.reason,
            rule: assumed.rule.clone(),
        };
        let attempts = self.failed.get(&key).copied().unwrap_or_default();
        if self.done.len() >= MAX_CASES || self.done.contains(&key) || attempts >= MAX_ATTEMPTS {
            return;
        }
        match expectation(logged, assumed, config, agent) {
            Some(expectation) => {
                self.write(&key, &expectation);
                self.failed.remove(&key);
                self.done.insert(key);
            }
            None if self.failed.len() < MAX_CASES => *self.failed.entry(key).or_default() += 1,
            None => {}
        }
    }

    fn write(&mut self, key: &Key, expectation: &Expectation) {
        let basis = key.rule.as_deref().unwrap_or(key.reason.as_str());
        let case = Case {
            agent: &expectation.agent,
            url: &expectation.url,
            verdict: expectation.verdict.as_str(),
            robots: &expectation.robots,
        };
        // Strings always serialize.
        let case = toml::to_string(&case).unwrap_or_default();
        let bot = key.bot.as_deref().unwrap_or("no bot");
        let title = plain_message(&format!("{bot} at {}: {basis}", key.origin), MAX_TITLE).into_owned();
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# {title}\n[[expect]]\n{case}");
    }

    /// Returns the number of cases.
    pub fn count(&self) -> usize {
        self.done.len()
    }

    /// Returns how many combinations of a bot, a site and a rule have no case, because their decision depends on more
    /// than a case can express.
    pub fn impossible(&self) -> usize {
        self.failed.len()
    }

    /// Returns the cases in TOML.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns a case that `config` meets, if one can be written.
fn expectation(
    logged: &LoggedDecision<'_>,
    assumed: &Assumed,
    config: &Config,
    agent: Option<&str>,
) -> Option<Expectation> {
    let robots = robots(assumed)?;
    let sent = agent.or(logged.user_agent.as_deref()).unwrap_or_default();
    // A bot that is identified by a proof can send a User-Agent that does not name it.
    [Some(sent), assumed.bot.as_deref()]
        .into_iter()
        .flatten()
        .map(|agent| Expectation {
            agent: agent.to_owned(),
            url: logged.url.to_string(),
            purpose: None,
            robots: robots.clone(),
            verdict: assumed.verdict,
            line: 0,
        })
        .find(|expectation| is_met(expectation, config))
}

/// Returns the robots.txt of a case: the whole text if it is short, otherwise only the rule that decides.
fn robots(assumed: &Assumed) -> Option<String> {
    let Some(copy) = &assumed.copy else {
        return match assumed.reason {
            Reason::Unreachable => None,
            Reason::Exempt => Some("User-agent: *\nDisallow: /\n".to_owned()),
            _ => Some(String::new()),
        };
    };
    let body = copy.robots.body();
    match str::from_utf8(body) {
        Ok(text) if body.len() <= MAX_ROBOTS => Some(text.to_owned()),
        _ => {
            let group = assumed.group.as_deref().unwrap_or("*");
            let rule = assumed.rule.as_deref().unwrap_or("Disallow:");
            Some(format!("User-agent: {group}\n{rule}\n"))
        }
    }
}

/// Maximum number of cases.
const MAX_CASES: usize = 10_000;
/// How many decisions of one bot, site and rule are tried before giving up.
const MAX_ATTEMPTS: u32 = 10;
/// Maximum bytes of a robots.txt that a case contains whole.
const MAX_ROBOTS: usize = 4 * 1024;
/// Maximum bytes of the comment above a case.
const MAX_TITLE: usize = 200;
