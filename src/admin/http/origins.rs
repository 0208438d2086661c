//! Lists what is known about origins, and forgets an origin. Reads robots.txt copies from disk if they are kept there,
//! otherwise from memory.

mod bots;
mod sorted;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use self::{
    bots::BotAtSite,
    sorted::{Order, Selection, Sort, Wanted},
};
use super::{
    Context, Warning,
    input::{Form, StrictQuery},
    problem::Problem,
};
use crate::{
    admin::{
        row::{Detail, Forgot, Page, Row},
        stats::{Count, Running, Stats},
        view,
    },
    copy::OriginState,
    origin::Origin,
    store::{Disk, VerdictCounts},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    #[serde(default)]
    search: String,
    #[serde(default)]
    after: String,
    limit: Option<usize>,
    /// If the query has `sort`, `order`, `state` or `offset`, the list is sorted and has a total.
    sort: Option<Sort>,
    order: Option<Order>,
    state: Option<Wanted>,
    offset: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OriginParams {
    origin: String,
}

#[derive(Serialize)]
pub(super) struct Described {
    #[serde(flatten)]
    detail: Detail,
    bots: Vec<BotAtSite>,
}

impl Form for ListParams {
    const FORM: &'static str = "?search=TEXT&after=ORIGIN&limit=NUMBER, percent-encoded, or leave any out; or \
                                ?search=TEXT&sort=COLUMN&order=asc|desc&state=STATE&offset=NUMBER&limit=NUMBER";
}

impl Form for OriginParams {
    const FORM: &'static str = "?origin=ORIGIN, such as https://example.com, percent-encoded";
}

/// A response in JSON, with a Warning field if it may not show the latest changes.
type Reply<T> = Result<(Option<Warning>, Json<T>), Problem>;

/// Returns a page of the known origins. If the search takes too long, the page has fewer than `limit` origins.
pub(super) async fn list(
    State(context): State<Arc<Context>>,
    StrictQuery(range): StrictQuery<ListParams>,
) -> Reply<Page> {
    let limit = range.limit.unwrap_or(USUAL).clamp(1, MOST);
    let search = range.search.to_ascii_lowercase();
    if range.sort.is_some() || range.order.is_some() || range.state.is_some() || range.offset.is_some() {
        if !range.after.is_empty() {
            let why = "\"after\" does not go with \"sort\", \"order\", \"state\" and \"offset\"; for the next page, send \
                       \"offset\"";
            return Err(Problem::Bad(why.to_owned()));
        }
        let selection = Selection {
            search,
            sort: range.sort.unwrap_or(Sort::Origin),
            is_descending: range.order == Some(Order::Desc),
            wanted: range.state,
            offset: range.offset.unwrap_or(0).min(MAX_OFFSET),
            limit,
        };
        let warning = context.flush_writes().await;
        return Ok((warning, Json(sorted::list(context, selection).await?)));
    }
    let after = range.after;
    // Flush only for the first page, so that reading the next pages causes no more writes.
    let warning = match after.is_empty() {
        true => context.flush_writes().await,
        false => None,
    };
    let mut page = match context.live.store().disk() {
        Some(_) => from_disk(&context, after, search, limit).await?,
        None => from_memory(&context, after, search, limit).await,
    };
    for row in &mut page.origins {
        context.count_verdicts(row);
    }
    Ok((warning, Json(page)))
}

async fn from_disk(context: &Context, start: String, search: String, limit: usize) -> Result<Page, Problem> {
    let deadline = Instant::now() + SEARCH_TIMEOUT;
    let search: Arc<str> = search.into();
    let read = |start: String| {
        let (search, policy) = (search.clone(), context.live.generation().config.robots.policy);
        context.with_file(move |file| view::rows(file, &start, &search, AT_ONCE, &policy))
    };
    search_for(limit, start, deadline, read).await
}

/// `read` takes an origin's name, and searches the part of the file that begins at this name. It returns the rows that
/// it found, and the name at which the next part begins.
async fn search_for<R>(
    limit: usize,
    mut start: String,
    deadline: Instant,
    read: impl Fn(String) -> R,
) -> Result<Page, Problem>
where
    R: Future<Output = Result<(Vec<Row>, view::Next), Problem>>,
{
    let mut origins: Vec<Row> = Vec::new();
    loop {
        let (more, mut next) = read(start).await?;
        origins.extend(more);
        if let Some(beyond) = origins.get(limit) {
            next = Some(beyond.origin.clone());
            origins.truncate(limit);
        }
        match next {
            Some(next) if origins.len() < limit && Instant::now() < deadline => start = next,
            next => {
                return Ok(Page {
                    origins,
                    next,
                    ..Page::default()
                });
            }
        }
    }
}

async fn from_memory(context: &Arc<Context>, start: String, search: String, limit: usize) -> Page {
    let context = context.clone();
    let looking = tokio::task::spawn_blocking(move || {
        let policy = context.live.generation().config.robots.policy;
        let now = SystemTime::now();
        let mut held = context.live.store().list_held(&start, &search, limit + 1);
        let next = held.get(limit).map(|(origin, _)| origin.to_string());
        held.truncate(limit);
        let rows = held
            .iter()
            .map(|(origin, state)| Row::held(origin, state, &policy, now));
        Page {
            origins: rows.collect(),
            next,
            ..Page::default()
        }
    });
    looking.await.unwrap_or_default()
}

pub(super) async fn detail(
    State(context): State<Arc<Context>>,
    StrictQuery(which): StrictQuery<OriginParams>,
) -> Reply<Described> {
    let origin = which.origin()?;
    let warning = context.flush_writes().await;
    let known = context.known(&origin).await?;
    let mut detail = known.ok_or_else(|| Problem::Unknown(origin.to_string()))?;
    context.count_verdicts(&mut detail.row);
    let bots = bots::at(&context.live.generation(), &origin).await;
    Ok((warning, Json(Described { detail, bots })))
}

pub(super) async fn forget(
    State(context): State<Arc<Context>>,
    StrictQuery(which): StrictQuery<OriginParams>,
) -> Result<Json<Forgot>, Problem> {
    let origin = which.origin()?;
    let store = context.live.store();
    context.flush_writes().await;
    // If the cache file cannot be read now, the origin counts as known, because the file may contain it.
    let forgotten = context.known(&origin).await.map_or(true, |known| known.is_some());
    context.live.generation().log_forget(&origin, forgotten);
    // Make the fleet forget the origin before this robotgate forgets it. In the other order, a request could get the
    // old copy from the fleet again.
    let fleet_told = match context.live.generation().fleet() {
        Some(fleet) => Some(fleet.forget(&origin).await),
        None => None,
    };
    if fleet_told == Some(false) {
        tracing::warn!(
            %origin,
            "cannot tell the fleet's server to forget a site, so the other robotgates keep their copies; repeat \
             `robotgate cache forget` when robotgate is connected to the server"
        );
    }
    context.live.generation().forget(&origin);
    match forgotten {
        true => tracing::info!(%origin, "forgot a site at the request of an operator"),
        false => tracing::info!(%origin, "an operator asked to forget an unknown site"),
    }
    match store.disk() {
        Some(disk) if !disk.flush().await => Err(Problem::Unwritten),
        _ => Ok(Json(Forgot {
            origin: origin.to_string(),
            forgotten,
            fleet_told,
        })),
    }
}

pub(super) async fn stats(State(context): State<Arc<Context>>) -> Reply<Stats> {
    let store = context.live.store().clone();
    let waiting = store.disk().map(Disk::waiting);
    let waiting = waiting.ok_or(Problem::Unavailable(
        "no robots.txt files are kept on disk: cache.persist is false, or /readyz says why",
    ))?;
    let warning = context.flush_writes().await;
    // The semaphore is never closed.
    let turn = context.counting.clone().acquire_owned().await.ok();
    let live = context.live.clone();
    let counting = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let disk = store.disk()?;
        let mut count = Count::default();
        let mut next = Some(String::new());
        while let Some(start) = next {
            let policy = live.generation().config.robots.policy;
            // Read the file in parts: robotgate can reopen it after an error only between two parts.
            let counted = disk.with_file(|file| view::count(file, &start, AT_ONCE, &mut count, &policy));
            next = counted.ok()?;
        }
        let running = Some(Running::new(waiting, store.memory()));
        disk.with_file(|file| Stats::new(disk.path(), file, count, running))
            .ok()
    });
    let stats = counting.await.ok().flatten();
    stats.map(|stats| (warning, Json(stats))).ok_or(Problem::Disk)
}

