//! Decides a logged request again, from its line in the audit log, the configuration and the robots.txt.
//! [`what_if()`](fn@what_if) decides it as if the configuration, the robots.txt or the User-Agent had been different.
//! Only [`Replayer`] does I/O: it reads texts from the store of evidence. This module reads no clock.

mod batch;
mod cases;
mod compare;
mod line;
mod recheck;
mod request;
mod summary;
mod what_if;

use std::sync::Arc;

pub use self::{
    batch::{ReadHistories, ReadTexts, Replayed, Replayer},
    cases::Cases,
    line::{LoggedDecision, LoggedUsage},
    recheck::AnsweredSite,
    summary::{DecisionGroup, Example, LogPosition, Outline, Summary, SummaryOutput},
    what_if::{Effect, Finding, Scenario, Unknown, what_if},
};
use self::{
    compare::{compare, contradictions},
    request::{ask, check_whole, lookup, tdmrep},
};
use crate::{
    config::Config,
    copy::{RobotsCopy, Sha256, TdmRep},
    decision::{Basis, Decision, Reason, Verdict},
};

/// The result of deciding a logged request again.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayOutcome {
    Same,
    /// The line differs from the new decision or contradicts itself, in these fields.
    Different(Vec<Difference>),
    /// The decision depended on the address or port of the site, on the client's proof or on the pace. The log does not
    /// have what is needed to decide that again.
    AsLogged,
    NotReplayable(Missing),
}

/// A field of the log line that has the value `logged`, but should have the value `now` according to the new decision
/// or to other fields of the line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    pub field: &'static str,
    pub logged: Option<String>,
    pub now: Option<String>,
}

/// Why a logged request cannot be decided again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Missing {
    #[error("the log does not say which configuration decided (no config_sha256)")]
    NoConfig,
    #[error("the store of evidence does not have the configuration {0}")]
    Config(Sha256),
    #[error("this version of robotgate does not accept the configuration {0}")]
    BadConfig(Sha256),
    #[error("the store of evidence does not have the robots.txt {0}")]
    Text(Sha256),
    #[error("the store of evidence does not have the tdmrep.json {0}")]
    Tdmrep(Sha256),
    #[error("the line does not say whether the site has a tdmrep.json")]
    NoTdmrep,
    #[error("the query was left out of the log (audit.redact-query)")]
    Redacted,
    #[error("the value of a parameter was left out of the log (audit.redact-query)")]
    RedactedParameter,
    #[error("the log does not have the exact URL: it was shortened (…), or has a character written as \\u{{…}}")]
    Escaped,
    #[error(
        "the line names a bot that is not in the configuration of its config_sha256, so somebody has probably changed \
         the line"
    )]
    UnknownBot,
    #[error("the line does not have a valid {0}")]
    Malformed(&'static str),
}

/// The robots.txt and the `tdmrep.json` that a log line names, as far as the store of evidence has them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'t> {
    /// Parsed with the profile of the configuration that decides the request again.
    pub robots: Option<&'t Arc<RobotsCopy>>,
    pub tdmrep: Option<&'t TdmRep>,
}

// === impl Missing ===

impl Missing {
    /// Returns the digest of the text that is missing or cannot be used.
    pub fn sha256(&self) -> Option<Sha256> {
        match self {
            Self::Config(sha256) | Self::BadConfig(sha256) | Self::Text(sha256) | Self::Tdmrep(sha256) => Some(*sha256),
            _ => None,
        }
    }

    /// Returns the reason without the digest in it, so that equal reasons can be counted together.
    pub fn reason(&self) -> String {
        let text = self.to_string();
        match self
            .sha256()
            .and_then(|sha256| text.strip_suffix(&format!(" {sha256}")))
        {
            Some(reason) => reason.to_owned(),
            None => text,
        }
    }
}

/// Decides the request of a log line again, and compares the result with the line.
pub fn replay(logged: &LoggedDecision<'_>, config: &Config, texts: Texts<'_>) -> ReplayOutcome {
    let mut differences = contradictions(logged, config);
    let is_pace = logged.is(Reason::Pace);
    let decided = match is_as_logged(logged) {
        // A request waits for the pace only if the robots.txt lets the request through, which a replay can check.
        true if is_pace && logged.robots_sha256.is_some() => decide(logged, config, texts).map(Some),
        true => Ok(None),
        false => decide(logged, config, texts).map(Some),
    };
    let decided = decided.map(|decision| {
        decision.filter(|decision| !is_pace || logged.verdict == Verdict::Deny.as_str() || !decision.forwarded)
    });
    if let Ok(Some(decision)) = &decided {
        differences.extend(compare(logged, decision));
    }
    match decided {
        _ if !differences.is_empty() => ReplayOutcome::Different(differences),
        Ok(Some(_)) => ReplayOutcome::Same,
        Ok(None) => ReplayOutcome::AsLogged,
        Err(missing) => ReplayOutcome::NotReplayable(missing),
    }
}

/// Returns whether the decision depended on the address or port of the site, on the client's proof or on the pace. A
/// replay cannot decide that again.
pub fn is_as_logged(logged: &LoggedDecision<'_>) -> bool {
    matches!(logged.basis(), Some(Basis::Network | Basis::Clock))
}

/// Decides the request of a log line again. Fails if the line or the store of evidence lacks something that the
/// decision depends on.
pub fn decide(logged: &LoggedDecision<'_>, config: &Config, texts: Texts<'_>) -> Result<Decision, Missing> {
    // The log may leave out parts of the URL, and a rule or statement may depend on them.
    if logged.robots_sha256.is_some() || logged.tdmrep_sha256().is_some() {
        check_whole(logged, Some(config))?;
    }
    let lookup = || lookup(logged, &config.robots.policy, texts.robots);
    let decision = ask(logged, config)?.decide(None, |_| lookup(), |_| tdmrep(logged, texts.tdmrep))?;
    match texts.robots {
        // The decision does not need this copy, but `compare` reads the agent and the group from it.
        Some(_) if decision.lookup.is_none() => Ok(decision.with_lookup(lookup()?)),
        _ => Ok(decision),
    }
}

#[cfg(test)]
mod tests;
