//! Decides a logged request again, from its line in the audit log, the configuration and the robots.txt.
//! [`what_if()`](fn@what_if) decides it as if one of these had been different. No I/O and no clock.
//!
//! The decision itself is made by [`crate::decision`], as in the proxy. The log line says who sent the request, and how
//! the fetch of the robots.txt ended.

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

use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

pub(crate) use self::batch::in_parallel;
use self::what_if::is_as_sent;
pub use self::{
    batch::{ReadTexts, Replayed, Replayer},
    cases::Cases,
    line::{LoggedDecision, LoggedUsage},
    recheck::AnsweredSite,
    summary::{Example, Group, LogPosition, Outline, Report, Summary},
    what_if::{Assumed, Change, Effect, Finding, Unknown, what_if},
};
use crate::{
    audit::LoggedUserAgent,
    bot::{Cause, Identity, ProofKind},
    config::Config,
    copy::{
        CacheStatus, FetchError, Freshness, Lookup, Meaning, OriginState, Policy, Received, RobotsCopy, Sha256, TdmRep,
    },
    decision::{Basis, Decision, DecisionTexts, Question, Reason, Scope, Subject, Tdmrep, UsageReport, Verdict},
    origin::{Reading, Target},
};

/// The result of deciding a logged request again.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Same,
    /// The new decision differs from the logged one, in these fields.
    Different(Vec<Difference>),
    /// The decision depended on the network or on the time of the request, for example because the request came too
    /// early. So it cannot be made again.
    AsLogged,
    NotReplayable(Missing),
}

/// A field of the log line that has a different value in the new decision.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    pub field: &'static str,
    pub logged: Option<String>,
    pub now: Option<String>,
}

/// Why a logged request cannot be decided again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Missing {
    #[error("the line does not name its configuration, because an earlier version of robotgate wrote it")]
    NoConfig,
    #[error("the store of evidence does not have the configuration {0}")]
    Config(Sha256),
    #[error("this version does not accept the configuration {0}")]
    BadConfig(Sha256),
    #[error("the store of evidence does not have the robots.txt {0}")]
    Text(Sha256),
    #[error("the store of evidence does not have the tdmrep.json {0}")]
    Tdmrep(Sha256),
    #[error("the line does not say whether the site has a tdmrep.json")]
    NoTdmrep,
    #[error("the query was left out of the log (audit.redact-query)")]
    Redacted,
    #[error("a parameter was left out of the log (audit.redact-query)")]
    RedactedParameter,
    #[error("the log does not have the exact URL: it was shortened (…), or has a character written as \\u{{…}}")]
    Escaped,
    #[error("the configuration has no bot with the name in the log line")]
    UnknownBot,
    #[error("the line does not have a valid {0}")]
    Malformed(&'static str),
}

/// The robots.txt and the `tdmrep.json` that a log line names by their digests. Each is `None` if the line names none,
/// or if the store of evidence does not have it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'t> {
    /// The robots.txt, parsed with the profile of the configuration that is used now.
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

/// Decides the request of a log line again, and compares the result with the line.
pub fn replay(logged: &LoggedDecision<'_>, config: &Config, texts: Texts<'_>) -> Outcome {
    let mut differences = contradictions(logged, config);
    let is_pace = logged.is(Reason::Pace);
    let decided = match is_as_logged(logged) {
        // The request had to wait because it came too early. But first, the robots.txt had allowed it, and that part
        // can be decided again.
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
        _ if !differences.is_empty() => Outcome::Different(differences),
        Ok(Some(_)) => Outcome::Same,
        Ok(None) => Outcome::AsLogged,
        Err(missing) => Outcome::NotReplayable(missing),
    }
}

/// Returns whether the decision depended on the network (the host's address, a credential) or on the time of the
/// request (its turn at the site). A replay does not know these.
pub fn is_as_logged(logged: &LoggedDecision<'_>) -> bool {
    matches!(logged.basis(), Some(Basis::Network | Basis::Clock))
}

/// Decides the request of a log line again.
///
/// # Errors
/// Fails if the line or the store of evidence lacks something that the decision depends on.
pub fn decide(logged: &LoggedDecision<'_>, config: &Config, texts: Texts<'_>) -> Result<Decision, Missing> {
    // Parts of the URL may be left out of the log, and a rule or statement may depend on them. If there is no
    // robots.txt and no `tdmrep.json`, nothing can depend on them.
    if logged.robots_sha256.is_some() || logged.tdmrep_sha256().is_some() {
        check_whole(logged, Some(config))?;
    }
    let lookup = || lookup(logged, &config.robots.policy, texts.robots);
    let decision = ask(logged, config)?.decide(None, |_| lookup(), |_| tdmrep(logged, texts.tdmrep))?;
    match texts.robots {
        // The line names a copy that the decision does not need.
        Some(_) if decision.lookup.is_none() => Ok(decision.with_lookup(lookup()?)),
        _ => Ok(decision),
    }
}

