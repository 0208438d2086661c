//! Returns the latest changes of robots.txt files.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    Context,
    input::{Form, StrictQuery},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct Changes {
    /// Records of the audit log, byte for byte, the newest last.
    changes: Vec<Box<RawValue>>,
}

impl Form for Params {
    const FORM: &'static str = "?limit=NUMBER, or leave it out";
}

pub(super) async fn changes(
    State(context): State<Arc<Context>>,
    StrictQuery(range): StrictQuery<Params>,
) -> Json<Changes> {
    let lines = context.live.recent().changes(range.limit.unwrap_or(USUAL).min(MOST));
    let record = |line: &Arc<[u8]>| RawValue::from_string(str::from_utf8(line).ok()?.trim_end().to_owned()).ok();
    Json(Changes {
        changes: lines.iter().filter_map(record).collect(),
    })
}

const USUAL: usize = 50;
const MOST: usize = 200;
