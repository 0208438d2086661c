//! Writes an explained decision as a JSON object for programs. Fields that do not apply are `null` or empty, never
//! missing. Fields with a name from the audit log have the same meaning here.

mod bounded;

use std::{borrow::Cow, fmt::Display};

use serde::Serialize;

use self::bounded::{List, cut};
use super::{AudienceStatement, ExplainedDecision};
use crate::{
    audit::Redirect,
    bot::Identity,
    copy::{RobotsCopy, Sha256, SourceFetch},
    decision::{Decision, UsageReport},
    origin::Reading,
    robots::{AgentLine, Choice, Competitor, Disguise, Group, LossReason, RuleKind, Weighed},
    text::{Timestamp, plain_message},
};

#[derive(Serialize)]
struct Object<'a> {
    verdict: &'static str,
    reason: &'static str,
    sentence: &'static str,
    enforcement: &'static str,
    forwarded: bool,
    url: &'a str,
    user_agent: &'a str,
    bot: Option<&'a str>,
    /// The bot's product token that the robots.txt names, or else the bot's first token.
    agent: Option<&'a str>,
    unidentified: Option<&'static str>,
    needs_proof: bool,
    /// The form of the path that robotgate decided by: `sent`, `normalized` or `strict`.
    reading: Option<&'static str>,
    /// The path in the form that `reading` names. `null` if that form is `sent`.
    read_as: Option<Cow<'a, str>>,
    group: Option<ConsideredGroup>,
    rule: Option<Rule<'a>>,
    considered: usize,
    /// The rules that lost, the nearest to winning first.
    competitors: List,
    competitors_total: usize,
    robots: Robots<'a>,
    statements: List,
    statements_total: usize,
    profile: &'static str,
    /// `null` if the bot has no purposes, or if they do not matter, as when robots.txt disallows the URL.
    usage: Option<&'a UsageReport>,
    /// `null` if the decision does not need the site's `tdmrep.json`.
    tdmrep_asked: Option<bool>,
}

/// The groups of the robots.txt that apply to the bot, merged into one.
#[derive(Serialize)]
struct ConsideredGroup {
    specific: bool,
    /// The first user-agent line that names the bot. If none does, the first one that names `*`.
    line: u32,
    agents: List,
    agents_total: usize,
}

#[derive(Serialize)]
struct Agent<'a> {
    agent: Cow<'a, str>,
    line: u32,
}

#[derive(Serialize)]
struct Rule<'a> {
    text: Cow<'a, str>,
    line: u32,
    kind: &'static str,
    pattern: Cow<'a, str>,
    directory: bool,
}

#[derive(Serialize)]
struct Loser<'a> {
    #[serde(flatten)]
    rule: Rule<'a>,
    lost: &'static str,
    /// Only if `lost` is `does-not-match`: how many bytes at the start of the pattern match the path.
    fits: Option<usize>,
}

#[derive(Serialize)]
struct Robots<'a> {
    url: String,
    /// The file from which the robots.txt was read. `null` if it was fetched or not needed.
    file: Option<String>,
    /// What kind of file was fetched or read, if it is not a robots.txt.
    looks_like: Option<&'static str>,
    #[serde(flatten)]
    fetch: FetchRecord<'a>,
}

#[derive(Serialize)]
struct StatementRow<'a> {
    kind: &'static str,
    value: Cow<'a, str>,
    line: u32,
    agents: Vec<Agent<'a>>,
    agents_total: usize,
    /// `null` if no bot was identified.
    applies: Option<bool>,
}

/// The robots.txt, and how it was fetched. If it was not fetched, the fields about the fetch are empty.
#[derive(Default, Serialize)]
pub(crate) struct FetchRecord<'a> {
    pub(crate) fetched: Option<Timestamp>,
    pub(crate) status: Option<u16>,
    pub(crate) redirects: Vec<Redirect<'a>>,
    /// Size in bytes of the part that robotgate uses, at most 500 KiB. `null` if there is no robots.txt.
    pub(crate) bytes: Option<usize>,
    /// Whether the robots.txt is longer than 500 KiB.
    pub(crate) cut: Option<bool>,
    pub(crate) sha256: Option<Sha256>,
    pub(crate) duration_us: Option<u128>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) error: Option<String>,
}

/// Writes the report as JSON. `file` is the file from which the robots.txt was read, if it was not fetched.
pub(crate) fn write<'a>(report: &'a ExplainedDecision<'a>, file: Option<String>, fetch: FetchRecord<'a>) -> String {
    bounded::to_string(&Object::new(report, file, fetch))
}

// === impl FetchRecord ===

impl FetchRecord<'_> {
    pub(crate) fn of_decision(decision: &Decision) -> Self {
        Self::of(decision.source_fetch(), decision.copy(), decision.error())
    }

    /// `copy` is the robots.txt that applies after the fetch, if any. `error` is the error of the fetch or of the
    /// decision, if any.
    pub(crate) fn of(source_fetch: SourceFetch, copy: Option<&RobotsCopy>, error: Option<&dyn Display>) -> Self {
        Self {
            fetched: source_fetch.fetched.map(Timestamp),
            status: source_fetch.status,
            bytes: copy.map(|copy| copy.robots.body().len()),
            sha256: copy.map(|copy| copy.sha256),
            expires: source_fetch.expires.map(Timestamp),
            error: error.map(|error| plain_message(&error.to_string(), MAX_ERROR).into_owned()),
            ..Self::default()
        }
    }
}

