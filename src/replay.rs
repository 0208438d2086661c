//! Decides a logged decision again, from its line in the audit log, the configuration and the robots.txt; or as if one
//! of these had been otherwise ([`what_if`]). No I/O and no clock.
//!
//! [`crate::decision`] decides, as for the proxy. What the line alone can tell is taken from it: who sent the request,
//! and how the fetch of the robots.txt ended.

mod batch;
mod cases;
mod line;
mod recheck;
mod summary;
mod what_if;

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

pub(crate) use self::batch::in_parallel;
pub use self::{
    batch::{ReadTexts, Replayed, Replayer},
    cases::Cases,
    line::LoggedDecision,
    recheck::AnsweredSite,
    summary::{Example, Group, Outline, Place, Report, Summary},
    what_if::{Assumed, Change, Effect, Finding, Unknown, what_if},
};
use crate::{
    bot::{Cause, Identity},
    config::Config,
    copy::{FetchError, Freshness, Lookup, Meaning, OriginState, Policy, Received, RobotsCopy, Sha256},
    decision::{Begun, Decision, DecisionTexts, Question, Reason, Scope, Subject},
    origin::{Reading, Target},
};

/// What became of a logged decision.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Same,
    /// The engine decides otherwise, or for another reason.
    Different(Vec<Difference>),
    /// The network or the moment decided, so there is nothing to decide again.
    AsLogged,
    NotReplayable(Missing),
}

/// A field of the line that would now be different.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    pub field: &'static str,
    pub logged: Option<String>,
    pub now: Option<String>,
}

/// Why a decision cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Missing {
    #[error("the line names no configuration, because an earlier version wrote it")]
    NoConfig,
    #[error("the store of evidence does not have the configuration {0}")]
    Config(Sha256),
    #[error("this version does not accept the configuration {0}")]
    BadConfig(Sha256),
    #[error("the store of evidence does not have the robots.txt {0}")]
    Text(Sha256),
    #[error("the query was left out of the log (audit.redact-query)")]
    Redacted,
    #[error("a parameter was left out of the log (audit.redact-query)")]
    RedactedParameter,
    #[error("the log shows the URL escaped or cut")]
    Escaped,
    #[error("the configuration does not have the bot")]
    UnknownBot,
    #[error("the line does not have a valid {0}")]
    Malformed(&'static str),
}

/// Decides `logged` again and compares. `text` is the robots.txt of the line's `robots_sha256`, read with the profile
/// of `config`, if the line names one and the store has it.
pub fn replay(logged: &LoggedDecision<'_>, config: &Config, text: Option<&Arc<RobotsCopy>>) -> Outcome {
    if is_as_logged(logged) {
        return Outcome::AsLogged;
    }
    match decide(logged, config, text) {
        Ok(decision) => {
            let differences = compare(logged, &decision);
            match differences.is_empty() {
                true => Outcome::Same,
                false => Outcome::Different(differences),
            }
        }
        Err(missing) => Outcome::NotReplayable(missing),
    }
}

/// Returns whether the network (the address of the host, a credential) or the moment (the turn at the site) decided.
pub fn is_as_logged(logged: &LoggedDecision<'_>) -> bool {
    [Reason::Egress, Reason::Pace, Reason::Unauthenticated, Reason::Identity]
        .iter()
        .any(|reason| reason.as_str() == logged.reason)
}

