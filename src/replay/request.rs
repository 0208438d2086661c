//! Rebuilds from a log line what the proxy knew when it decided the request: the [`Question`], and the state of the
//! site's robots.txt and `tdmrep.json`.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{LoggedDecision, Missing};
use crate::{
    audit::LoggedUserAgent,
    bot::{Cause, Enforcement, Identity, ProofKind},
    config::Config,
    copy::{
        CacheStatus, FetchError, Freshness, Lookup, Meaning, OriginResponse, OriginState, Policy, RobotsCopy, TdmRep,
    },
    decision::{Question, Reason, Scope, Subject, Tdmrep},
    origin::Target,
};

pub(super) fn ask(logged: &LoggedDecision<'_>, config: &Config) -> Result<Question, Missing> {
    let target = target(logged)?;
    let scope = scope(logged, &target, config)?;
    Ok(question(subject(logged, config)?, target, scope, config))
}

pub(super) fn target(logged: &LoggedDecision<'_>) -> Result<Target, Missing> {
    if logged.url.contains("\\u{") || logged.url.ends_with('…') {
        return Err(Missing::Escaped);
    }
    let target = Target::parse(&logged.url).map_err(|_| Missing::Malformed("url"))?;
    if target.origin.to_string() != logged.origin {
        return Err(Missing::Malformed("origin"));
    }
    Ok(Target {
        // The log leaves the user name out of the URL, but this reason says that there was one.
        names_user: logged.is(Reason::FtpLogin),
        ..target
    })
}

/// Checks that `audit.redact-query` left nothing out of the URL. `config` is the configuration that the proxy used, if
/// it is known.
pub(super) fn check_whole(logged: &LoggedDecision<'_>, config: Option<&Config>) -> Result<(), Missing> {
    if logged.url.ends_with("?redacted") {
        return Err(Missing::Redacted);
    }
    let hides_value = match config {
        Some(config) => config.audit.privacy.redact_query.hides_value(&logged.url),
        // The client itself may have sent the value `redacted`, but assume that the log left out another value.
        None => logged.url.contains("=redacted"),
    };
    match hides_value {
        true => Err(Missing::RedactedParameter),
        false => Ok(()),
    }
}

/// Returns the `reason` of the `[[https.tunnel]]` entry that was valid for the host when the line was logged.
pub(super) fn exception(
    logged: &LoggedDecision<'_>,
    target: &Target,
    config: &Config,
) -> Result<Option<Arc<str>>, Missing> {
    if config.https.tunnels.is_empty() {
        return Ok(None);
    }
    let host = target.origin.host.to_string();
    let exception = config.https.tunnel_exception(&host, logged.time()?);
    Ok(exception.map(|exception| exception.reason.clone()))
}

pub(super) fn scope(logged: &LoggedDecision<'_>, target: &Target, config: &Config) -> Result<Scope, Missing> {
    if logged.method == "CONNECT" {
        let exception = exception(logged, target, config)?;
        return Ok(Scope::Tunnel { exception });
    }
    // `alone` depends on header fields that the log does not have. It was true with the reason `robots-file`; for
    // `pace`, assume the same.
    Ok(Scope::Path {
        alone: logged.is(Reason::RobotsFile) || logged.is(Reason::Pace),
    })
}

pub(super) fn question(subject: Subject, target: Target, scope: Scope, config: &Config) -> Question {
    Question {
        subject,
        target: match scope {
            Scope::Tunnel { .. } => Target::of_connect(target.origin),
            Scope::Path { .. } => target,
        },
        scope,
        terms: config.terms(0),
    }
}

pub(super) fn subject(logged: &LoggedDecision<'_>, config: &Config) -> Result<Subject, Missing> {
    let identity = match (logged.bot.as_deref(), &*logged.identity) {
        (None, _) => Identity::Unidentified(cause(logged, config)),
        (Some(token), "product-token") => Identity::Token(token.into()),
        (Some(name), _) => {
            let bot = config.bots.named(name);
            Identity::Bot(bot.ok_or(Missing::UnknownBot)?.clone())
        }
    };
    Ok(Subject {
        proof: ProofKind::from_word(&logged.identity).map(ProofKind::as_str),
        ..Subject::of(identity)
    })
}