// === impl OriginParams ===

impl OriginParams {
    fn origin(&self) -> Result<Origin, Problem> {
        parse(&self.origin)
    }
}

pub(super) fn parse(origin: &str) -> Result<Origin, Problem> {
    let parsed = origin.parse();
    parsed.map_err(|error| Problem::Bad(format!("{origin:?} is not an origin like https://example.com: {error}")))
}

// === impl Context ===

impl Context {
    async fn known(&self, origin: &Origin) -> Result<Option<Detail>, Problem> {
        let policy = self.live.generation().config.robots.policy;
        if self.live.store().disk().is_some() {
            let wanted = origin.clone();
            return self.with_file(move |file| view::detail(file, &wanted, &policy)).await;
        }
        let held = self.live.store().held(origin).filter(|state| state.is_known());
        let tdmrep = self.live.generation().held_tdmrep(origin);
        let detail = |state: Arc<OriginState>| {
            Detail::of(origin, (*state).clone(), tdmrep.as_deref(), &policy, SystemTime::now())
        };
        Ok(held.map(detail))
    }

    fn count_verdicts(&self, row: &mut Row) {
        let origin = row.origin.parse::<Origin>();
        row.verdicts = Some(origin.map_or_else(
            |_| VerdictCounts::default(),
            |origin| self.live.store().verdicts(&origin),
        ));
    }
}

