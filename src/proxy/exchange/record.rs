//! What of an exchange stands in the audit log: the decision, and the end.

use std::{borrow::Cow, time::SystemTime};

use http::{HeaderMap, header};

use super::{Decided, End, Exchange, Request};
use crate::{
    audit::{Completion, DecisionRecord, Event},
    bot::Identity,
    origin::Reading,
    text::{Timestamp, micros, plain},
};

// === impl Exchange ===

impl Exchange {
    /// The line of the end; `None` where there is none of a decision.
    pub(super) fn completion_line(&self, end: &End) -> Option<Vec<u8>> {
        let decided = self.decided.as_ref()?;
        let lookup = decided.judgement.lookup.as_ref();
        let event = Event::Completion(Completion {
            time: Timestamp(SystemTime::now()),
            id: self.id(),
            status: end.status,
            error: self.failed.as_ref().map(|(error, _)| error.as_str()),
            error_detail: self.failed.as_ref().map(|(_, detail)| detail.as_str()),
            upstream: self.upstream.map(|address| address.to_string()),
            bytes_in: end.bytes_in,
            bytes_out: end.bytes_out,
            duration_us: micros(self.elapsed()),
            robots_wait_us: lookup.map_or(0, |lookup| micros(lookup.waited)),
            connect_us: self.timings.connect.map(micros),
            first_byte_us: self.timings.first_byte.map(micros),
        });
        Some(event.to_line())
    }

    /// The line of the decision.
    pub(super) fn decision_line(&self, request: &Request<'_>, decided: &Decided) -> Vec<u8> {
        let generation = &self.generation;
        let policy = &generation.policy;
        let Decided {
            target,
            judgement,
            robots_url,
            ..
        } = decided;
        let decision = &judgement.decision;
        let answer = judgement.answer(policy);
        let copy = answer.and_then(|answer| answer.copy());
        let rule = judgement.rule(policy);
        let ground = judgement.ground(policy);
        let (bot, said_by) = match request.identity {
            Identity::Bot(bot) => (Some(&*bot.name), "user-agent"),
            Identity::Token(token) => (Some(*token), "product-token"),
            Identity::Unidentified(_) | Identity::Refused(_) => (None, "none"),
        };
        let credential = request.credential(&generation.config.bots);
        let user_agent = user_agent(request.headers);
        let origin = target.origin.to_string();
        let redact = generation.config.audit.redact_query;
        let url = origin.clone() + &logged_path(target.path_of_url(), redact);
        let read_as = self
            .read_as(decided)
            .map(|(_, path)| logged_path(&path, redact).into_owned());
        Event::Decision(DecisionRecord {
            time: Timestamp(SystemTime::now()),
            id: self.id(),
            verdict: decision.verdict.as_str(),
            reason: decision.reason.as_str(),
            enforcement: decision.enforcement.as_str(),
            bot: bot.map(|text| plain(text, MAX_TEXT)).as_deref(),
            agent: decided.agent.as_deref().map(|text| plain(text, MAX_TEXT)).as_deref(),
            user_agent: user_agent.as_deref().map(|text| plain(text, MAX_TEXT)).as_deref(),
            client: request.client.map(|client| client.to_string()),
            identity: request.proof.kind().unwrap_or(said_by),
            credential: credential.as_deref().map(|text| plain(text, MAX_TEXT)).as_deref(),
            exception: request.exception,
            method: request.method.as_str(),
            url: &plain(&url, MAX_URL),
            origin: &origin,
            rule: rule.as_ref().map(|rule| plain(&rule.text, MAX_TEXT)).as_deref(),
            line: rule.as_ref().map(|rule| rule.line),
            group: decided.group.as_deref().map(|text| plain(text, MAX_TEXT)).as_deref(),
            reading: decision.reading.map(Reading::as_str),
            read_as: read_as.as_deref(),
            robots_url,
            robots_status: ground.status,
            robots_sha256: copy.map(|copy| copy.sha256),
            robots_fetched: ground.fetched.map(Timestamp),
            robots_expires: ground.expires.map(Timestamp),
            robots_cache: judgement.lookup.as_ref().map(|lookup| lookup.status.as_str()),
            robots_error: judgement.robots_error(policy),
            profile: generation.config.robots.profile.as_str(),
            config: generation.number,
        })
        .to_line()
    }
}

/// All User-Agent fields that were sent, so that the log shows why a request with two of them was
/// refused.
fn user_agent(headers: &HeaderMap) -> Option<String> {
    let fields: Vec<_> = headers
        .get_all(header::USER_AGENT)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!fields.is_empty()).then(|| fields.join(" | "))
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
pub(super) const MAX_TEXT: usize = 1024;
/// Of a URL, which an auditor needs whole.
const MAX_URL: usize = 64 * 1024;
