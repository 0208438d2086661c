//! Compares a log line with the new decision, and the fields of the line with each other.

use serde_json::Value;

use super::{Difference, LoggedDecision, LoggedUsage, is_as_logged, what_if::is_as_sent};
use crate::{
    audit::LoggedUserAgent,
    bot::ProofKind,
    config::Config,
    decision::{Basis, Decision, DecisionTexts, Reason, Subject, UsageReport, Verdict},
    origin::{Reading, Target},
};

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

/// Returns the fields that contradict other fields of the same line. `config` says which bot the User-Agent identifies.
pub(super) fn contradictions(logged: &LoggedDecision<'_>, config: &Config) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut differ = |field, logged: Option<&str>, now: Option<&str>| {
        differences.extend(Difference::between(field, logged, now));
    };
    // The log may have shortened the URL or escaped a character in it, so that it does not parse.
    if let Ok(Target { origin, .. }) = Target::parse(&logged.url) {
        differ("origin", Some(&logged.origin), Some(&origin.to_string()));
        if let Some(robots_url) = &logged.robots_url {
            differ("robots_url", Some(robots_url), Some(&origin.robots_url()));
        }
    }
    if is_as_logged(logged) {
        // Only the reason `pace` depends on the time. It defers a request, or denies it if the site's Crawl-delay is
        // too long.
        let depends_on_time = logged.basis() == Some(Basis::Clock);
        let verdict = match depends_on_time && logged.verdict != Verdict::Deny.as_str() {
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

pub(super) fn compare(logged: &LoggedDecision<'_>, decision: &Decision) -> Vec<Difference> {
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
    // If the decision needs no robots.txt, the store of evidence may lack the one that the line names. The agent and
    // the group are then unknown.
    if decision.lookup.is_some() || logged.robots_sha256.is_none() {
        differ("agent", logged.agent.as_deref(), texts.agent.as_deref());
        differ("group", logged.group.as_deref(), texts.group.as_deref());
    }
    differences.extend(differences_of_usage(logged.usage.as_ref(), decision.usage.as_deref()));
    differences
}

fn differences_of_usage(logged: Option<&LoggedUsage>, now: Option<&UsageReport>) -> Vec<Difference> {
    if logged.is_none() && now.is_none() {
        return Vec::new();
    }
    // A `UsageReport` has only texts and numbers, so turning it into JSON cannot fail.
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