// === impl Object ===

impl<'a> Object<'a> {
    fn new(report: &'a ExplainedDecision<'a>, file: Option<String>, fetch: FetchRecord<'a>) -> Self {
        let decision = report.decision;
        let explanation = report.why.as_ref().map(|why| &why.explanation);
        let competitors = explanation.map_or(&[][..], |explanation| &explanation.competitors);
        let unidentified = match decision.question.subject.identity {
            Identity::Bot(_) | Identity::Token(_) => None,
            Identity::Unidentified(cause) => Some(cause.as_str()),
            Identity::Refused(mismatch) => Some(mismatch.as_str()),
        };
        Self {
            verdict: decision.verdict.as_str(),
            reason: decision.reason.as_str(),
            sentence: decision.sentence(),
            enforcement: decision.enforcement.as_str(),
            forwarded: decision.forwarded,
            url: report.url,
            user_agent: report.user_agent,
            bot: decision.bot(),
            agent: decision.agent(),
            unidentified,
            needs_proof: report.proofs.is_some(),
            reading: decision.reading.map(Reading::as_str),
            read_as: report
                .why
                .as_ref()
                .and_then(|why| why.read_as.as_ref())
                .map(|(_, path)| String::from_utf8_lossy(path)),
            group: report.groups.as_ref().and_then(ConsideredGroup::new),
            rule: explanation
                .and_then(|explanation| explanation.rule.as_ref())
                .map(|rule| Rule::new(rule, usize::MAX)),
            considered: explanation.map_or(0, |explanation| explanation.considered),
            competitors: bounded::list(competitors.iter().map(Loser::new)),
            competitors_total: competitors.len(),
            robots: Robots::new(report, file, fetch),
            statements: bounded::list(report.statements.iter().map(StatementRow::new)),
            statements_total: report.statements.len(),
            profile: decision.question.terms.policy.profile.as_str(),
            usage: decision.usage.as_deref(),
            tdmrep_asked: report.tdmrep_asked,
        }
    }
}

// === impl ConsideredGroup ===

impl ConsideredGroup {
    fn new((choice, groups): &(Choice<'_>, Vec<Group<'_>>)) -> Option<Self> {
        let agents = || groups.iter().flat_map(|group| &group.agents);
        Some(Self {
            specific: *choice != Choice::Everyone,
            line: agents().find(|agent| agent.names(*choice))?.line,
            agents: bounded::list(agents().map(Agent::new)),
            agents_total: agents().count(),
        })
    }
}

// === impl Agent ===

impl<'a> Agent<'a> {
    fn new(agent: &AgentLine<'a>) -> Self {
        Self {
            agent: cut(agent.name(), MAX_NAME),
            line: agent.line,
        }
    }
}

// === impl Rule ===

impl<'a> Rule<'a> {
    fn new(rule: &'a Weighed<'a>, max: usize) -> Self {
        Self {
            text: cut(Cow::Borrowed(&rule.text), max),
            line: rule.line,
            kind: match rule.kind {
                RuleKind::Allow => "allow",
                RuleKind::Disallow => "disallow",
            },
            pattern: cut(Cow::Borrowed(&rule.pattern), max),
            directory: rule.directory,
        }
    }
}

// === impl Loser ===

impl<'a> Loser<'a> {
    fn new(competitor: &'a Competitor<'a>) -> Self {
        let (lost, fits) = match competitor.lost {
            LossReason::TieAllowWins => ("tie-allow-wins", None),
            LossReason::TieEarlier => ("tie-earlier", None),
            LossReason::ShorterMatch => ("shorter-match", None),
            LossReason::DoesNotMatch { fits } => ("does-not-match", Some(fits)),
            LossReason::NeverMatches => ("never-matches", None),
        };
        Self {
            rule: Rule::new(&competitor.rule, MAX_TEXT),
            lost,
            fits,
        }
    }
}

// === impl Robots ===

impl<'a> Robots<'a> {
    fn new(report: &ExplainedDecision<'_>, file: Option<String>, fetch: FetchRecord<'a>) -> Self {
        Self {
            url: report.decision.target().origin.robots_url(),
            file,
            looks_like: report.disguise.map(|disguise| match disguise {
                Disguise::Html => "web-page",
                Disguise::Utf16 => "utf-16",
                Disguise::Binary => "binary",
            }),
            fetch,
        }
    }
}

// === impl StatementRow ===

impl<'a> StatementRow<'a> {
    fn new(listed: &'a AudienceStatement<'a>) -> Self {
        let statement = &listed.statement;
        Self {
            kind: statement.kind.as_str(),
            value: cut(Cow::Borrowed(&statement.value), MAX_TEXT),
            line: statement.line,
            agents: statement.agents.iter().take(MAX_AGENTS).map(Agent::new).collect(),
            agents_total: statement.agents.len(),
            applies: listed.applies,
        }
    }
}

/// Maximum length of the name in a user-agent line, in characters.
const MAX_NAME: usize = 200;
/// Maximum length of a losing rule or of a statement's value, in characters.
const MAX_TEXT: usize = 2000;
/// Maximum length of an error's text in bytes.
const MAX_ERROR: usize = 512;
const MAX_AGENTS: usize = 20;
