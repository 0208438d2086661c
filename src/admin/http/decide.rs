//! Decides whether a bot may fetch a URL, as the proxy would: with its code, and with its robots.txt copies or a given
//! robots.txt. These decisions are not logged, because no bot has sent a request.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{Json, extract::Request, extract::State};
use serde::{Deserialize, Serialize};
use tokio::{task::JoinSet, time::Instant};

use super::{
    Context,
    input::{AssumedProof, DecideParams, Form, StrictQuery, content},
    problem::Problem,
};
use crate::{
    copy::Lookup,
    decision::{self, Decision, DecisionTexts, MAX_TEXT, UsageReport},
    explanation::needs_proof,
    origin::{Reading, Target},
    pace::Cause,
    proxy::{self, Generation, NoDecision},
    text::{Timestamp, plain},
};

#[derive(Debug, Serialize)]
pub(super) struct DecisionFields {
    agent: String,
    url: String,
    verdict: &'static str,
    reason: &'static str,
    enforcement: &'static str,
    forwarded: bool,
    /// The name of the configured bot, or the product token of a bot that is not configured.
    bot: Option<String>,
    sentence: &'static str,
    /// Whether the request would be refused without a proof of identity.
    needs_proof: bool,
    rule: Option<String>,
    line: Option<u32>,
    group: Option<String>,
    reading: Option<&'static str>,
    /// The path in the reading that `reading` names; `None` if `reading` is `sent`, or if no rules decided.
    read_as: Option<String>,
    robots_url: String,
    robots_status: Option<u16>,
    robots_fetched: Option<Timestamp>,
    robots_expires: Option<Timestamp>,
    robots_error: Option<String>,
    /// In seconds, if the refusal is temporary.
    retry_after: Option<u64>,
    /// When the request would be forwarded; `None` if `[pace]` does not delay it, or if the operator sent the
    /// robots.txt with the question.
    not_before: Option<Timestamp>,
    /// Why `[pace]` delays or refuses the request.
    pace_cause: Option<&'static str>,
    /// `None` if the bot has no purposes, or if something else decided first, such as a rule.
    usage: Option<UsageFields>,
}

