//! At regular intervals, tells [`crate::history`] how many decisions there were and how sites answered, and passes the
//! latest refusals to it. So a request only has to add to counters.

use std::{sync::Arc, time::SystemTime};

use super::Live;
use crate::{
    audit::LoggedRefusal,
    decision::{DecisionKind, Verdict},
    history::{ByVerdict, Refusal, Sample, SiteCounts},
    metrics::Metrics,
    store::Tallied,
};

pub struct Sampler {
    live: Arc<Live>,
    /// The last refusal that was passed to the history, by its number in [`crate::audit::Tail`].
    refusal: u64,
}

// === impl Sampler ===

impl Sampler {
    pub fn new(live: Arc<Live>) -> Self {
        Self { live, refusal: 0 }
    }

    /// Adds to the history what was counted since the last call. Adds the counts of each site only if `with_sites` is
    /// set, because there can be many sites.
    pub fn sample(&mut self, now: SystemTime, with_sites: bool) {
        let recent = self.live.recent();
        let tail = recent.tail(Some(self.refusal));
        self.refusal = tail.next;
        let logged: Vec<LoggedRefusal<'_>> = (tail.lines.iter())
            .filter_map(|(_, line)| serde_json::from_slice(line).ok())
            .collect();
        let mut sites = Vec::new();
        if with_sites {
            self.live.store().take_tallies(|origin, tallied| {
                sites.push((origin.to_string(), counts(&tallied)));
            });
        }
        let sample = Sample {
            totals: self.live.metrics.decision_totals(),
            sites,
            refusals: logged
                .iter()
                .map(|logged| refusal(logged, &self.live.metrics))
                .collect(),
        };
        self.live.history.add(now, &sample);
    }
}

fn refusal<'r>(logged: &'r LoggedRefusal<'_>, metrics: &Metrics) -> Refusal<&'r str> {
    let bot = logged.bot.as_deref();
    Refusal {
        site: &logged.origin,
        bot: bot.unwrap_or_default(),
        bot_label: metrics.bot_label(bot, !logged.is_product_token()),
        rule: logged.rule.as_deref().unwrap_or_default(),
        kind: DecisionKind {
            verdict: logged.verdict,
            reason: logged.reason,
            forwarded: logged.forwarded,
        },
    }
}

fn counts(tallied: &Tallied) -> SiteCounts {
    let small = |count| u32::try_from(count).unwrap_or(u32::MAX);
    let mut verdicts = ByVerdict::default();
    for (verdict, [stopped, forwarded]) in std::iter::zip(Verdict::ALL, tallied.verdicts) {
        verdicts.count(verdict, false, small(stopped));
        verdicts.count(verdict, true, small(forwarded));
    }
    SiteCounts {
        verdicts,
        failed: small(tallied.failed),
        answered: small(tallied.answered),
        micros: tallied.micros,
    }
}
