//! Writes decisions as `[[expect]]` cases, which test that the configuration still leads to the same verdicts.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use serde::Serialize;

use super::LoggedDecision;
use crate::{
    config::{Config, Expectation},
    decision::{Decision, Reason, Verdict},
    expect::is_met,
    text::plain_message,
};

/// `[[expect]]` cases, at most one for each bot, site, verdict, reason and rule. Each passes with the configuration
/// given to [`Cases::add`].
#[derive(Debug, Default)]
pub struct Cases {
    done: HashSet<CaseKey>,
    /// Cases that could not be written so far, each with the number of attempts.
    failed: HashMap<CaseKey, u32>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CaseKey {
    bot: Option<String>,
    origin: String,
    verdict: Verdict,
    reason: Reason,
    rule: Option<String>,
}

/// An `[[expect]]` entry. It is written with the fields in this order.
#[derive(Serialize)]
struct Case<'a> {
    agent: &'a str,
    url: &'a str,
    verdict: &'static str,
    robots: &'a str,
}

// === impl Cases ===

impl Cases {
    /// Adds a case for `decision`, unless there is one for the same bot, site, verdict, reason and rule already, or a
    /// limit is reached. If `agent` is given, it replaces the logged User-Agent.
    pub fn add(&mut self, logged: &LoggedDecision<'_>, decision: &Decision, config: &Config, agent: Option<&str>) {
        let key = CaseKey {
            bot: decision.shown_bot(),
            origin: logged.origin.to_string(),
            verdict: decision.verdict,
            reason: decision.reason,
            rule: decision.shown_rule(),
        };
        let attempts = self.failed.get(&key).copied().unwrap_or_default();
        if self.done.len() >= MAX_CASES || self.done.contains(&key) || attempts >= MAX_ATTEMPTS {
            return;
        }
        match expectation(logged, decision, config, agent) {
            Some(expectation) => {
                self.write(&key, &expectation);
                self.failed.remove(&key);
                self.done.insert(key);
            }
            None if self.failed.len() < MAX_CASES => *self.failed.entry(key).or_default() += 1,
            None => {}
        }
    }

    fn write(&mut self, key: &CaseKey, expectation: &Expectation) {
        let basis = key.rule.as_deref().unwrap_or(key.reason.as_str());
        let case = Case {
            agent: &expectation.agent,
            url: &expectation.url,
            verdict: expectation.verdict.as_str(),
            robots: &expectation.robots,
        };
        // A case has only strings, so this cannot fail.
        let case = toml::to_string(&case).unwrap_or_default();
        let bot = key.bot.as_deref().unwrap_or("no bot");
        let title = plain_message(&format!("{bot} at {}: {basis}", key.origin), MAX_TITLE).into_owned();
        let _ = writeln!(self.text, "# {title}\n[[expect]]\n{case}");
    }

    /// Returns the number of cases.
    pub fn count(&self) -> usize {
        self.done.len()
    }

    /// Returns the number of combinations of bot, site, verdict, reason and rule for which no case could be written.
    pub fn impossible(&self) -> usize {
        self.failed.len()
    }

    /// Returns the cases in TOML.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns `None` if the decision depends on something that a case cannot say.
fn expectation(
    logged: &LoggedDecision<'_>,
    decision: &Decision,
    config: &Config,
    agent: Option<&str>,
) -> Option<Expectation> {
    let robots = robots(decision)?;
    let sent = agent.or(logged.user_agent.as_deref()).unwrap_or_default();
    // The User-Agent of a bot that was identified by a proof need not name the bot, so also try the bot's name.
    [Some(sent), decision.shown_bot().as_deref()]
        .into_iter()
        .flatten()
        .map(|agent| Expectation {
            agent: agent.to_owned(),
            url: logged.url.to_string(),
            purpose: None,
            robots: robots.clone(),
            verdict: decision.verdict,
            line: 0,
        })
        .find(|expectation| is_met(expectation, config))
}

/// Returns the robots.txt of a case: the whole text if it is short and UTF-8, otherwise only the rule that decides.
/// Returns `None` if the robots.txt was unreachable.
fn robots(decision: &Decision) -> Option<String> {
    let Some(copy) = decision.copy() else {
        return match decision.reason {
            Reason::Unreachable => None,
            Reason::Exempt => Some("User-agent: *\nDisallow: /\n".to_owned()),
            _ => Some(String::new()),
        };
    };
    let body = copy.robots.body();
    match str::from_utf8(body) {
        Ok(text) if body.len() <= MAX_ROBOTS => Some(text.to_owned()),
        _ => {
            let group = decision.group().unwrap_or("*");
            let rule = decision.shown_rule();
            let rule = rule.as_deref().unwrap_or("Disallow:");
            Some(format!("User-agent: {group}\n{rule}\n"))
        }
    }
}

const MAX_CASES: usize = 10_000;
/// How often to try to write a case for the same bot, site, verdict, reason and rule.
const MAX_ATTEMPTS: u32 = 10;
/// A robots.txt up to this size, in bytes, is written into a case as a whole.
const MAX_ROBOTS: usize = 4 * 1024;
/// Maximum length of the comment above a case, in bytes.
const MAX_TITLE: usize = 200;
