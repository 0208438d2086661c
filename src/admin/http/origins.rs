//! What is known of the origins: a list in parts, and one of them with its robots.txt. From disk where copies are kept
//! there, and else from memory, by the same rows that the command `cache` shows.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{
    Context,
    asked::{Asked, Form},
    explain::text_of,
    problem::Problem,
};
use crate::{
    admin::{Detail, Row, view},
    copy::Sha256,
    origin::Origin,
    store::VerdictCounts,
    text::Timestamp,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    #[serde(default)]
    search: String,
    #[serde(default)]
    after: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    origin: String,
}

impl Form for Range {
    const FORM: &'static str = "?search=TEXT&after=ORIGIN&limit=NUMBER, percent-encoded, or leave any out";
}

impl Form for Which {
    const FORM: &'static str = "?origin=ORIGIN, such as https://example.com, percent-encoded";
}

#[derive(Serialize)]
pub(super) struct List {
    origins: Vec<Item>,
    /// For `after` of the next part; none where this was the last.
    next: Option<String>,
}

/// An origin.
#[derive(Serialize)]
struct Item {
    origin: String,
    holds: String,
    status: Option<u16>,
    fetched: Option<Timestamp>,
    expires: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    error: Option<String>,
    bytes: Option<usize>,
    /// Since it came into memory.
    verdicts: VerdictCounts,
}

/// An origin, and the last robots.txt of it that had rules.
#[derive(Serialize)]
pub(super) struct Whole {
    #[serde(flatten)]
    item: Item,
    robots: Option<String>,
    robots_truncated: bool,
    robots_url: String,
    sha256: Option<Sha256>,
}

/// A part of the list, by name. It ends early where a search takes long.
pub(super) async fn list(
    State(context): State<Arc<Context>>,
    Asked(range): Asked<Range>,
) -> Result<Json<List>, Problem> {
    let limit = range.limit.unwrap_or(USUAL).clamp(1, MOST);
    let filter = range.search.to_ascii_lowercase();
    let (rows, next) = match context.live.store().disk() {
        Some(_) => from_disk(&context, range.after, filter, limit).await?,
        None => from_memory(&context, range.after, filter, limit).await,
    };
    Ok(Json(List {
        origins: rows.into_iter().map(|row| Item::new(row, &context)).collect(),
        next,
    }))
}

async fn from_disk(
    context: &Arc<Context>,
    after: String,
    filter: String,
    limit: usize,
) -> Result<(Vec<Row>, Option<String>), Problem> {
    context.write_what_waits().await;
    let deadline = Instant::now() + TO_SEARCH;
    let filter: Arc<str> = filter.into();
    let mut rows: Vec<Row> = Vec::new();
    // No name is between this one and the name itself.
    let mut next = Some(match after.is_empty() {
        true => after,
        false => after + "\0",
    });
    while let Some(start) = next.take() {
        if Instant::now() >= deadline {
            return Ok((rows, Some(start)));
        }
        let (filter, policy) = (filter.clone(), context.live.generation().config.robots.policy);
        let read = context.with_file(move |file| view::rows(file, &start, &filter, AT_ONCE, &policy));
        let (more, from) = read.await?;
        rows.extend(more);
        if rows.len() > limit || (rows.len() == limit && from.is_some()) {
            rows.truncate(limit);
            next = rows.last().map(|row| row.origin.clone());
            return Ok((rows, next));
        }
        next = from;
    }
    Ok((rows, None))
}

async fn from_memory(
    context: &Arc<Context>,
    after: String,
    filter: String,
    limit: usize,
) -> (Vec<Row>, Option<String>) {
    let context = context.clone();
    let looking = tokio::task::spawn_blocking(move || {
        let policy = context.live.generation().config.robots.policy;
        let now = SystemTime::now();
        let mut held = context.live.store().list_held(&after, &filter, limit + 1);
        let is_all = held.len() <= limit;
        held.truncate(limit);
        let rows: Vec<_> = (held.into_iter())
            .map(|(origin, state)| Detail::of(&origin, (*state).clone(), &policy, now).row)
            .collect();
        let next = rows.last().filter(|_| !is_all).map(|row| row.origin.clone());
        (rows, next)
    });
    looking.await.unwrap_or_default()
}

/// One origin.
pub(super) async fn detail(
    State(context): State<Arc<Context>>,
    Asked(which): Asked<Which>,
) -> Result<Json<Whole>, Problem> {
    let origin = which.origin.parse::<Origin>().map_err(|error| {
        Problem::Bad(format!(
            "{:?} is not an origin like https://example.com: {error}",
            which.origin
        ))
    })?;
    let policy = context.live.generation().config.robots.policy;
    let known = match context.live.store().disk() {
        Some(_) => {
            context.write_what_waits().await;
            let wanted = origin.clone();
            context
                .with_file(move |file| view::detail(file, &wanted, &policy))
                .await?
        }
        None => {
            let held = context.live.store().held(&origin).filter(|state| state.is_known());
            held.map(|state| Detail::of(&origin, (*state).clone(), &policy, SystemTime::now()))
        }
    };
    let Detail { row, copy, .. } = known.ok_or_else(|| Problem::Unknown(origin.to_string()))?;
    let text = copy.as_ref().map(|copy| text_of(&copy.text()));
    Ok(Json(Whole {
        item: Item::new(row, &context),
        robots_truncated: text.as_ref().is_some_and(|(_, truncated)| *truncated),
        robots: text.map(|(text, _)| text),
        robots_url: origin.robots_url(),
        sha256: copy.map(|copy| copy.robots_sha256),
    }))
}

// === impl Item ===

impl Item {
    fn new(row: Row, context: &Context) -> Self {
        let origin = row.origin.parse::<Origin>();
        Self {
            verdicts: origin.map_or_else(
                |_| VerdictCounts::default(),
                |origin| context.live.store().verdicts(&origin),
            ),
            origin: row.origin,
            holds: row.holds.into_owned(),
            status: row.robots_status,
            fetched: row.robots_fetched,
            expires: row.robots_expires,
            failing_since: row.failing_since,
            error: row.robots_error,
            bytes: row.bytes,
        }
    }
}

const USUAL: usize = 50;
const MOST: usize = 500;
/// Origins that are looked at in one go.
const AT_ONCE: usize = 500;
/// How long a part is searched for.
const TO_SEARCH: Duration = Duration::from_secs(2);
