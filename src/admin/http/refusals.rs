//! Returns the latest refused requests. Programs can ask again and again for those that are new since the last time.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    Context,
    input::{Form, StrictQuery},
};
use crate::decision::Reason;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    after: Option<u64>,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct Refusals {
    /// The value to send as `after` in the next request, to get only newer refusals.
    next: u64,
    /// Number of refusals after `after` that are no longer in memory.
    missed: u64,
    refusals: Vec<Box<RawValue>>,
    /// For each reason in `refusals`, a sentence that explains it.
    reasons: BTreeMap<&'static str, &'static str>,
}

/// The one field that is read from a record of the audit log.
#[derive(Deserialize)]
struct Refusal<'r> {
    reason: &'r str,
}

impl Form for Range {
    const FORM: &'static str = "?after=NUMBER&limit=NUMBER, or leave either out";
}

pub(super) async fn refusals(
    State(context): State<Arc<Context>>,
    StrictQuery(range): StrictQuery<Range>,
) -> Json<Refusals> {
    let limit = range.limit.unwrap_or(USUAL).min(MOST);
    let tail = context.live.recent().tail(range.after, limit);
    Json(Refusals {
        next: tail.next,
        missed: tail.missed,
        refusals: (tail.lines.iter())
            .filter_map(|(number, line)| numbered(*number, line))
            .collect(),
        reasons: (tail.lines.iter())
            .filter_map(|(_, line)| reason(line))
            .map(|reason| (reason.as_str(), reason.sentence()))
            .collect(),
    })
}

/// Returns a record of the audit log byte for byte, with its number added as the first field.
fn numbered(number: u64, line: &[u8]) -> Option<Box<RawValue>> {
    let fields = str::from_utf8(line).ok()?.trim_end().strip_prefix('{')?;
    RawValue::from_string(format!("{{\"seq\":{number},{fields}")).ok()
}

fn reason(line: &[u8]) -> Option<Reason> {
    let refusal: Refusal<'_> = serde_json::from_slice(line).ok()?;
    Reason::ALL.into_iter().find(|reason| reason.as_str() == refusal.reason)
}

const USUAL: usize = 50;
const MOST: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gets_a_number_and_is_otherwise_unchanged() {
        let found = numbered(7, b"{\"url\":\"a\\u0007?redacted\",\"line\":null}\n").unwrap();
        assert_eq!(found.get(), r#"{"seq":7,"url":"a\u0007?redacted","line":null}"#);
        assert!(numbered(7, b"").is_none());
    }
}
