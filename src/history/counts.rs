//! The counts of one span: a second, minute or hour. [`SpanCounts`] counts until the span ends. Then a [`Slot`] keeps
//! the numbers of decisions by kind, and the most important bots, sites and refusals.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::decision::{DecisionKind, Handling, Verdict};

/// Numbers of requests by verdict, in the order of [`Verdict::ALL`]. The last number counts the requests that were
/// forwarded although the verdict was not `allow`, and no other number counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByVerdict(pub(super) [u32; Verdict::ALL.len() + 1]);

/// What happened to the requests to a site. All fields except `micros` are numbers of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteCounts {
    pub verdicts: ByVerdict,
    /// Forwarded requests that the site answered with a 5xx, with an invalid or incomplete response, or not at all.
    pub failed: u32,
    /// All other forwarded requests that the site answered. Neither `failed` nor `answered` counts requests whose
    /// client left before the response.
    pub answered: u32,
    /// Sum of the answered requests' microseconds to the first byte, without the waits for a robots.txt and a turn.
    pub micros: u64,
}

/// Requests with the same site, bot, rule and kind of decision, whose verdict was not `allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Refusal<S> {
    pub site: S,
    /// The bot's name, as in the log. Empty if the request names no bot.
    pub bot: S,
    /// The bot's name, as in the metrics and in the other counts of the history.
    pub bot_label: S,
    /// The rule's text, as in the robots.txt. Empty if no rule decided.
    pub rule: S,
    pub kind: DecisionKind,
}

/// The counts of a span that has not ended, or of several spans together.
#[derive(Debug, Clone, Default)]
pub(super) struct SpanCounts {
    pub(super) results: HashMap<DecisionKind, u32>,
    pub(super) bots: HashMap<Arc<str>, ByVerdict>,
    pub(super) sites: HashMap<Arc<str>, SiteCounts>,
    pub(super) refusals: HashMap<Refusal<Arc<str>>, u32>,
}

/// The counts of a span: all `results`, but only the bots and refusals with the largest counts, and a choice of sites.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// When the span began, in seconds since 1970.
    pub(super) at: u64,
    pub(super) results: Box<[(DecisionKind, u32)]>,
    pub(super) bots: Box<[(Arc<str>, ByVerdict)]>,
    pub(super) sites: Box<[(Arc<str>, SiteCounts)]>,
    pub(super) refusals: Box<[(Refusal<Arc<str>>, u32)]>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SlotLimits {
    pub(super) bots: usize,
    pub(super) sites: usize,
    pub(super) refusals: usize,
}

// === impl ByVerdict ===

impl ByVerdict {
    /// Adds `count` requests. `forwarded` says whether robotgate forwarded them.
    pub fn count(&mut self, verdict: Verdict, forwarded: bool, count: u32) {
        let index = match Handling::of(verdict == Verdict::Allow, forwarded) {
            Handling::NotEnforced => Verdict::ALL.len(),
            Handling::Allowed | Handling::Refused => verdict as usize,
        };
        self.0[index] = self.0[index].saturating_add(count);
    }

    /// Returns the numbers, each with what robotgate did with these requests and the name of their series in a chart.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Handling, &'static str, u32)> {
        let of_verdict = |verdict: Verdict| {
            let is_allowed = verdict == Verdict::Allow;
            (Handling::of(is_allowed, is_allowed), verdict.as_str())
        };
        let series = Verdict::ALL.into_iter().map(of_verdict);
        let series = series.chain([(Handling::NotEnforced, NOT_ENFORCED)]);
        series
            .zip(self.0)
            .map(|((handling, name), count)| (handling, name, count))
    }

    pub(super) fn total(&self) -> u32 {
        sum(&self.0)
    }

    pub(super) fn refused(&self) -> u32 {
        let [_allow, refused @ .., _not_enforced] = &self.0;
        sum(refused)
    }

    pub(super) fn not_enforced(&self) -> u32 {
        self.0[Verdict::ALL.len()]
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }
}

