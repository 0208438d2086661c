//! Lists the latest requests that were not allowed: as JSON for programs that poll, and as files to download.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::SystemTime};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    Context,
    filter::Filter,
    input::{Form, StrictQuery},
    problem::Problem,
};
use crate::{
    audit::LoggedRefusal,
    text::{Timestamp, no_formula},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    after: Option<u64>,
    limit: Option<usize>,
    #[serde(default)]
    filter: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    #[serde(default)]
    filter: String,
}

#[derive(Serialize)]
pub(super) struct Refusals {
    /// A request with this number as `after` gets the refusals that follow those of this response.
    next: u64,
    /// How many refusals newer than `after` are no longer in memory.
    missed: u64,
    held: usize,
    oldest: Option<Timestamp>,
    /// How many refusals newer than `after` pass the filter.
    found: usize,
    refusals: Vec<Box<RawValue>>,
    reasons: BTreeMap<&'static str, &'static str>,
}

impl Form for Params {
    const FORM: &'static str = "?after=NUMBER&limit=NUMBER&filter=FILTER, or leave any out";
}

impl Form for Selection {
    const FORM: &'static str = "?filter=FILTER, or leave it out";
}

pub(super) async fn refusals(
    State(context): State<Arc<Context>>,
    StrictQuery(range): StrictQuery<Params>,
) -> Result<Json<Refusals>, Problem> {
    let filter = Filter::parse(&range.filter, SystemTime::now()).map_err(Problem::Bad)?;
    let limit = range.limit.unwrap_or(USUAL).min(MOST);
    let recent = context.live.recent();
    let all = recent.tail(None);
    let tail = recent.tail(range.after);
    let (mut next, mut lines) = (tail.next, tail.lines);
    lines.retain(|(_, line)| filter.is_empty() || passes(&filter, line));
    let found = lines.len();
    match range.after {
        // The client's next request continues after the last line of this response.
        Some(_) if found > limit => {
            lines.truncate(limit);
            next = lines.last().map_or(next, |(number, _)| *number);
        }
        _ => drop(lines.drain(..found.saturating_sub(limit))),
    }
    Ok(Json(Refusals {
        next,
        missed: tail.missed,
        held: all.lines.len(),
        oldest: (all.lines.first()).and_then(|(_, line)| Some(parse(line)?.time)),
        found,
        refusals: (lines.iter())
            .filter_map(|(number, line)| listed(*number, &parse(line)?, line))
            .collect(),
        reasons: (lines.iter())
            .filter_map(|(_, line)| parse(line))
            .map(|refusal| (refusal.reason.as_str(), refusal.reason.sentence()))
            .collect(),
    }))
}

/// Returns the refusals as JSON lines, byte for byte as in the audit log. If robotgate withheld a site's response, the
/// refusal's line is not in the log, which has a `withdrawn` record instead.
pub(super) async fn as_lines(
    State(context): State<Arc<Context>>,
    StrictQuery(selection): StrictQuery<Selection>,
) -> Result<Response, Problem> {
    let lines = selection.lines(&context)?;
    Ok(download("application/jsonl", "refusals.jsonl", lines.concat()))
}

/// Returns the refusals as a table in CSV, with a header line (RFC 4180).
pub(super) async fn as_table(
    State(context): State<Arc<Context>>,
    StrictQuery(selection): StrictQuery<Selection>,
) -> Result<Response, Problem> {
    let mut table = format!("{}\r\n", COLUMNS.join(","));
    for line in selection.lines(&context)? {
        let Ok(record) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        let cells = COLUMNS.map(|column| cell(&record[column]));
        let _ = write!(table, "{}\r\n", cells.join(","));
    }
    Ok(download(
        "text/csv; charset=utf-8; header=present",
        "refusals.csv",
        table.into_bytes(),
    ))
}

fn download(kind: &'static str, name: &'static str, content: Vec<u8>) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    let fields = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    (fields, content).into_response()
}

// === impl Selection ===

impl Selection {
    fn lines(&self, context: &Context) -> Result<Vec<Arc<[u8]>>, Problem> {
        let filter = Filter::parse(&self.filter, SystemTime::now()).map_err(Problem::Bad)?;
        let lines = context.live.recent().tail(None).lines.into_iter();
        let lines = lines.map(|(_, line)| line).filter(|line| passes(&filter, line));
        Ok(lines.collect())
    }
}

fn passes(filter: &Filter, line: &[u8]) -> bool {
    filter.is_empty() || parse(line).is_some_and(|refusal| filter.passes(&refusal))
}

/// Returns a value as a CSV cell that no spreadsheet runs as a formula.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => no_formula(text),
        other => return other.to_string(),
    };
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into_owned(),
    }
}

/// Adds the fields `seq` and `why` at the start. The other fields are byte for byte as in `line`.
fn listed(number: u64, refusal: &LoggedRefusal<'_>, line: &[u8]) -> Option<Box<RawValue>> {
    let why = Value::from(refusal.why());
    let fields = str::from_utf8(line).ok()?.trim_end().strip_prefix('{')?;
    RawValue::from_string(format!("{{\"seq\":{number},\"why\":{why},{fields}")).ok()
}

fn parse(line: &[u8]) -> Option<LoggedRefusal<'_>> {
    serde_json::from_slice(line).ok()
}

const USUAL: usize = 50;
const MOST: usize = 500;
const COLUMNS: [&str; 16] = [
    "time",
    "id",
    "verdict",
    "reason",
    "enforcement",
    "forwarded",
    "bot",
    "user_agent",
    "client",
    "method",
    "url",
    "origin",
    "rule",
    "line",
    "robots_url",
    "robots_error",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listed_refusal_is_its_log_line_with_a_number_and_a_reason() {
        let line = br#"{"time":"2026-11-22T08:00:00Z","id":"0192","verdict":"deny","reason":"rule","forwarded":false,"identity":"none","client":"","url":"a\u0007?redacted","origin":"","rule":"Disallow: \"","line":3}"#;
        let found = listed(7, &parse(line).unwrap(), line).unwrap();
        let (added, logged) = found.get().split_at(found.get().find("\"time\"").unwrap());
        assert_eq!(added, r#"{"seq":7,"why":"line 3: Disallow: \"","#);
        assert_eq!(logged.as_bytes(), &line[1..]);
    }

    #[test]
    fn csv_cells_are_quoted_and_cannot_be_formulas() {
        for (value, expected) in [
            (json!("plain"), "plain"),
            (json!(null), ""),
            (json!(3), "3"),
            (json!(-3), "-3"),
            (json!(true), "true"),
            (json!("a,b"), "\"a,b\""),
            (json!("say \"x\""), "\"say \"\"x\"\"\""),
            (json!("=1+1"), "'=1+1"),
            (json!("@sum(a,b)"), "\"'@sum(a,b)\""),
            (json!("-x"), "'-x"),
            (json!("+x"), "'+x"),
            (json!(" =1+1"), "' =1+1"),
            (json!("-"), "-"),
            (json!("a\nb"), "\"a\nb\""),
        ] {
            assert_eq!(cell(&value), expected, "{value}");
        }
    }
}