/// Returns why the request named no bot, as far as decisions depend on that.
fn cause(logged: &LoggedDecision<'_>, config: &Config) -> Cause {
    // The log can leave out the User-Agent fields. It joins several fields with ` | `, but a single field can contain
    // ` | ` too. So the enforcement is the only hint: it is never `report` if the request had several fields.
    let is_left_out = config.audit.privacy.user_agent != LoggedUserAgent::Keep;
    let is_joined = logged.user_agent.as_deref().is_some_and(|field| field.contains(" | "));
    match (is_left_out || is_joined) && logged.enforcement == Enforcement::Enforce.as_str() {
        true => Cause::Several,
        false => Cause::Missing,
    }
}

/// If the request stopped waiting for the robots.txt, returns whether the fetch was running (`Collapsed`) or queued.
pub(super) fn pending_fetch(logged: &LoggedDecision<'_>) -> Option<CacheStatus> {
    let error = logged.robots_error.as_deref()?;
    let statuses = [
        (FetchError::Pending, CacheStatus::Collapsed),
        (FetchError::Queued, CacheStatus::Queued),
    ];
    let found = statuses.into_iter().find(|(pending, _)| pending.to_string() == error);
    found.map(|(_, status)| status)
}

/// Returns the status because of which the fetch of the robots.txt failed. `None` if it failed for another reason.
pub(super) fn failed_status(logged: &LoggedDecision<'_>) -> Option<u16> {
    let error = logged.robots_error.as_deref()?;
    (400..=599).find(|status| FetchError::Status(*status).to_string() == error)
}

/// Builds what the proxy knew of the origin's robots.txt, as far as the log line says.
pub(super) fn lookup(
    logged: &LoggedDecision<'_>,
    policy: &Policy,
    text: Option<&Arc<RobotsCopy>>,
) -> Result<Lookup, Missing> {
    let is = |reason| logged.is(reason);
    // With the reason `usage`, the robots.txt had let the request through, but the line does not say why.
    let lets_through = |reason| is(reason) || is(Reason::Usage);
    let status = logged.robots_status.unwrap_or(0);
    let unknown = OriginState::unknown();
    let start = SystemTime::UNIX_EPOCH + START;
    let after = |state: &OriginState, meaning| state.after(meaning, status, Freshness::default(), start, 0.0, policy);
    let failed = || Meaning::Failed(FetchError::Earlier("it could not be fetched".to_owned()).into());
    // This is so late that every robots.txt has expired, and failures have lasted longer than `unreachable.deny_for`.
    let late = start + policy.unreachable.deny_for + YEARS;
    let pending = pending_fetch(logged);
    // With the reason `pace`, `robots_error` can say that the Crawl-delay is too long.
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
        // A last status of 3xx means too many redirects, which count as no robots.txt.
        (None, None) if (300..=399).contains(&status) => (after(&unknown, Meaning::NoRobots), start),
        (None, None) if status != 0 => {
            let received = OriginResponse {
                status,
                body: Vec::new(),
                cut_off: Vec::new(),
                freshness: Freshness::default(),
                retry_after: None,
                etag: None,
                redirected: false,
            };
            match Meaning::of(&received, policy, start) {
                // After such a response, the line would have the digest of the robots.txt. So the line is malformed.
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

/// `file` is the `tdmrep.json` that the log line names.
pub(super) fn tdmrep<'t>(logged: &LoggedDecision<'_>, file: Option<&'t TdmRep>) -> Result<Tdmrep<'t>, Missing> {
    match (logged.tdmrep_sha256(), file) {
        _ if logged.waited_for_tdmrep() => Ok(Tdmrep::Pending),
        (None, _) => Ok(Tdmrep::None),
        (Some(sha256), Some(file)) => Ok(Tdmrep::Found(file, sha256)),
        (Some(sha256), None) => Err(Missing::Tdmrep(sha256)),
    }
}

/// The time at which a replay assumes that the robots.txt was fetched, counted from 1970. A time before 2025 would look
/// like a wrong clock, and failures would never last long enough for `unreachable-too-long`.
pub(super) const START: Duration = Duration::from_secs(2_000_000_000);
/// Longer than any robots.txt copy is valid.
const YEARS: Duration = Duration::from_secs(20 * 365 * 24 * 60 * 60);
