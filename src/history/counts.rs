//! What happened in one span of time: while it is counted ([`Counts`]), and afterwards, cut to what stands out
//! ([`Slot`]).

use std::{collections::HashMap, hash::Hash, sync::Arc};

use crate::decision::{Reason, Verdict};

/// What happened at a site. Each count is one of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// Decisions by verdict, in the order of [`Verdict::ALL`].
    pub verdicts: [u32; Verdict::ALL.len()],
    /// Forwarded requests that the site answered with a 5xx, or not at all.
    pub failed: u32,
    /// Forwarded requests that the site answered otherwise, and how long all of them took to the first byte of the
    /// response, in microseconds. Waits for a robots.txt and for a turn are not included.
    pub answered: u32,
    pub micros: u64,
}

/// Why requests were not allowed. `S` is a kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Refusal<S> {
    pub site: S,
    /// Empty if the request names no bot.
    pub bot: S,
    /// The rule as written; empty if no rule decided.
    pub rule: S,
    pub verdict: Verdict,
    pub reason: Reason,
}

/// Counts by verdict.
pub(super) type ByVerdict = [u32; Verdict::ALL.len()];

/// The counts of a span that has not ended, or of several spans together.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) results: HashMap<(Verdict, Reason), u32>,
    pub(super) bots: HashMap<Arc<str>, ByVerdict>,
    pub(super) sites: HashMap<Arc<str>, SiteCounts>,
    pub(super) refusals: HashMap<Refusal<Arc<str>>, u32>,
}

/// The counts of a span that has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// When the span began, in seconds since 1970.
    pub(super) at: u64,
    pub(super) results: Box<[((Verdict, Reason), u32)]>,
    pub(super) bots: Box<[(Arc<str>, ByVerdict)]>,
    pub(super) sites: Box<[(Arc<str>, SiteCounts)]>,
    pub(super) refusals: Box<[(Refusal<Arc<str>>, u32)]>,
}

/// How many of each kind a slot keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bots: usize,
    pub(super) sites: usize,
    pub(super) refusals: usize,
}

// === impl SiteCounts ===

impl SiteCounts {
    pub fn requests(&self) -> u32 {
        sum(&self.verdicts)
    }

    /// Returns the number of decisions whose verdict was not `allow`.
    pub fn refused(&self) -> u32 {
        self.requests() - self.verdicts[Verdict::Allow as usize]
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        add(&mut self.verdicts, &other.verdicts);
        self.failed = self.failed.saturating_add(other.failed);
        self.answered = self.answered.saturating_add(other.answered);
        self.micros = self.micros.saturating_add(other.micros);
    }

    /// Returns the mean time to the first byte of a response, in microseconds.
    pub(super) fn mean_micros(&self) -> Option<u64> {
        self.micros.checked_div(self.answered.into())
    }
}

// === impl Counts ===

impl Counts {
    /// Adds the counts of a slot.
    pub(super) fn add(&mut self, slot: &Slot) {
        for (result, count) in &slot.results {
            self.result(*result, *count);
        }
        for (bot, verdicts) in &slot.bots {
            add(self.bots.entry(bot.clone()).or_default(), verdicts);
        }
        for (site, counts) in &slot.sites {
            self.sites.entry(site.clone()).or_default().add(counts);
        }
        for (refusal, count) in &slot.refusals {
            self.refusal(refusal.clone(), *count);
        }
    }

    pub(super) fn result(&mut self, result: (Verdict, Reason), count: u32) {
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

    /// Returns what stands out.
    pub(super) fn slot(&self, at: u64, limits: Limits) -> Slot {
        let mut results: Vec<_> = self.results.iter().map(|(result, count)| (*result, *count)).collect();
        results.sort_unstable_by_key(|((verdict, reason), _)| (*verdict as usize, *reason as usize));
        Slot {
            at,
            results: results.into(),
            bots: largest(&self.bots, limits.bots, sum),
            sites: self.sites(limits.sites),
            refusals: largest(&self.refusals, limits.refusals, |count| *count),
        }
    }

    /// Returns at most `limit` sites: in turn the next by refusals, failures, slowness and requests.
    fn sites(&self, limit: usize) -> Box<[(Arc<str>, SiteCounts)]> {
        let mut left = self.sites.clone();
        if left.len() > limit {
            let orders: [fn(&SiteCounts) -> u64; 4] = [
                |site| site.refused().into(),
                |site| site.failed.into(),
                |site| site.mean_micros().unwrap_or(0),
                |site| site.requests().into(),
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

/// Returns the `limit` largest, the largest first.
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

pub(super) fn sum(verdicts: &ByVerdict) -> u32 {
    verdicts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

pub(super) fn add(to: &mut ByVerdict, more: &ByVerdict) {
    for (count, more) in to.iter_mut().zip(more) {
        *count = count.saturating_add(*more);
    }
}
