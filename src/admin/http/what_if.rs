//! Finds which of the decisions in memory would be different with another configuration, robots.txt or User-Agent.
//! Changes nothing, and reads no file that the other configuration names.

use std::{
    collections::HashMap,
    path::PathBuf,
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
    replay::{ReadHistories, ReadTexts, Replayed, Replayer, Scenario, Summary, SummaryOutput},
    store::Store,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assumption {
    /// The whole text of a configuration file.
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
    /// How many of the oldest decisions were not decided again because the time ran out.
    skipped: usize,
    #[serde(flatten)]
    report: SummaryOutput<'s>,
}

impl Form for Assumption {
    const FORM: &'static str = r#"{"robots": [{"origin": "ORIGIN", "text": "ROBOTS.TXT"}]}, {"config": "TOML"} or {"agent": "USER-AGENT"}, or several of them in one object"#;
}

pub(super) async fn what_if(State(context): State<Arc<Context>>, request: Request) -> Result<Response, Problem> {
    let assumption = content::<Assumption>(request).await?;
    // The semaphore is never closed.
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
    // The newest lines first, so that only the oldest are left out if the time runs out.
    let lines: Vec<&[u8]> = held
        .rsplit(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty())
        .take(MAX_DECISIONS)
        .collect();
    let mut replayer = Replayer::with(texts(generation, store), 1, MAX_WEIGHT);
    if let Some(evidence) = &generation.config.evidence {
        replayer = replayer.with_histories(histories(evidence.path.clone()));
    }
    let mut summary = Summary::default();
    let until = Instant::now() + MAX_TIME;
    let mut skipped = lines.len();
    for some in lines.chunks(AT_ONCE) {
        let is_late = || Instant::now() >= until;
        if is_late() {
            break;
        }
        let results = replayer
            .what_if(some, &change, is_late)
            .map_err(|_| Problem::Unavailable("the store of evidence cannot be read now; try again"))?;
        summary.pace_changes = summary.pace_changes || replayer.changes_pace(&results, &change);
        for replayed in &results {
            summary.add(replayed, || None);
            skipped -= usize::from(!matches!(replayed, Replayed::Skipped));
        }
    }
    let answer = WhatIfReply {
        skipped,
        report: summary.report(MAX_GROUPS),
    };
    // Serialising fails only for maps whose keys are not strings, and the answer has no such maps.
    Ok(serde_json::to_string(&answer).unwrap_or_default())
}

/// If the store of evidence cannot be read, the response says for which requests it was needed.
fn histories(path: PathBuf) -> ReadHistories {
    Box::new(move |origins| {
        let read = EvidenceReader::open(&path).and_then(|reader| reader.histories(origins));
        Ok(read.unwrap_or_else(|_| vec![Vec::new(); origins.len()]))
    })
}

/// Finds robots.txt files and configurations by their digests, in memory or in the store of evidence.
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
        // If the store of evidence cannot be read, the response says that texts are missing.
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

/// How many logged requests the replayer gets in one call.
const AT_ONCE: usize = 512;
/// After this time, no further decision begins.
const MAX_TIME: Duration = Duration::from_secs(20);
/// Approximate maximum memory for parsed robots.txt and `tdmrep.json` files, in bytes.
const MAX_WEIGHT: usize = 64 * 1024 * 1024;
/// Maximum number of groups of changed decisions in an answer.
const MAX_GROUPS: usize = 100;