#[derive(Debug, Serialize)]
pub(super) struct UsageFields {
    #[serde(flatten)]
    report: UsageReport,
    sentences: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Undecided {
    agent: String,
    url: String,
    error: String,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ListedDecision {
    Decided(Box<DecisionFields>),
    Undecided(Undecided),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Questions {
    requests: Vec<DecideParams>,
    /// Replaces the robots.txt of every site.
    robots: Option<String>,
}

impl Form for Questions {
    const FORM: &'static str =
        r#"{"requests": [{"agent": "BOT", "url": "URL"}, ...]}, and maybe "robots": "ROBOTS.TXT""#;
}

#[derive(Clone)]
struct Given {
    generation: Arc<Generation>,
    lookup: Lookup,
}

#[derive(Serialize)]
pub(super) struct Decisions {
    decisions: Vec<ListedDecision>,
}

pub(super) async fn one(
    State(context): State<Arc<Context>>,
    StrictQuery(question): StrictQuery<DecideParams>,
) -> Result<Json<DecisionFields>, Problem> {
    let target = question.target().map_err(Problem::Bad)?;
    let generation = context.live.generation();
    let decision = judge(&generation, &question, target).await?;
    let later = generation.not_before(&decision).await;
    Ok(Json(DecisionFields::new(&generation, question, &decision, later)))
}

pub(super) async fn many(State(context): State<Arc<Context>>, request: Request) -> Result<Json<Decisions>, Problem> {
    let Questions {
        requests: questions,
        robots,
    } = content::<Questions>(request).await?;
    if questions.len() > MAX_QUESTIONS {
        return Err(Problem::Bad(format!(
            "these are {} requests; send at most {MAX_QUESTIONS} in one call",
            questions.len()
        )));
    }
    let deadline = Instant::now() + DECIDE_TIMEOUT;
    let questions: Arc<[DecideParams]> = questions.into();
    let given = match robots {
        Some(robots) => Some(Given::parse(&context, robots).await?),
        None => None,
    };
    let next = Arc::new(AtomicUsize::new(0));
    // If the client disconnects, dropping this set cancels the remaining questions.
    let mut working = JoinSet::new();
    for _ in 0..AT_ONCE.min(questions.len()) {
        let (context, questions, next) = (context.clone(), questions.clone(), next.clone());
        let given = given.clone();
        working.spawn(async move {
            let mut done = Vec::new();
            while let at = next.fetch_add(1, Ordering::Relaxed)
                && let Some(question) = questions.get(at)
            {
                let decided = tokio::time::timeout_at(deadline, decide(&context, question, given.as_ref()));
                let decided = decided.await.unwrap_or_else(|_| Err(NO_TIME.to_owned()));
                done.push((at, ListedDecision::new(question, decided)));
            }
            done
        });
    }
    let mut done: Vec<_> = working.join_all().await.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    Ok(Json(Decisions {
        decisions: done.into_iter().map(|(_, item)| item).collect(),
    }))
}

async fn decide(context: &Context, question: &DecideParams, given: Option<&Given>) -> Result<DecisionFields, String> {
    let target = question.target()?;
    // Decisions are limited because they can start fetches, which can delay fetches for bots. The semaphore is never
    // closed.
    let turn = context.deciding.clone().acquire_owned().await.ok();
    if let Some(given) = given {
        let (Given { generation, lookup }, question) = (given.clone(), question.clone());
        // Matching a long path with a long robots.txt takes long.
        let deciding = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let decision = proxy::decide_with(&generation, asked(&generation, &question, target), lookup);
            DecisionFields::new(&generation, question, &decision, None)
        });
        return deciding.await.map_err(|_| "this cannot be decided".to_owned());
    }
    let generation = context.live.generation();
    let decision = judge(&generation, question, target).await;
    let decision = decision.map_err(|error| error.to_string())?;
    let later = generation.not_before(&decision).await;
    Ok(DecisionFields::new(&generation, question.clone(), &decision, later))
}

pub(super) async fn judge(
    generation: &Generation,
    question: &DecideParams,
    target: Target,
) -> Result<Decision, NoDecision> {
    let asked = asked(generation, question, target);
    proxy::decide(generation, proxy::operators(&generation.config), asked, &mut None).await
}

fn asked(generation: &Generation, question: &DecideParams, target: Target) -> decision::Question {
    let unproven = question.proof == AssumedProof::None;
    let config = &generation.config;
    config
        .question(&question.agent, unproven, target, generation.terms, SystemTime::now())
        .with_purposes(question.purposes)
}

// === impl Given ===

impl Given {
    async fn parse(context: &Context, robots: String) -> Result<Self, Problem> {
        let generation = context.live.generation();
        let parsing = tokio::task::spawn_blocking(move || Self {
            lookup: Lookup::given(robots.as_bytes(), SystemTime::now(), &generation.config.robots.policy),
            generation,
        });
        parsing
            .await
            .map_err(|_| Problem::Unavailable("the robots.txt cannot be read now; try again"))
    }
}

// === impl DecisionFields ===

impl DecisionFields {
    /// `later` says when the proxy would forward the request, and why `[pace]` delays it until then.
    pub(super) fn new(
        generation: &Generation,
        question: DecideParams,
        decision: &Decision,
        later: Option<(SystemTime, Cause)>,
    ) -> Self {
        let texts = DecisionTexts::of(decision, "", false);
        let source_fetch = decision.source_fetch();
        let shown = |text: &str| plain(text, MAX_TEXT).into_owned();
        Self {
            verdict: texts.verdict.as_str(),
            reason: texts.reason.as_str(),
            enforcement: texts.enforcement.as_str(),
            forwarded: decision.forwarded,
            bot: decision.bot().map(shown),
            sentence: texts.sentence,
            needs_proof: needs_proof(&generation.config, &question.agent),
            rule: texts.rule.map(Cow::into_owned),
            line: texts.line,
            group: texts.group.map(Cow::into_owned),
            reading: decision.reading.map(Reading::as_str),
            read_as: texts.read_as.map(|(_, path)| shown(&path)),
            robots_url: texts.robots_url,
            robots_status: source_fetch.status,
            robots_fetched: source_fetch.fetched.map(Timestamp),
            robots_expires: source_fetch.expires.map(Timestamp),
            robots_error: texts.robots_error,
            retry_after: texts.retry_after,
            not_before: later.map(|(at, _)| Timestamp(at)),
            pace_cause: later.map(|(_, cause)| cause).or(texts.pace_cause).map(Cause::as_str),
            usage: texts.usage.map(UsageFields::of),
            agent: question.agent,
            url: question.url,
        }
    }
}

// === impl UsageFields ===

impl UsageFields {
    pub(super) fn of(report: &UsageReport) -> Self {
        Self {
            report: report.clone(),
            sentences: report.said.iter().map(ToString::to_string).collect(),
        }
    }
}

// === impl ListedDecision ===

impl ListedDecision {
    fn new(question: &DecideParams, decided: Result<DecisionFields, String>) -> Self {
        match decided {
            Ok(decided) => Self::Decided(Box::new(decided)),
            Err(error) => Self::Undecided(Undecided {
                agent: question.agent.clone(),
                url: question.url.clone(),
                error,
            }),
        }
    }
}

const MAX_QUESTIONS: usize = 1000;
/// Maximum number of decisions that run at the same time for one request.
const AT_ONCE: usize = 32;
/// Time limit for all questions of a request.
const DECIDE_TIMEOUT: Duration = Duration::from_secs(50);
const NO_TIME: &str = "there was no time to decide this; ask again, or send fewer requests in one call";
