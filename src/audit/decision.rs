//! Builds the `decision` records of the audit log, and the `withdrawn` records of responses that the bot must not use.

use std::{borrow::Cow, net::SocketAddr, time::SystemTime};

use super::{
    GenerationFields, Instance, Line, Privacy,
    record::{DecisionRecord, Json, WithdrawnRecord},
    value::Url,
};
use crate::{
    decision::{Decision, DecisionTexts, MAX_TEXT},
    origin::{Reading, Target},
    pace::Cause,
    text::{Timestamp, plain},
    usage::{UseSource, UseStatement},
};

/// Facts about a request that the decision does not contain.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    pub client: SocketAddr,
    pub method: &'a str,
    /// All User-Agent fields of the request, separated by ` | `.
    pub user_agent: Option<&'a str>,
    pub privacy: &'a Privacy,
    pub generation: &'a GenerationFields,
}

/// Builds the log line of `decision`. `texts` contains the decision's values, formatted as text.
pub fn decision_line(decision: &Decision, texts: &DecisionTexts<'_>, request: &RequestFacts<'_>) -> Line {
    let target = decision.target();
    let subject = &decision.question.subject;
    let terms = &decision.question.terms;
    let source_fetch = decision.source_fetch();
    let origin = texts.robots_url.strip_suffix("/robots.txt").unwrap_or_default();
    let privacy = request.privacy;
    let read_as = texts.read_as.as_ref();
    let read_as = read_as.map(|(_, path)| privacy.redact_query.url(Cow::Borrowed(&**path)));
    let user_agent = request.user_agent.map(|text| privacy.user_agent(text));
    let shown = |text| plain(text, MAX_TEXT);
    DecisionRecord {
        time: Timestamp(SystemTime::now()),
        id: texts.id,
        verdict: texts.verdict.as_str(),
        reason: texts.reason.as_str(),
        enforcement: texts.enforcement.as_str(),
        forwarded: decision.forwarded,
        bot: decision.bot().map(shown).as_deref(),
        agent: texts.agent.as_deref(),
        user_agent: user_agent.as_deref().map(shown).as_deref(),
        client: privacy.client(request.client),
        identity: subject.known_by(),
        credential: subject.credential.as_deref().map(shown).as_deref(),
        matched_by: subject.matched_by(request.user_agent).map(shown).as_deref(),
        exception: decision.exception(),
        exemption: decision.exemption(),
        method: request.method,
        url: Url(origin, &shown_path(target, privacy)),
        origin,
        rule: texts.rule.as_deref(),
        line: texts.line,
        group: texts.group.as_deref(),
        reading: decision.reading.map(Reading::as_str),
        read_as: read_as.as_deref(),
        robots_url: &texts.robots_url,
        robots_status: source_fetch.status,
        robots_sha256: decision.copy().map(|copy| copy.sha256),
        robots_fetched: source_fetch.fetched.map(Timestamp),
        robots_expires: source_fetch.expires.map(Timestamp),
        robots_cache: decision.lookup.as_ref().map(|lookup| lookup.status.as_str()),
        robots_error: texts.robots_error.as_deref(),
        profile: terms.policy.profile.as_str(),
        config: request.generation,
        not_before: texts.not_before.map(Timestamp),
        pace_cause: texts.pace_cause.map(Cause::as_str),
        usage: texts.usage.map(Json),
    }
    .line()
}

/// Builds the `withdrawn` line for a response that robotgate withholds because of `decision`. The response has the
/// HTTP status `status` and contains `statement`.
pub fn withdrawn_line(
    decision: &Decision,
    texts: &DecisionTexts<'_>,
    statement: &UseStatement,
    status: u16,
    privacy: &Privacy,
    instance: &Instance,
) -> Line {
    let origin = texts.robots_url.strip_suffix("/robots.txt").unwrap_or_default();
    WithdrawnRecord {
        time: Timestamp(SystemTime::now()),
        id: texts.id,
        instance: instance.as_str(),
        bot: texts.bot.as_deref(),
        url: Url(origin, &shown_path(decision.target(), privacy)),
        purpose: statement.purpose.as_str(),
        vocabulary: statement.vocabulary.as_str(),
        key: statement.label,
        value: statement.value(),
        field: match statement.source {
            UseSource::Field(field) => Some(field),
            UseSource::Line(_) | UseSource::Entry(_) => None,
        },
        status,
    }
    .line()
}

fn shown_path<'t>(target: &'t Target, privacy: &Privacy) -> Cow<'t, str> {
    let path = String::from_utf8_lossy(target.path_of_url());
    match privacy.redact_query.url(path) {
        Cow::Borrowed(path) => plain(path, MAX_URL),
        Cow::Owned(path) => plain(&path, MAX_URL).into_owned().into(),
    }
}

/// Maximum bytes of a URL's path and query in a record. It is large, because an auditor needs the whole URL.
const MAX_URL: usize = 64 * 1024;