/// Returns what the proxy knew of the site's `tdmrep.json`. `file` is the one that the log line names. If the line names
/// none, the site had none.
fn tdmrep<'t>(logged: &LoggedDecision<'_>, file: Option<&'t TdmRep>) -> Result<Tdmrep<'t>, Missing> {
    match (logged.tdmrep_sha256(), file) {
        _ if logged.waited_for_tdmrep() => Ok(Tdmrep::Pending),
        (None, _) => Ok(Tdmrep::None),
        (Some(sha256), Some(file)) => Ok(Tdmrep::Found(file, sha256)),
        (Some(sha256), None) => Err(Missing::Tdmrep(sha256)),
    }
}

/// Builds the question for [`crate::decision`] from a log line.
fn ask(logged: &LoggedDecision<'_>, config: &Config) -> Result<Question, Missing> {
    let target = target(logged)?;
    let scope = scope(logged, &target, config)?;
    Ok(question(identity(logged, config)?, target, scope, config))
}

fn target(logged: &LoggedDecision<'_>) -> Result<Target, Missing> {
    if logged.url.contains("\\u{") || logged.url.ends_with('…') {
        return Err(Missing::Escaped);
    }
    let target = Target::parse(&logged.url).map_err(|_| Missing::Malformed("url"))?;
    Ok(Target {
        // The log leaves the user's name out of the URL.
        names_user: logged.is(Reason::FtpLogin),
        ..target
    })
}

/// Checks that the log line has the whole URL: `audit.redact-query` can have left out parts of it. `config` is the
/// configuration that the proxy used.
fn check_whole(logged: &LoggedDecision<'_>, config: Option<&Config>) -> Result<(), Missing> {
    if logged.url.ends_with("?redacted") {
        return Err(Missing::Redacted);
    }
    let hides_value = match config {
        Some(config) => config.audit.privacy.redact_query.hides_value(&logged.url),
        // The client may have sent the value `redacted` itself. The line does not tell, so the value counts as left
        // out.
        None => logged.url.contains("=redacted"),
    };
    match hides_value {
        true => Err(Missing::RedactedParameter),
        false => Ok(()),
    }
}

/// Returns the `[[https.tunnel]]` entry of `config` that was valid for the host when the line was logged.
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
    // Whether this request was only for the robots.txt depends on header fields that the log does not have. The logged
    // reason tells it instead.
    Ok(Scope::Path {
        alone: logged.is(Reason::RobotsFile) || logged.is(Reason::Pace),
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
        // The log does not say why no bot was identified. Every cause leads to the same decision.
        (None, _) => Identity::Unidentified(Cause::Missing),
        (Some(token), "product-token") => Identity::Token(Cow::Borrowed(token)),
        (Some(name), _) => {
            let bot = config.bots.named(name);
            Identity::Bot(bot.ok_or(Missing::UnknownBot)?.clone())
        }
    })
}

/// If the request stopped waiting for a fetch of the robots.txt, returns in which state it had found that fetch.
fn pending_fetch(logged: &LoggedDecision<'_>) -> Option<CacheStatus> {
    let error = logged.robots_error.as_deref()?;
    let statuses = [
        (FetchError::Pending, CacheStatus::Collapsed),
        (FetchError::Queued, CacheStatus::Queued),
    ];
    let found = statuses.into_iter().find(|(pending, _)| pending.to_string() == error);
    found.map(|(_, status)| status)
}

/// Builds what the proxy knew of the origin's robots.txt when it decided the request, as far as the log line says.
fn lookup(logged: &LoggedDecision<'_>, policy: &Policy, text: Option<&Arc<RobotsCopy>>) -> Result<Lookup, Missing> {
    let is = |reason| logged.is(reason);
    // Returns whether the robots.txt, or the lack of one, led to this result. A line with the reason `usage` counts
    // too: a use is refused only after the robots.txt has let the request through, and the line does not say for which
    // reason it did.
    let lets_through = |reason| is(reason) || is(Reason::Usage);
    let status = logged.robots_status.unwrap_or(0);
    let unknown = OriginState::unknown();
    let start = SystemTime::UNIX_EPOCH + START;
    let after = |state: &OriginState, meaning| state.after(meaning, status, Freshness::default(), start, 0.0, policy);
    let failed = || Meaning::Failed(FetchError::Earlier("it could not be fetched".to_owned()).into());
    // The time of the decision if the site had been failing for long. It is so late that every robots.txt has expired,
    // and that failures have lasted longer than `unreachable.deny_for`.
    let late = start + policy.unreachable.deny_for + YEARS;
    let pending = pending_fetch(logged);
    // With the reason `pace`, `robots_error` does not mean that the fetch failed. It says that the Crawl-delay is too
    // long.
    let is_failing = logged.robots_error.is_some() && !is(Reason::Pace);
    let (state, at) = match (text, logged.robots_sha256) {
        (Some(copy), _) => {
            let rules = after(&unknown, Meaning::Rules(copy.clone()));
            match is_failing {
                true => (after(&rules, failed()), late),
                false => (rules, start),
            }
        }
        (None, Some(sha256)) => return Err(Missing::Text(sha256)),
        (None, None) if pending.is_some() => (unknown, start),
        (None, None) if logged.robots_error.is_some() => {
            let at = if lets_through(Reason::UnreachableTooLong) {
                late
            } else {
                start
            };
            (after(&unknown, failed()), at)
        }
        (None, None) if (500..=599).contains(&status) && lets_through(Reason::Soft404) && policy.soft_404 => {
            (after(&unknown, Meaning::Soft404), start)
        }
        // If the last status is 3xx, there were too many redirects. This counts as no robots.txt.
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
                // With this status, a site has rules, and a line then names the digest of their text. This line names
                // none, so it is malformed.
                Meaning::Rules(_) => return Err(Missing::Malformed("robots_sha256")),
                meaning => (after(&unknown, meaning), start),
            }
        }
        (None, None) => (unknown, start),
    };
    let lookup = Lookup::at_once(Arc::new(state), at, policy);
    Ok(match pending {
        Some(status) => Lookup {
            status,
            pending: true,
            ..lookup
        },
        None => lookup,
    })
}

