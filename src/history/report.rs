//! The answer to a question about the history: series for a chart, and tables.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Serialize, Serializer};

use super::{
    By, HistoryQuestion,
    counts::{ByVerdict, Refusal, SiteCounts, Slot, SpanCounts},
    rings::Resolution,
    seconds,
};
use crate::{decision::Handling, text::Timestamp};

/// The answer to a [`HistoryQuestion`].
#[derive(Debug, Serialize)]
pub struct HistoryReport {
    from: Timestamp,
    until: Timestamp,
    /// Seconds between two points of a series.
    step: u64,
    /// Since when the history has data in the resolution of the chart. `None` if it has none.
    since: Option<Timestamp>,
    series: Vec<Series>,
    /// The combinations of site, bot, rule, verdict and reason with the most refused requests.
    refusals: Vec<RefusalRow>,
    refused_bots: Vec<RefusalRow>,
    /// Like `refusals`, for requests that were forwarded although the verdict was not `allow`.
    not_enforced: Vec<RefusalRow>,
    bots: Vec<BotRow>,
    refused_sites: Vec<SiteRow>,
    failing_sites: Vec<SiteRow>,
    slow_sites: Vec<SiteRow>,
    busy_sites: Vec<SiteRow>,
}

/// One series of a chart: a count for each step.
#[derive(Debug, Serialize)]
pub struct Series {
    /// `None` for the sum of the counts that are in no named series.
    #[serde(serialize_with = "if_named")]
    name: Option<Arc<str>>,
    total: u64,
    counts: Vec<u64>,
}

#[derive(Debug, Serialize)]
pub struct RefusalRow {
    #[serde(flatten)]
    pub of: RefusedBy,
    pub count: u32,
    /// The count in the preceding time of the same length; `None` if the history does not have that time.
    pub before: Option<u32>,
}

/// What a [`RefusalRow`] counts. In the table `refused_bots`, all fields except `bot` and `bot_label` are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RefusedBy {
    #[serde(serialize_with = "if_named")]
    pub site: Option<Arc<str>>,
    #[serde(serialize_with = "if_named")]
    pub bot: Option<Arc<str>>,
    #[serde(serialize_with = "named")]
    pub bot_label: Arc<str>,
    #[serde(serialize_with = "if_named")]
    pub rule: Option<Arc<str>>,
    pub verdict: Option<&'static str>,
    pub reason: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub struct BotRow {
    #[serde(serialize_with = "named")]
    pub bot: Arc<str>,
    pub allow: u32,
    pub deny: u32,
    pub unverifiable: u32,
    pub defer: u32,
    /// Requests that were forwarded although the verdict was not `allow`. No other count contains them.
    pub not_enforced: u32,
    /// Refused requests in the preceding time of the same length; `None` if the history does not have that time.
    pub refused_before: Option<u32>,
}

#[derive(Debug, Serialize)]
pub struct SiteRow {
    #[serde(serialize_with = "named")]
    pub site: Arc<str>,
    pub requests: u32,
    pub refused: u32,
    pub refused_before: Option<u32>,
    /// Requests that were forwarded although the verdict was not `allow`.
    pub not_enforced: u32,
    pub answered: u32,
    pub failed: u32,
    /// Mean time to the first byte of a response.
    pub mean_us: Option<u64>,
    /// When the site first failed after its last answer; `None` if it has not failed since. See `failing`.
    pub failing_since: Option<Timestamp>,
}

/// The time that a report covers, in seconds since 1970, from `from` to before `until`. Both are multiples of `step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    from: u64,
    until: u64,
    step: u64,
    resolution: Resolution,
}

// === impl Span ===

impl Span {
    /// Chooses the finest resolution that has all counts between `from` and `until` of the question, or hours if none
    /// has. Then chooses the shortest step with at most `MAX_POINTS` points. The report can have two points more,
    /// because both ends are rounded to the step.
    pub(super) fn of(question: &HistoryQuestion<'_>, now: u64) -> Self {
        let until = seconds(question.until).min(now + 1);
        let from = seconds(question.from);
        let oldest = now.saturating_sub(Resolution::Hour.seconds() * Resolution::Hour.spans());
        // If the whole time is too old for the history, the report is empty.
        let from = from.max(oldest).min(until.saturating_sub(1));
        let needs_sites = question.site.is_some() || matches!(question.by, By::Site | By::Answer);
        let needs_refusals = question.bot.is_some() && question.by == By::Reason;
        let has_all = |resolution: &Resolution| {
            let first = now.saturating_sub(resolution.seconds() * (resolution.spans() - 1));
            from >= first && !(*resolution == Resolution::Second && (needs_sites || needs_refusals))
        };
        let resolution = Resolution::ALL.into_iter().find(has_all).unwrap_or(Resolution::Hour);
        let is_fit = |step: &u64| *step >= resolution.seconds() && (until - from) / step <= MAX_POINTS;
        let step = STEPS.into_iter().find(is_fit).unwrap_or(DAY);
        Self {
            from: from - from % step,
            until: until.next_multiple_of(step),
            step,
            resolution,
        }
    }

