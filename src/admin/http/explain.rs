//! Explains why a bot may or may not fetch a URL, like the command `explain`, but with the proxy's robots.txt copy. If
//! necessary, the proxy fetches the robots.txt first.

use std::{sync::Arc, time::SystemTime};

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    Context,
    decide::{DecisionFields, judge},
    input::{DecideParams, StrictQuery},
    problem::Problem,
};
use crate::{
    decision::Decision,
    explanation::{ExplainedDecision, FetchRecord, deciding_line, to_json},
    pace::Cause,
    proxy::Generation,
};

#[derive(Serialize)]
pub(super) struct Explained {
    decision: DecisionFields,
    report: Box<RawValue>,
    file: Option<File>,
}

#[derive(Serialize)]
struct File {
    text: String,
    line: Option<u32>,
    truncated: bool,
}

pub(super) async fn explain(
    State(context): State<Arc<Context>>,
    StrictQuery(question): StrictQuery<DecideParams>,
) -> Result<Json<Explained>, Problem> {
    let target = question.target().map_err(Problem::Bad)?;
    // The semaphore is never closed.
    let turn = context.explaining.clone().acquire_owned().await.ok();
    let generation = context.live.generation();
    let decision = judge(&generation, &question, target).await?;
    let later = generation.not_before(&decision).await;
    // Explaining a large robots.txt takes long.
    let explaining = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        explained(&generation, question, &decision, later)
    });
    let explained = explaining.await.ok().flatten();
    explained
        .map(Json)
        .ok_or(Problem::Unavailable("the decision cannot be explained now; try again"))
}

fn explained(
    generation: &Generation,
    question: DecideParams,
    decision: &Decision,
    later: Option<(SystemTime, Cause)>,
) -> Option<Explained> {
    let body = decision.copy().map(|copy| copy.robots.body());
    let report = ExplainedDecision::new(&generation.config, decision, &question.agent, &question.url, body);
    let report = RawValue::from_string(to_json(&report, None, FetchRecord::of_decision(decision))).ok()?;
    let file = body.map(|body| {
        let (text, truncated) = text_of(body);
        File {
            text,
            line: deciding_line(decision),
            truncated,
        }
    });
    Some(Explained {
        decision: DecisionFields::new(generation, question, decision, later),
        report,
        file,
    })
}

/// The `bool` says whether the end was cut off.
pub(super) fn text_of(body: &[u8]) -> (String, bool) {
    let shown = body.get(..MAX_TEXT).unwrap_or(body);
    (String::from_utf8_lossy(shown).into_owned(), shown.len() < body.len())
}

/// Maximum size of a robots.txt in a response, in bytes. The proxy keeps no robots.txt that is longer.
const MAX_TEXT: usize = 512 * 1024;
