//! The latest requests that no robots.txt allowed, to be polled.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Context, asked::Asked};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    after: Option<u64>,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct Refusals {
    /// For `after` of the next poll.
    next: u64,
    /// Those behind `after` that are gone.
    missed: u64,
    refusals: Vec<Box<RawValue>>,
}

pub(super) async fn refusals(State(context): State<Arc<Context>>, Asked(range): Asked<Range>) -> Json<Refusals> {
    let limit = range.limit.unwrap_or(USUAL).min(MOST);
    let tail = context.live.recent().tail(range.after, limit);
    Json(Refusals {
        next: tail.next,
        missed: tail.missed,
        refusals: (tail.lines.iter())
            .filter_map(|(number, line)| numbered(*number, line))
            .collect(),
    })
}

/// The record of the log, byte for byte, and its number before it.
fn numbered(number: u64, line: &[u8]) -> Option<Box<RawValue>> {
    let fields = str::from_utf8(line).ok()?.trim_end().strip_prefix('{')?;
    RawValue::from_string(format!("{{\"seq\":{number},{fields}")).ok()
}

const USUAL: usize = 50;
const MOST: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_bytes() {
        let found = numbered(7, b"{\"url\":\"a\\u0007?redacted\",\"line\":null}\n").unwrap();
        assert_eq!(found.get(), r#"{"seq":7,"url":"a\u0007?redacted","line":null}"#);
        assert!(numbered(7, b"").is_none());
    }
}
