//! Why a bot may fetch a URL or not: what the command `explain` tells, of the copy that the proxy goes by, and its text.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    Context,
    decide::{Decided, judge},
    input::{Question, StrictQuery},
    problem::Problem,
};
use crate::{
    decision::Decision,
    explanation::{FetchRecord, Report, to_json},
    proxy::Generation,
};

#[derive(Serialize)]
pub(super) struct Explained {
    decision: Decided,
    report: Box<RawValue>,
    /// The robots.txt that decides, where one does.
    file: Option<File>,
}

#[derive(Serialize)]
struct File {
    text: String,
    /// Of the rule that decides.
    line: Option<u32>,
    truncated: bool,
}

/// Explains.
pub(super) async fn explain(
    State(context): State<Arc<Context>>,
    StrictQuery(question): StrictQuery<Question>,
) -> Result<Json<Explained>, Problem> {
    let target = question.target().map_err(Problem::Bad)?;
    // It is never closed.
    let turn = context.explaining.clone().acquire_owned().await.ok();
    let generation = context.live.generation();
    let decision = judge(&generation, &question, target).await?;
    // A large file takes long to be explained.
    let explaining = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        explained(&generation, question, &decision)
    });
    let explained = explaining.await.ok().flatten();
    explained
        .map(Json)
        .ok_or(Problem::Unavailable("this cannot be explained now"))
}

fn explained(generation: &Generation, question: Question, decision: &Decision) -> Option<Explained> {
    let body = decision.copy().map(|copy| copy.robots.body());
    let report = Report::new(&generation.config, decision, &question.agent, &question.url, body);
    let report = RawValue::from_string(to_json(&report, None, FetchRecord::of(decision))).ok()?;
    let file = body.map(|body| {
        let (text, truncated) = text_of(body);
        File {
            text,
            line: decision.rule().map(|rule| rule.line),
            truncated,
        }
    });
    Some(Explained {
        decision: Decided::new(generation, question, decision),
        report,
        file,
    })
}

/// A robots.txt as text, and whether that is not all of it.
pub(super) fn text_of(body: &[u8]) -> (String, bool) {
    let shown = body.get(..MAX_TEXT).unwrap_or(body);
    (String::from_utf8_lossy(shown).into_owned(), shown.len() < body.len())
}

/// Bytes of a robots.txt that are shown: more than the proxy keeps of one.
const MAX_TEXT: usize = 512 * 1024;
