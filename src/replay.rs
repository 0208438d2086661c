//! Decides a logged decision again, from its line in the audit log, the configuration and the robots.txt; or as if one
//! of these had been otherwise ([`what_if()`](fn@what_if)). No I/O and no clock.
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
use self::what_if::is_as_sent;
pub use self::{
    batch::{ReadTexts, Replayed, Replayer},
    cases::Cases,
    line::LoggedDecision,
    recheck::AnsweredSite,
    summary::{Example, Group, Outline, Place, Report, Summary},
    what_if::{Assumed, Change, Effect, Finding, Unknown, what_if},
};
use crate::{
    audit::LoggedUserAgent,
    bot::{Cause, Identity, ProofKind},
    config::Config,
    copy::{FetchError, Freshness, Lookup, Meaning, OriginState, Policy, Received, RobotsCopy, Sha256},
    decision::{Begun, Decision, DecisionTexts, Question, Reason, Scope, Subject, Verdict},
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

// === impl Missing ===

impl Missing {
    /// Returns the digest of the text that is missing or not valid.
    pub fn sha256(&self) -> Option<Sha256> {
        match self {
            Self::Config(sha256) | Self::BadConfig(sha256) | Self::Text(sha256) => Some(*sha256),
            _ => None,
        }
    }

    /// Returns why, without a digest, to count by it.
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

// === impl Difference ===

impl Difference {
    fn between(field: &'static str, logged: Option<&str>, now: Option<&str>) -> Option<Self> {
        (logged != now).then(|| Self {
            field,
            logged: logged.map(str::to_owned),
            now: now.map(str::to_owned),
        })
    }
}

/// Decides `logged` again and compares. `text` is the robots.txt of the line's `robots_sha256`, read with the profile of
/// `config`, if the line names one and the store has it.
pub fn replay(logged: &LoggedDecision<'_>, config: &Config, text: Option<&Arc<RobotsCopy>>) -> Outcome {
    let mut differences = contradictions(logged, config);
    let is_pace = logged.reason == Reason::Pace.as_str();
    let decided = match is_as_logged(logged) {
        // Only a request that the rules let through waits for its turn.
        true if is_pace && logged.robots_sha256.is_some() => decide(logged, config, text).map(Some),
        true => Ok(None),
        false => decide(logged, config, text).map(Some),
    };
    let decided = decided.map(|decision| {
        decision.filter(|decision| !is_pace || logged.verdict == Verdict::Deny.as_str() || !decision.forwarded)
    });
    if let Ok(Some(decision)) = &decided {
        differences.extend(compare(logged, decision));
    }
    match decided {
        _ if !differences.is_empty() => Outcome::Different(differences),
        Ok(Some(_)) => Outcome::Same,
        Ok(None) => Outcome::AsLogged,
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
    match ask(logged, config)?.begin(None) {
        Begun::Decided(decision) => Ok(match text {
            Some(_) => decision.with_lookup(lookup(logged, &config.robots.policy, text)?),
            None => decision,
        }),
        Begun::NeedsCopy(undecided) => Ok(undecided.decide(lookup(logged, &config.robots.policy, text)?)),
    }
}

/// Returns what the request asked.
fn ask(logged: &LoggedDecision<'_>, config: &Config) -> Result<Question, Missing> {
    let target = target(logged)?;
    let scope = scope(logged, &target, config)?;
    Ok(question(identity(logged, config)?, target, scope, config))
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

fn scope(logged: &LoggedDecision<'_>, target: &Target, config: &Config) -> Result<Scope, Missing> {
    if logged.method == "CONNECT" {
        let exception = exception(logged, target, config)?;
        return Ok(Scope::Tunnel { exception });
    }
    // Whether the request was for the robots.txt alone depends on its fields, which the log does not have.
    Ok(Scope::Path {
        alone: [Reason::RobotsFile, Reason::Pace]
            .iter()
            .any(|reason| reason.as_str() == logged.reason),
    })
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

/// Returns the fields that do not fit the rest of the line, whatever was decided.
fn contradictions(logged: &LoggedDecision<'_>, config: &Config) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut differ = |field, logged: Option<&str>, now: Option<&str>| {
        differences.extend(Difference::between(field, logged, now));
    };
    // A URL that is escaped or cut may not be valid.
    if let Ok(Target { origin, .. }) = Target::parse(&logged.url) {
        differ("origin", Some(&logged.origin), Some(&origin.to_string()));
        if let Some(robots_url) = &logged.robots_url {
            differ("robots_url", Some(robots_url), Some(&origin.robots_url()));
        }
    }
    let is = |reason: Reason| reason.as_str() == logged.reason;
    let is_unknown_client = is(Reason::Unauthenticated) || is(Reason::Identity);
    if is_as_logged(logged) {
        // A Crawl-delay that is too long is a deny.
        let verdict = match is(Reason::Pace) && logged.verdict != Verdict::Deny.as_str() {
            true => Verdict::Defer,
            false => Verdict::Deny,
        };
        differ("verdict", Some(&logged.verdict), Some(verdict.as_str()));
        differ("forwarded", Some(yes_or_no(logged.forwarded)), Some("false"));
        differ("rule", logged.rule.as_deref(), None);
        differ("line", logged.line.map(|line| line.to_string()).as_deref(), None);
        differ("reading", logged.reading.as_deref(), None);
    }
    if is_unknown_client {
        differ("bot", logged.bot.as_deref(), None);
        return differences;
    }
    let is_by_proof = ProofKind::ALL.iter().any(|kind| kind.as_str() == logged.identity);
    let is_masked = config.audit.privacy.user_agent != LoggedUserAgent::Keep;
    let field = logged.user_agent.as_deref();
    if is_by_proof || is_masked || !field.is_none_or(|field| is_as_sent(logged, field)) {
        return differences;
    }
    let subject = Subject::of(config.bots.identify(field.map(str::as_bytes)));
    differ("bot", logged.bot.as_deref(), subject.identity.name());
    differ("identity", Some(&logged.identity), Some(subject.known_by()));
    differences
}

fn yes_or_no(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn compare(logged: &LoggedDecision<'_>, decision: &Decision) -> Vec<Difference> {
    let texts = DecisionTexts::of(decision, "", false);
    let mut differences = Vec::new();
    let mut differ = |field, logged: Option<&str>, now: Option<&str>| {
        differences.extend(Difference::between(field, logged, now));
    };
    differ("verdict", Some(&logged.verdict), Some(texts.verdict.as_str()));
    differ("reason", Some(&logged.reason), Some(texts.reason.as_str()));
    differ(
        "enforcement",
        Some(&logged.enforcement),
        Some(texts.enforcement.as_str()),
    );
    let [was, is] = [logged.forwarded, texts.forwarded].map(yes_or_no);
    differ("forwarded", Some(was), Some(is));
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
