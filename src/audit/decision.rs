//! The record of a decision. The [`Decision`] says everything in it but who sent the request, and how.

use std::{borrow::Cow, net::SocketAddr, time::SystemTime};

use super::{Line, record::DecisionRecord, value::Url};
use crate::{
    decision::Decision,
    origin::Reading,
    text::{Timestamp, plain, plain_message},
};

/// What the log tells of a request beside the decision on it.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    pub id: &'a str,
    pub client: SocketAddr,
    pub method: &'a str,
    /// Of several User-Agent fields, all.
    pub user_agent: Option<&'a str>,
    /// Whether what stands in queries is left out (`audit.redact-query`).
    pub redact_query: bool,
}

/// The line of `decision` on a request.
pub fn decision_line(decision: &Decision, request: &RequestFacts<'_>) -> Line {
    let target = decision.target();
    let subject = &decision.question.subject;
    let terms = &decision.question.terms;
    let rule = decision.rule();
    let ground = decision.ground();
    let picked = decision.picked();
    let robots_url = target.origin.robots_url();
    let origin = robots_url.strip_suffix("/robots.txt").unwrap_or_default();
    let path = logged_path(target.path_of_url(), request.redact_query);
    let read_as = decision
        .read_as()
        .map(|(_, path)| logged_path(&path, request.redact_query).into_owned());
    let shown = |text| plain(text, MAX_TEXT);
    DecisionRecord {
        time: Timestamp(SystemTime::now()),
        id: request.id,
        verdict: decision.verdict.as_str(),
        reason: decision.reason.as_str(),
        enforcement: decision.enforcement.as_str(),
        forwarded: decision.forwarded,
        bot: decision.bot().map(shown).as_deref(),
        agent: picked.map(|(token, _)| shown(token)).as_deref(),
        user_agent: request.user_agent.map(shown).as_deref(),
        client: request.client,
        identity: subject.known_by(),
        credential: subject.credential.as_deref().map(shown).as_deref(),
        exception: decision.exception(),
        method: request.method,
        url: Url(origin, &plain(&path, MAX_URL)),
        origin,
        rule: rule.as_ref().map(|rule| shown(&rule.text)).as_deref(),
        line: rule.as_ref().map(|rule| rule.line),
        group: picked.and_then(|(_, agent)| agent.group()).map(shown).as_deref(),
        reading: decision.reading.map(Reading::as_str),
        read_as: read_as.as_deref(),
        robots_url: &robots_url,
        robots_status: ground.status,
        robots_sha256: decision.copy().map(|copy| copy.sha256),
        robots_fetched: ground.fetched.map(Timestamp),
        robots_expires: ground.expires.map(Timestamp),
        robots_cache: decision.lookup.as_ref().map(|lookup| lookup.status.as_str()),
        robots_error: robots_error(decision),
        profile: terms.policy.profile.as_str(),
        config: terms.generation,
    }
    .line()
}

/// Why the robots.txt could not be had or was not asked for, where that decided.
pub fn robots_error(decision: &Decision) -> Option<String> {
    let error = decision.error()?.to_string();
    Some(plain_message(&error, MAX_ERROR).into_owned())
}

/// The path and query as they were asked for; with `redact`, without what a query may hold.
fn logged_path(path: &[u8], redact: bool) -> Cow<'_, str> {
    let path = String::from_utf8_lossy(path);
    match path.split_once('?') {
        Some((path, _)) if redact => format!("{path}?redacted").into(),
        _ => path,
    }
}

/// Bytes of a text from outside that stand in the log; what is longer is cut and shows it.
pub const MAX_TEXT: usize = 1024;
/// Of a URL's path and query, which an auditor needs whole.
const MAX_URL: usize = 64 * 1024;
/// Of the text of an error.
const MAX_ERROR: usize = 512;