const USUAL: usize = 50;
const MOST: usize = 500;
const MAX_OFFSET: usize = 100_000;
const AT_ONCE: usize = 500;
/// Time limit of a search for one page.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;
    use crate::copy::{OriginState, Policy};

    #[tokio::test]
    async fn the_list_is_complete_even_if_a_part_ends_early() {
        let origins: Vec<Origin> = (b'a'..=b'i')
            .map(|letter| format!("https://{}.example", char::from(letter)).parse().unwrap())
            .collect();
        let row = |origin| {
            Row::held(
                origin,
                &OriginState::unknown(),
                &Policy::default(),
                SystemTime::UNIX_EPOCH,
            )
        };
        // Each read searches two origins. Only every third origin matches.
        let read = |start: String| {
            let from = origins.iter().position(|origin| origin.to_string() == start);
            let from = from.unwrap_or_default();
            let found = (from..origins.len().min(from + 2)).filter(|at| at % 3 == 0);
            let rows = found.map(|at| row(&origins[at])).collect();
            ready(Ok((rows, origins.get(from + 2).map(ToString::to_string))))
        };
        let (past, future) = (Instant::now(), Instant::now() + SEARCH_TIMEOUT * 1000);
        for (limit, deadline) in [(1, past), (2, past), (50, past), (1, future), (2, future), (50, future)] {
            let (mut found, mut start) = (Vec::new(), String::new());
            loop {
                let page = search_for(limit, start, deadline, &read).await.unwrap();
                assert!(page.origins.len() <= limit);
                found.extend(page.origins.into_iter().map(|row| row.origin));
                match page.next {
                    Some(next) => start = next,
                    None => break,
                }
            }
            let expected = ["https://a.example", "https://d.example", "https://g.example"];
            assert_eq!(found, expected, "{limit}");
        }
    }
}
