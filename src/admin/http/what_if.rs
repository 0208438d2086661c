//! Tells which of the latest requests would be decided differently with a change: another configuration, robots.txt or
//! User-Agent. Uses the decisions that are still in memory. Changes nothing. If the client sends another configuration,
//! reads no file that this configuration names.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::header;
use serde::{Deserialize, Serialize};

use super::{
    Context,
    input::{Form, check_agent, content},
    problem::Problem,
};
use crate::{
    audit::MAX_DECISIONS,
    config::Config,
    copy::{RobotsCopy, Sha256},
    evidence::EvidenceReader,
    origin::Origin,
    proxy::Generation,
    replay::{ReadTexts, Replayed, Replayer, Scenario, Summary, SummaryOutput},
    store::Store,
};

/// The change whose effect the client wants to know.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assumption {
    /// The whole text of another configuration file.
    config: Option<String>,
    #[serde(default)]
    robots: Vec<Site>,
    agent: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Site {
    origin: String,
    text: String,
}

#[derive(Serialize)]
struct WhatIfReply<'s> {
    /// Number of decisions in memory that were not decided again because the time ran out. These are the oldest ones.
    skipped: usize,
    #[serde(flatten)]
    report: SummaryOutput<'s>,
}

impl Form for Assumption {
    const FORM: &'static str = r#"{"robots": [{"origin": "ORIGIN", "text": "ROBOTS.TXT"}]}, {"config": "TOML"} or {"agent": "USER-AGENT"}, or several of them in one object"#;
}

pub(super) async fn what_if(State(context): State<Arc<Context>>, request: Request) -> Result<Response, Problem> {
    let assumption = content::<Assumption>(request).await?;
    // The semaphore is never closed, so this is never `None`.
    let turn = context.assuming.clone().acquire_owned().await.ok();
    let (generation, live) = (context.live.generation(), context.live.clone());
    let answering = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let held = live.recent().decisions().read();
        answer(&held, &generation, live.store(), assumption)
    });
    let answer = answering
        .await
        .map_err(|_| Problem::Unavailable("the decisions cannot be compared now; try again"))??;
    Ok(([(header::CONTENT_TYPE, "application/json")], answer).into_response())
}

fn answer(held: &[u8], generation: &Generation, store: Arc<Store>, assumption: Assumption) -> Result<String, Problem> {
    let change = assumption.change()?;
    let lines: Vec<&[u8]> = held
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .collect();
    let lines = lines.get(lines.len().saturating_sub(MAX_DECISIONS)..).unwrap_or(&lines);
    let mut replayer = Replayer::with(texts(generation, store), 1, MAX_WEIGHT);
    let mut summary = Summary::default();
    let until = Instant::now() + MAX_TIME;
    let mut skipped = lines.len();
    // Begin with the newest lines, so that only the oldest ones are left out if the time runs out.
    for some in lines.rchunks(AT_ONCE) {
        let is_late = || Instant::now() >= until;
        if is_late() {
            break;
        }
        let results = replayer.what_if(some, &change, is_late).map_err(|_| {
            Problem::Unavailable("the stored robots.txt files cannot be read now; see the operational log")
        })?;
        summary.pace_changes = summary.pace_changes || replayer.changes_pace(&results, &change);
        for replayed in results.iter().rev() {
            summary.add(replayed, || None);
            skipped -= usize::from(!matches!(replayed, Replayed::Skipped));
        }
    }
    let answer = WhatIfReply {
        skipped,
        report: summary.report(MAX_GROUPS),
    };
    // Writing JSON could fail only for a map whose keys are not strings, and the answer has no such map.
    Ok(serde_json::to_string(&answer).unwrap_or_default())
}

/// Returns a function that reads robots.txt files and configurations by the digests of their texts: from memory, or
/// else from the store of evidence.
fn texts(generation: &Generation, store: Arc<Store>) -> ReadTexts {
    let config = generation.config.canonical.clone();
    let evidence = generation
        .config
        .evidence
        .as_ref()
        .map(|evidence| evidence.path.clone());
    let copies: OnceLock<HashMap<Sha256, Arc<RobotsCopy>>> = OnceLock::new();
    Box::new(move |digests| {
        let copies = copies.get_or_init(|| {
            let mut copies = HashMap::new();
            store.each_state(|state| {
                copies.extend(state.current().map(|copy| (copy.sha256, copy.clone())));
            });
            copies
        });
        let in_memory = |sha256: &Sha256| match copies.get(sha256) {
            Some(copy) => Some(copy.robots.body().to_vec()),
            None => (*sha256 == config.sha256()).then(|| config.text().as_bytes().to_vec()),
        };
        let mut found: HashMap<_, _> = digests
            .iter()
            .filter_map(|sha256| Some((*sha256, in_memory(sha256)?)))
            .collect();
        let rest: Vec<_> = digests
            .iter()
            .filter(|sha256| !found.contains_key(*sha256))
            .copied()
            .collect();
        // If the store of evidence cannot be read, its texts are missing, and the answer says so.
        if let (Some(path), false) = (&evidence, rest.is_empty())
            && let Ok(texts) = EvidenceReader::open(path).and_then(|reader| reader.read(&rest))
        {
            found.extend(texts);
        }
        Ok(found)
    })
}

// === impl Assumption ===

impl Assumption {
    fn change(self) -> Result<Scenario, Problem> {
        if self.config.is_none() && self.robots.is_empty() && self.agent.is_none() {
            return Err(Problem::Bad(format!(
                "the request names no change; send {}",
                Self::FORM
            )));
        }
        self.agent
            .as_deref()
            .map_or(Ok(()), check_agent)
            .map_err(Problem::Bad)?;
        let config = self
            .config
            .map(|text| Config::parse_alone("the configuration", &text))
            .transpose()
            .map_err(|error| Problem::Bad(error.to_string()))?;
        let mut robots: Vec<(Origin, Vec<u8>)> = Vec::new();
        for Site { origin, text } in self.robots {
            let name = origin.strip_suffix('/').unwrap_or(&origin);
            let parsed: Origin = name.parse().map_err(|_| {
                Problem::Bad(format!(
                    "{origin:?} is not an origin; write a scheme, a host and maybe a port, like https://example.com"
                ))
            })?;
            if robots.iter().any(|(other, _)| *other == parsed) {
                return Err(Problem::Bad(format!("robots has {parsed} twice")));
            }
            robots.push((parsed, text.into_bytes()));
        }
        Ok(Scenario::new(config, robots, self.agent))
    }
}

/// Maximum number of logged requests that are decided again together. Their configurations and robots.txt files are
/// read from the store of evidence at once.
const AT_ONCE: usize = 512;
/// How long robotgate decides logged requests again for one answer. After this time, it begins no further decision.
const MAX_TIME: Duration = Duration::from_secs(20);
/// How much memory parsed robots.txt files may take, in bytes.
const MAX_WEIGHT: usize = 64 * 1024 * 1024;
/// Maximum number of groups of changed decisions in an answer.
const MAX_GROUPS: usize = 100;