    pub(super) fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// At least a minute, because the history has no sites and no rules for single seconds.
    pub(super) fn resolution_of_tables(&self) -> Resolution {
        match self.resolution {
            Resolution::Second | Resolution::Minute => Resolution::Minute,
            Resolution::Hour => Resolution::Hour,
        }
    }

    /// `slots` are for the chart and `of_tables` for the tables, each with the oldest slot first.
    pub(super) fn report(
        &self,
        question: &HistoryQuestion<'_>,
        slots: &[Arc<Slot>],
        of_tables: &[Arc<Slot>],
    ) -> HistoryReport {
        let span = self.resolution_of_tables().seconds();
        let (from, until) = (self.from - self.from % span, self.until.next_multiple_of(span));
        let earliest = from.saturating_sub(until - from);
        let is_before_known = of_tables
            .first()
            .is_some_and(|slot| slot.at <= earliest + self.step.max(span));
        let merged = |from, until| {
            let mut counts = SpanCounts::default();
            let inside = of_tables.iter().filter(|slot| (from..until).contains(&slot.at));
            inside.for_each(|slot| counts.add(slot));
            question.narrow(&mut counts);
            counts
        };
        let now = merged(from, until);
        let before = is_before_known.then(|| merged(earliest, from));
        let failing = failing(of_tables);
        let sites = |order: fn(&SiteCounts) -> u64| {
            let mut sites: Vec<_> = now.sites.iter().filter(|(_, counts)| order(counts) > 0).collect();
            sites.sort_unstable_by_key(|(site, counts)| (Reverse(order(counts)), (*site).clone()));
            let refused = |counts: &SiteCounts| counts.verdicts.refused();
            let rows = sites.into_iter().take(question.limit).map(|(site, counts)| SiteRow {
                site: site.clone(),
                requests: counts.verdicts.total(),
                refused: refused(counts),
                refused_before: before.as_ref().map(|before| before.sites.get(site).map_or(0, refused)),
                not_enforced: counts.verdicts.not_enforced(),
                answered: counts.answered,
                failed: counts.failed,
                mean_us: counts.mean_micros(),
                failing_since: failing.get(site).map(|at| timestamp(*at)),
            });
            rows.collect()
        };
        let rows = |handling, of| refused(&now, before.as_ref(), question.limit, handling, of);
        HistoryReport {
            from: timestamp(self.from),
            until: timestamp(self.until),
            step: self.step,
            since: slots.first().map(|slot| timestamp(slot.at)),
            series: self.series(question, slots),
            refusals: rows(Handling::Refused, RefusedBy::all_of),
            refused_bots: rows(Handling::Refused, RefusedBy::bot_of),
            not_enforced: rows(Handling::NotEnforced, RefusedBy::all_of),
            bots: bots(&now, before.as_ref(), question.limit),
            refused_sites: sites(|site| site.verdicts.refused().into()),
            failing_sites: sites(|site| site.failed.into()),
            slow_sites: sites(|site| site.mean_micros().unwrap_or(0)),
            busy_sites: sites(|site| site.verdicts.total().into()),
        }
    }

    fn series(&self, question: &HistoryQuestion<'_>, slots: &[Arc<Slot>]) -> Vec<Series> {
        // The history has at most 8 days, so the cast loses nothing.
        let points = ((self.until - self.from) / self.step) as usize;
        let mut found: HashMap<Arc<str>, Vec<u64>> = HashMap::new();
        let mut all = vec![0; points];
        for slot in slots.iter().filter(|slot| (self.from..self.until).contains(&slot.at)) {
            let point = ((slot.at - self.from) / self.step) as usize;
            let mut put = |name: &Arc<str>, count: u32| {
                if count > 0 {
                    let counts = found.entry(name.clone()).or_insert_with(|| vec![0; points]);
                    counts[point] += u64::from(count);
                }
            };
            question.each(slot, &mut put);
            if matches!(question.by, By::Bot | By::Site) && question.site.is_none() && question.bot.is_none() {
                let results = slot.results.iter().filter(|(kind, _)| question.has(kind.handling()));
                all[point] += results.map(|(_, count)| u64::from(*count)).sum::<u64>();
            }
        }
        let mut series: Vec<_> = found
            .into_iter()
            .map(|(name, counts)| Series::new(Some(name), counts))
            .collect();
        series.sort_unstable_by(|a, b| (b.total, &a.name).cmp(&(a.total, &b.name)));
        let rest = series.split_off(series.len().min(MAX_SERIES));
        for (point, all) in all.iter_mut().enumerate() {
            let shown: u64 = series.iter().map(|series| series.counts[point]).sum();
            let rest: u64 = rest.iter().map(|series| series.counts[point]).sum();
            *all = all.saturating_sub(shown).max(rest);
        }
        if all.iter().any(|count| *count > 0) {
            series.push(Series::new(None, all));
        }
        series
    }
}