fn sum(counts: &[u32]) -> u32 {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

// === impl SiteCounts ===

impl SiteCounts {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.verdicts.add(&other.verdicts);
        self.failed = self.failed.saturating_add(other.failed);
        self.answered = self.answered.saturating_add(other.answered);
        self.micros = self.micros.saturating_add(other.micros);
    }

    /// Returns the mean time to the first byte in microseconds, or `None` if the site answered no request.
    pub(super) fn mean_micros(&self) -> Option<u64> {
        self.micros.checked_div(self.answered.into())
    }
}

// === impl SpanCounts ===

impl SpanCounts {
    pub(super) fn add(&mut self, slot: &Slot) {
        for (result, count) in &slot.results {
            self.result(*result, *count);
        }
        for (bot, verdicts) in &slot.bots {
            self.bots.entry(bot.clone()).or_default().add(verdicts);
        }
        for (site, counts) in &slot.sites {
            self.sites.entry(site.clone()).or_default().add(counts);
        }
        for (refusal, count) in &slot.refusals {
            self.refusal(refusal.clone(), *count);
        }
    }

    pub(super) fn result(&mut self, result: DecisionKind, count: u32) {
        let sum = self.results.entry(result).or_default();
        *sum = sum.saturating_add(count);
    }

    pub(super) fn refusal(&mut self, refusal: Refusal<Arc<str>>, count: u32) {
        let sum = self.refusals.entry(refusal).or_default();
        *sum = sum.saturating_add(count);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.sites.is_empty() && self.refusals.is_empty()
    }

    /// Returns the slot of the span that began at `at`, in seconds since 1970.
    pub(super) fn slot(&self, at: u64, limits: SlotLimits) -> Slot {
        let mut results: Vec<_> = self.results.iter().map(|(result, count)| (*result, *count)).collect();
        results.sort_unstable_by_key(|(kind, _)| (kind.verdict as usize, kind.reason as usize, kind.forwarded));
        Slot {
            at,
            results: results.into(),
            bots: largest(&self.bots, limits.bots, ByVerdict::total),
            sites: self.sites(limits.sites),
            refusals: largest(&self.refusals, limits.refusals, |count| *count),
        }
    }

    /// Returns at most `limit` sites. If there are more, takes sites in turn from four lists: by refusals, by failures,
    /// by response time, and by requests.
    fn sites(&self, limit: usize) -> Box<[(Arc<str>, SiteCounts)]> {
        let mut left = self.sites.clone();
        if left.len() > limit {
            let orders: [fn(&SiteCounts) -> u64; 4] = [
                |site| site.verdicts.refused().into(),
                |site| site.failed.into(),
                |site| site.mean_micros().unwrap_or(0),
                |site| site.verdicts.total().into(),
            ];
            let ranked = orders.map(|order| {
                let mut ranked: Vec<_> = self.sites.iter().filter(|(_, site)| order(site) > 0).collect();
                ranked.sort_unstable_by_key(|(name, site)| (std::cmp::Reverse(order(site)), (*name).clone()));
                ranked
            });
            let mut kept = HashMap::new();
            let longest = ranked.iter().map(Vec::len).max().unwrap_or(0);
            let in_turn = (0..longest).flat_map(|at| ranked.iter().filter_map(move |ranked| ranked.get(at)));
            for (name, site) in in_turn {
                if kept.len() >= limit {
                    break;
                }
                kept.insert((*name).clone(), **site);
            }
            left = kept;
        }
        let mut sites: Vec<_> = left.into_iter().collect();
        sites.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        sites.into()
    }
}

fn largest<K: Clone + Eq + Hash, V: Clone>(
    counts: &HashMap<K, V>,
    limit: usize,
    size: impl Fn(&V) -> u32,
) -> Box<[(K, V)]> {
    let mut all: Vec<_> = counts.iter().collect();
    all.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(size(count)));
    let kept = all.into_iter().take(limit);
    kept.map(|(key, count)| (key.clone(), count.clone())).collect()
}

/// Name of the series that counts the requests that were forwarded although the verdict was not `allow`.
pub(super) const NOT_ENFORCED: &str = "not-enforced";