/// Returns the fields that contradict other fields of the same line. This needs no new decision.
fn contradictions(logged: &LoggedDecision<'_>, config: &Config) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut differ = |field, logged: Option<&str>, now: Option<&str>| {
        differences.extend(Difference::between(field, logged, now));
    };
    // The log may have shortened the URL or escaped a character in it. Then it may not parse, and is not compared.
    if let Ok(Target { origin, .. }) = Target::parse(&logged.url) {
        differ("origin", Some(&logged.origin), Some(&origin.to_string()));
        if let Some(robots_url) = &logged.robots_url {
            differ("robots_url", Some(robots_url), Some(&origin.robots_url()));
        }
    }
    if is_as_logged(logged) {
        // The verdict of a request that came too early is `defer`. It is `deny` only if the site's Crawl-delay is too
        // long.
        let verdict = match logged.is(Reason::Pace) && logged.verdict != Verdict::Deny.as_str() {
            true => Verdict::Defer,
            false => Verdict::Deny,
        };
        differ("verdict", Some(&logged.verdict), Some(verdict.as_str()));
        differ("forwarded", Some(yes_or_no(logged.forwarded)), Some("false"));
        differ("rule", logged.rule.as_deref(), None);
        differ("line", logged.line.map(|line| line.to_string()).as_deref(), None);
        differ("reading", logged.reading.as_deref(), None);
    }
    if logged.is(Reason::Unauthenticated) || logged.is(Reason::Identity) {
        differ("bot", logged.bot.as_deref(), None);
        return differences;
    }
    let is_by_proof = ProofKind::from_word(&logged.identity).is_some();
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
    // A line can name a robots.txt copy that its decision does not need. The store of evidence may not have that copy
    // any more, so the fields that come from it are not compared.
    if decision.lookup.is_some() || logged.robots_sha256.is_none() {
        differ("agent", logged.agent.as_deref(), texts.agent.as_deref());
        differ("group", logged.group.as_deref(), texts.group.as_deref());
    }
    differences.extend(differences_of_usage(logged.usage.as_ref(), decision.usage.as_deref()));
    differences
}

/// Compares two things of the logged and the new decision: what the site says about the purposes of the bot, and why a
/// purpose is refused.
fn differences_of_usage(logged: Option<&LoggedUsage>, now: Option<&UsageReport>) -> Vec<Difference> {
    if logged.is_none() && now.is_none() {
        return Vec::new();
    }
    // A report has only texts and numbers, so turning it into JSON cannot fail.
    let now = now.and_then(|now| serde_json::to_value(now).ok());
    let now = |field| now.as_ref().map(|now| &now[field]);
    [
        ("usage.purposes", logged.map(|logged| &logged.purposes), now("purposes")),
        ("usage.said", logged.map(|logged| &logged.said), now("said")),
        ("usage.tdmrep", logged.map(|logged| &logged.tdmrep), now("tdmrep")),
        ("usage.refused", logged.map(|logged| &logged.refused), now("refused")),
    ]
    .into_iter()
    .filter(|(_, was, is)| was != is)
    .map(|(field, was, is)| Difference {
        field,
        logged: was.map(Value::to_string),
        now: is.map(Value::to_string),
    })
    .collect()
}

/// The time at which a replay assumes that the robots.txt was fetched, counted from 1970. Every time after 2025 gives
/// the same decision. An earlier time would count as that of a wrong clock, from which failures are not counted.
const START: Duration = Duration::from_secs(2_000_000_000);
/// So long that every robots.txt copy has expired after it.
const YEARS: Duration = Duration::from_secs(20 * 365 * 24 * 60 * 60);

#[cfg(test)]
mod tests;