/// Decides `logged` again.
///
/// # Errors
/// If something is missing that the decision rests on.
pub fn decide(
    logged: &LoggedDecision<'_>,
    config: &Config,
    text: Option<&Arc<RobotsCopy>>,
) -> Result<Decision, Missing> {
    // A rule may look at what was left out. Without a robots.txt, there is no rule.
    if logged.robots_sha256.is_some() {
        check_whole(logged, Some(config))?;
    }
    let target = target(logged)?;
    let scope = match &*logged.method {
        "CONNECT" => Scope::Tunnel {
            exception: exception(logged, &target, config)?,
        },
        _ => path_scope(logged),
    };
    let question = question(identity(logged, config)?, target, scope, config);
    match question.begin(None) {
        Begun::Decided(decision) => Ok(match text {
            Some(_) => decision.with_lookup(lookup(logged, &config.robots.policy, text)?),
            None => decision,
        }),
        Begun::NeedsCopy(undecided) => Ok(undecided.decide(lookup(logged, &config.robots.policy, text)?)),
    }
}

fn target(logged: &LoggedDecision<'_>) -> Result<Target, Missing> {
    if logged.url.contains("\\u{") || logged.url.ends_with('…') {
        return Err(Missing::Escaped);
    }
    Target::parse(&logged.url).map_err(|_| Missing::Malformed("url"))
}

/// Checks that `audit.redact-query` left out no part of the URL. `config` is the one that decided.
fn check_whole(logged: &LoggedDecision<'_>, config: Option<&Config>) -> Result<(), Missing> {
    if logged.url.ends_with("?redacted") {
        return Err(Missing::Redacted);
    }
    let hides_value = match config {
        Some(config) => config.audit.privacy.redact_query.hides_value(&logged.url),
        // The value might be a real one, but nothing says so.
        None => logged.url.contains("=redacted"),
    };
    match hides_value {
        true => Err(Missing::RedactedParameter),
        false => Ok(()),
    }
}

/// Returns why `config` lets tunnels to the host through at the time of the line.
fn exception(logged: &LoggedDecision<'_>, target: &Target, config: &Config) -> Result<Option<Arc<str>>, Missing> {
    if config.https.tunnels.is_empty() {
        return Ok(None);
    }
    let time = OffsetDateTime::parse(&logged.time, &Rfc3339).map_err(|_| Missing::Malformed("time"))?;
    let host = target.origin.host.to_string();
    let exception = config.https.tunnel_exception(&host, time.into());
    Ok(exception.map(|exception| exception.reason.clone()))
}

fn path_scope(logged: &LoggedDecision<'_>) -> Scope {
    // Whether the request was for the robots.txt alone depends on its fields, which the log does not have.
    Scope::Path {
        alone: logged.reason == Reason::RobotsFile.as_str(),
    }
}

fn question(identity: Identity<'_>, target: Target, scope: Scope, config: &Config) -> Question {
    Question {
        subject: Subject::of(identity),
        target: match scope {
            Scope::Tunnel { .. } => Target::of_connect(target.origin),
            Scope::Path { .. } => target,
        },
        scope,
        terms: config.terms(0),
    }
}

fn identity<'l>(logged: &'l LoggedDecision<'_>, config: &Config) -> Result<Identity<'l>, Missing> {
    Ok(match (logged.bot.as_deref(), &*logged.identity) {
        // For a decision, no cause differs from another.
        (None, _) => Identity::Unidentified(Cause::Missing),
        (Some(token), "product-token") => Identity::Token(Cow::Borrowed(token)),
        (Some(name), _) => {
            let bot = config.bots.named(name);
            Identity::Bot(bot.ok_or(Missing::UnknownBot)?.clone())
        }
    })
}