// === impl Series ===

impl Series {
    fn new(name: Option<Arc<str>>, counts: Vec<u64>) -> Self {
        Self {
            name,
            total: counts.iter().sum(),
            counts,
        }
    }
}

// === impl RefusedBy ===

impl RefusedBy {
    fn all_of(refusal: &Refusal<Arc<str>>) -> Self {
        let known = |name: &Arc<str>| Some(name.clone()).filter(|name| !name.is_empty());
        Self {
            site: known(&refusal.site),
            bot: known(&refusal.bot),
            bot_label: refusal.bot_label.clone(),
            rule: known(&refusal.rule),
            verdict: Some(refusal.kind.verdict.as_str()),
            reason: Some(refusal.kind.reason.as_str()),
        }
    }

    fn bot_of(refusal: &Refusal<Arc<str>>) -> Self {
        Self {
            site: None,
            rule: None,
            verdict: None,
            reason: None,
            ..Self::all_of(refusal)
        }
    }
}

fn refused(
    now: &SpanCounts,
    before: Option<&SpanCounts>,
    limit: usize,
    handling: Handling,
    of: fn(&Refusal<Arc<str>>) -> RefusedBy,
) -> Vec<RefusalRow> {
    let sums = |counts: &SpanCounts| {
        let mut sums: HashMap<RefusedBy, u32> = HashMap::new();
        let refusals = counts.refusals.iter();
        for (refusal, count) in refusals.filter(|(refusal, _)| refusal.kind.handling() == handling) {
            let sum = sums.entry(of(refusal)).or_default();
            *sum = sum.saturating_add(*count);
        }
        sums
    };
    let before = before.map(sums);
    let mut rows: Vec<_> = sums(now).into_iter().collect();
    rows.sort_unstable_by(|(a, x), (b, y)| (y, &a.site, &a.bot, &a.rule).cmp(&(x, &b.site, &b.bot, &b.rule)));
    let rows = rows.into_iter().take(limit).map(|(of, count)| RefusalRow {
        before: before
            .as_ref()
            .map(|before| before.get(&of).copied().unwrap_or_default()),
        of,
        count,
    });
    rows.collect()
}

fn bots(now: &SpanCounts, before: Option<&SpanCounts>, limit: usize) -> Vec<BotRow> {
    let mut rows: Vec<_> = now.bots.iter().collect();
    rows.sort_unstable_by_key(|(bot, verdicts)| {
        (Reverse(verdicts.refused()), Reverse(verdicts.total()), (*bot).clone())
    });
    let rows = rows.into_iter().take(limit).map(|(bot, verdicts)| {
        let [allow, deny, unverifiable, defer, not_enforced] = verdicts.0;
        BotRow {
            bot: bot.clone(),
            allow,
            deny,
            unverifiable,
            defer,
            not_enforced,
            refused_before: before.map(|before| before.bots.get(bot).map_or(0, ByVerdict::refused)),
        }
    });
    rows.collect()
}

/// Returns the sites that failed and have not answered since, with the time of the first failure.
fn failing(slots: &[Arc<Slot>]) -> HashMap<Arc<str>, u64> {
    let mut since: HashMap<Arc<str>, u64> = HashMap::new();
    for slot in slots {
        for (site, counts) in &slot.sites {
            if counts.answered > 0 {
                since.remove(site);
            } else if counts.failed > 0 {
                since.entry(site.clone()).or_insert(slot.at);
            }
        }
    }
    since
}

fn named<S: Serializer>(name: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name)
}

// The parameter is a reference to an `Option`, because serde passes fields by reference.
fn if_named<S: Serializer>(name: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    name.as_deref().serialize(serializer)
}

fn timestamp(seconds: u64) -> Timestamp {
    Timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Maximum number of points in a chart, before the ends are rounded to the step.
const MAX_POINTS: u64 = 180;
const MAX_SERIES: usize = 8;
const DAY: u64 = 24 * 3600;
/// Possible seconds between two points of a chart. People can easily read these from an axis.
const STEPS: [u64; 13] = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 3 * 3600];
