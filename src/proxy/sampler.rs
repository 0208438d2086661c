//! Passes to the history what was counted since the last time. It reads counters and the copies of the log's latest
//! refusals, so that requests have nothing to do for it.

use std::{borrow::Cow, sync::Arc, time::SystemTime};

use serde::Deserialize;

use super::Live;
use crate::{
    copy::Tallied,
    decision::{Reason, Verdict},
    history::{Refusal, Sample, SiteCounts},
};

/// Reads the counters of one proxy.
pub struct Sampler {
    live: Arc<Live>,
    /// The number of the last refusal that was read.
    refusal: u64,
}

/// The part of a record of a decision that the history counts.
#[derive(Deserialize)]
struct Record<'r> {
    verdict: &'r str,
    reason: &'r str,
    #[serde(borrow)]
    bot: Option<Cow<'r, str>>,
    #[serde(borrow)]
    origin: Cow<'r, str>,
    #[serde(borrow)]
    rule: Option<Cow<'r, str>>,
}

// === impl Sampler ===

impl Sampler {
    pub fn new(live: Arc<Live>) -> Self {
        Self { live, refusal: 0 }
    }

    /// Adds what was counted since the last call, until `now`. Sites only if `with_sites` is set, because there can be
    /// many. Takes some milliseconds.
    pub fn sample(&mut self, now: SystemTime, with_sites: bool) {
        let recent = self.live.recent();
        let tail = recent.tail(Some(self.refusal), usize::MAX);
        self.refusal = tail.next;
        let records = tail
            .lines
            .iter()
            .filter_map(|(_, line)| serde_json::from_slice(line).ok());
        let records: Vec<Record<'_>> = records.collect();
        let mut sites = Vec::new();
        if with_sites {
            self.live.store().take_tallies(|origin, tallied| {
                sites.push((origin.to_string(), counts(&tallied)));
            });
        }
        let sample = Sample {
            totals: self.live.metrics.decision_totals(),
            sites,
            refusals: records.iter().filter_map(Record::refusal).collect(),
        };
        self.live.history.add(now, &sample);
    }
}

// === impl Record ===

impl Record<'_> {
    fn refusal(&self) -> Option<Refusal<&str>> {
        Some(Refusal {
            site: &self.origin,
            bot: self.bot.as_deref().unwrap_or_default(),
            rule: self.rule.as_deref().unwrap_or_default(),
            verdict: Verdict::ALL
                .into_iter()
                .find(|verdict| verdict.as_str() == self.verdict)?,
            reason: Reason::ALL.into_iter().find(|reason| reason.as_str() == self.reason)?,
        })
    }
}

fn counts(tallied: &Tallied) -> SiteCounts {
    let small = |count| u32::try_from(count).unwrap_or(u32::MAX);
    SiteCounts {
        verdicts: tallied.verdicts.map(small),
        failed: small(tallied.failed),
        answered: small(tallied.answered),
        micros: tallied.micros,
    }
}
