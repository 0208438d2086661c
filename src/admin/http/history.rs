//! Serves the history of the last days, as counts over time and as tables.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Json, extract::State};
use serde::Deserialize;

use super::{
    Context,
    input::{Form, StrictQuery, parse_time},
    problem::Problem,
};
use crate::history::{By, HistoryQuestion, HistoryReport};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    from: Option<String>,
    until: Option<String>,
    by: Option<By>,
    only: Option<Only>,
    site: Option<String>,
    bot: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Only {
    Refusals,
}

impl Form for Params {
    const FORM: &'static str = "?from=TIME&until=TIME&by=verdict|reason|bot|site|answer&only=refusals&site=ORIGIN&bot=NAME&limit=NUMBER, or \
                                leave any out; a TIME is like 2026-11-22T08:00:00Z, or 1h for an hour ago";
}

pub(super) async fn history(
    State(context): State<Arc<Context>>,
    StrictQuery(range): StrictQuery<Params>,
) -> Result<Json<HistoryReport>, Problem> {
    let now = SystemTime::now();
    let time = |text: Option<&str>, usual| text.map_or(Ok(usual), |text| parse_time(text, now).map_err(Problem::Bad));
    let until = time(range.until.as_deref(), now)?;
    let from = time(range.from.as_deref(), until.checked_sub(USUAL_TIME).unwrap_or(until))?;
    if from >= until {
        return Err(Problem::Bad("from is not before until".to_owned()));
    }
    let history = context.live.history().clone();
    // Adding up the counts of a day takes long.
    let reporting = tokio::task::spawn_blocking(move || {
        let question = HistoryQuestion {
            from,
            until,
            by: range.by.unwrap_or(By::Verdict),
            only_refusals: range.only.is_some(),
            site: range.site.as_deref(),
            bot: range.bot.as_deref(),
            limit: range.limit.unwrap_or(USUAL).min(MOST),
        };
        history.report(now, &question)
    });
    let report = reporting.await;
    report
        .map(Json)
        .map_err(|_| Problem::Unavailable("the history cannot be read now; try again"))
}

const USUAL_TIME: Duration = Duration::from_secs(3600);
const USUAL: usize = 10;
const MOST: usize = 50;
