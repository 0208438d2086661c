//! The report as a JSON object for programs. Every field is always present; it is `null` or empty if it does not apply.
//! Fields with a name from the audit log have the same meaning here.
//!
//! `bounded` limits the length of lists. The total is in a field next to each list.

mod bounded;

use std::borrow::Cow;

use serde::Serialize;

use self::bounded::{List, cut};
use super::{AudienceStatement, Report};
use crate::{
    audit::Redirect,
    bot::Identity,
    copy::Sha256,
    decision::{Decision, UsageReport},
    origin::Reading,
    robots::{AgentLine, Choice, Competitor, Disguise, Explanation, LossReason, RuleKind, Weighed},
    text::Timestamp,
};

#[derive(Serialize)]
struct Object<'a> {
    verdict: &'static str,
    reason: &'static str,
    sentence: &'static str,
    enforcement: &'static str,
    /// Whether the proxy would forward the request.
    forwarded: bool,
    url: &'a str,
    user_agent: &'a str,
    bot: Option<&'a str>,
    /// The token that was found in the robots.txt, or else the bot's first token.
    agent: Option<&'a str>,
    /// Why the User-Agent names no bot.
    unidentified: Option<&'static str>,
    /// Whether the proxy refuses this User-Agent without a proof.
    needs_proof: bool,
    /// The reading of the path that decided: `sent`, `normalized` or `strict`.
    reading: Option<&'static str>,
    /// The path that decided, unless it is the path as sent.
    read_as: Option<Cow<'a, str>>,
    group: Option<ConsideredGroup>,
    rule: Option<Rule<'a>>,
    considered: usize,
    /// The losing rules that came nearest to winning, nearest first.
    competitors: List,
    competitors_total: usize,
    robots: Robots<'a>,
    statements: List,
    statements_total: usize,
    profile: &'static str,
    /// What the site says about the purposes. `null` without purposes, and if robots.txt disallows the URL.
    usage: Option<&'a UsageReport>,
    /// Whether the site was asked for its `tdmrep.json`. `null` if that does not matter.
    tdmrep_asked: Option<bool>,
}

/// The groups whose rules were considered, merged into one.
#[derive(Serialize)]
struct ConsideredGroup {
    specific: bool,
    /// Line of the first user-agent line that selected the rules.
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
    /// Number of bytes of the pattern that fit the path, if the rule does not match.
    fits: Option<usize>,
}

#[derive(Serialize)]
struct Robots<'a> {
    url: String,
    /// Name of the file, if the robots.txt was read from one.
    file: Option<String>,
    /// The kind of file that was received, if it is not a robots.txt.
    looks_like: Option<&'static str>,
    #[serde(flatten)]
    fetch: FetchRecord<'a>,
}

#[derive(Serialize)]
struct StatementRow<'a> {
    kind: &'static str,
    value: Cow<'a, str>,
    line: u32,
    /// The first user-agents of the statement's group.
    agents: Vec<Agent<'a>>,
    agents_total: usize,
    /// Whether the statement applies to the bot. `null` without a bot.
    applies: Option<bool>,
}

/// The outcome of a fetch. The default value means that there was no fetch.
#[derive(Default, Serialize)]
pub(crate) struct FetchRecord<'a> {
    pub(crate) fetched: Option<Timestamp>,
    pub(crate) status: Option<u16>,
    pub(crate) redirects: Vec<Redirect<'a>>,
    /// Size of the robots.txt, up to the limit. `null` if none was read.
    pub(crate) bytes: Option<usize>,
    /// Whether the robots.txt exceeds the limit.
    pub(crate) cut: Option<bool>,
    pub(crate) sha256: Option<Sha256>,
    pub(crate) duration_us: Option<u128>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) error: Option<String>,
}

/// Writes the report as JSON. The robots.txt was read from `file`, or fetched as in `fetch`.
pub(crate) fn write<'a>(report: &'a Report<'a>, file: Option<String>, fetch: FetchRecord<'a>) -> String {
    bounded::to_string(&Object::new(report, file, fetch))
}

// === impl FetchRecord ===

impl FetchRecord<'_> {
    /// Returns the record of the fetch that `decision` is based on.
    pub(crate) fn of(decision: &Decision) -> Self {
        let source_fetch = decision.source_fetch();
        let copy = decision.copy();
        Self {
            fetched: source_fetch.fetched.map(Timestamp),
            status: source_fetch.status,
            bytes: copy.map(|copy| copy.robots.body().len()),
            sha256: copy.map(|copy| copy.sha256),
            expires: source_fetch.expires.map(Timestamp),
            error: decision.shown_error(),
            ..Self::default()
        }
    }
}

// === impl Object ===

impl<'a> Object<'a> {
    fn new(report: &'a Report<'a>, file: Option<String>, fetch: FetchRecord<'a>) -> Self {
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
            group: explanation.and_then(ConsideredGroup::new),
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
    fn new(explanation: &Explanation<'_>) -> Option<Self> {
        let agents = || explanation.groups.iter().flat_map(|group| &group.agents);
        Some(Self {
            specific: explanation.choice != Choice::Everyone,
            line: agents().find(|agent| agent.names(explanation.choice))?.line,
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
    fn new(report: &Report<'_>, file: Option<String>, fetch: FetchRecord<'a>) -> Self {
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

/// Maximum number of characters of a user-agent's name, and of a losing rule or a value.
const MAX_NAME: usize = 200;
const MAX_TEXT: usize = 2000;
/// Maximum number of listed user-agents of one statement.
const MAX_AGENTS: usize = 20;