/// Returns what the proxy knew of the origin, as the line tells it.
fn lookup(logged: &LoggedDecision<'_>, policy: &Policy, text: Option<&Arc<RobotsCopy>>) -> Result<Lookup, Missing> {
    let is = |reason: Reason| reason.as_str() == logged.reason;
    let status = logged.robots_status.unwrap_or(0);
    let unknown = OriginState::unknown();
    let start = SystemTime::UNIX_EPOCH + START;
    let after = |state: &OriginState, meaning| state.after(meaning, status, Freshness::default(), start, 0.0, policy);
    let failed = || Meaning::Failed(FetchError::Earlier("it could not be fetched".to_owned()).into());
    // The copies have expired by then, and failures have lasted for long enough.
    let late = start + policy.unreachable.deny_for + YEARS;
    let (state, at) = match (text, logged.robots_sha256) {
        (Some(copy), _) => {
            let rules = after(&unknown, Meaning::Rules(copy.clone()));
            match is(Reason::LastCopy) {
                true => (after(&rules, failed()), late),
                false => (rules, start),
            }
        }
        (None, Some(sha256)) => return Err(Missing::Text(sha256)),
        (None, None) if logged.robots_error.is_some() => {
            let at = if is(Reason::UnreachableTooLong) { late } else { start };
            (after(&unknown, failed()), at)
        }
        (None, None) if (500..=599).contains(&status) && is(Reason::Soft404) && policy.soft_404 => {
            (after(&unknown, Meaning::Soft404), start)
        }
        // A chain of redirects that did not end.
        (None, None) if (300..=399).contains(&status) => (after(&unknown, Meaning::NoRobots), start),
        (None, None) if status != 0 => {
            let received = Received {
                status,
                body: Vec::new(),
                cut_off: Vec::new(),
                freshness: Freshness::default(),
                retry_after: None,
                etag: None,
                redirected: false,
            };
            match Meaning::of(&received, policy, start) {
                // The line has a digest if there were rules.
                Meaning::Rules(_) => return Err(Missing::Malformed("robots_sha256")),
                meaning => (after(&unknown, meaning), start),
            }
        }
        (None, None) => (unknown, start),
    };
    Ok(Lookup::at_once(Arc::new(state), at, policy, &Arc::default()))
}

fn compare(logged: &LoggedDecision<'_>, decision: &Decision) -> Vec<Difference> {
    let texts = DecisionTexts::of(decision, "", false);
    let mut differences = Vec::new();
    let mut differ = |field, logged: Option<&str>, now: Option<&str>| {
        if logged != now {
            differences.push(Difference {
                field,
                logged: logged.map(str::to_owned),
                now: now.map(str::to_owned),
            });
        }
    };
    let yes_or_no = |value| Some(if value { "true" } else { "false" });
    differ("verdict", Some(&logged.verdict), Some(texts.verdict.as_str()));
    differ("reason", Some(&logged.reason), Some(texts.reason.as_str()));
    differ(
        "enforcement",
        Some(&logged.enforcement),
        Some(texts.enforcement.as_str()),
    );
    differ("forwarded", yes_or_no(logged.forwarded), yes_or_no(texts.forwarded));
    differ("exception", logged.exception.as_deref(), decision.exception());
    let exemption = decision.exemption().map(|exemption| exemption.to_string());
    differ("exemption", logged.exemption.as_deref(), exemption.as_deref());
    differ("rule", logged.rule.as_deref(), texts.rule.as_deref());
    let [logged_line, line] = [logged.line, texts.line].map(|line| line.map(|line| line.to_string()));
    differ("line", logged_line.as_deref(), line.as_deref());
    differ(
        "reading",
        logged.reading.as_deref(),
        decision.reading.map(Reading::as_str),
    );
    let read_as = texts.read_as.as_ref().map(|(_, path)| &**path);
    differ("read_as", logged.read_as.as_deref(), read_as);
    // A decision that needs no copy can have been logged with one, whose text may be missing now.
    if decision.lookup.is_some() || logged.robots_sha256.is_none() {
        differ("agent", logged.agent.as_deref(), texts.agent.as_deref());
        differ("group", logged.group.as_deref(), texts.group.as_deref());
    }
    differences
}

/// The time of the fetch in a replay, since 1970. No decision depends on it, but failures count only from a plausible
/// time.
const START: Duration = Duration::from_secs(2_000_000_000);
/// Longer than any copy applies.
const YEARS: Duration = Duration::from_secs(20 * 365 * 24 * 60 * 60);

#[cfg(test)]
mod tests;
