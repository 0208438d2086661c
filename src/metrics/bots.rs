//! Counts decisions by bot, verdict, reason, enforcement, and whether the request was forwarded.

use std::sync::Arc;

use super::{Metrics, label::Label as _, sharded::ShardedCounters};
use crate::{
    bot::{Bot, Bots, Enforcement, Identity},
    decision::{Decision, DecisionKind, Reason, Verdict},
};

#[derive(Debug)]
pub(super) struct Decisions(ShardedCounters);

#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) kind: DecisionKind,
    pub(super) enforcement: Enforcement,
    pub(super) count: u64,
}

/// The counters of the decisions about each bot of a configuration. Finds them by the address of the [`Bot`] in memory,
/// which is faster than by name.
#[derive(Debug)]
pub struct Meter {
    pub metrics: Arc<Metrics>,
    /// Sorted by the bots' addresses in memory.
    bots: Box<[(Arc<Bot>, Arc<Decisions>)]>,
}

// === impl Decisions ===

impl Default for Decisions {
    fn default() -> Self {
        Self(ShardedCounters::new(CELLS))
    }
}

impl Decisions {
    fn add(&self, decision: &Decision) {
        self.0.add(cell(decision.kind(), decision.enforcement), 1);
    }

    pub(super) fn of(&self, verdict: Verdict) -> u64 {
        let counts = self.iter().filter(|counted| counted.kind.verdict == verdict);
        counts.map(|counted| counted.count).sum()
    }

    /// Returns the count of each combination of verdict, reason, enforcement and forwarding, also if it is zero.
    pub(super) fn iter(&self) -> impl Iterator<Item = Counted> {
        let all = Verdict::ALL.into_iter().flat_map(|verdict| {
            Reason::ALL
                .into_iter()
                .flat_map(move |reason| Enforcement::ALL.map(|enforcement| (verdict, reason, enforcement)))
        });
        all.flat_map(|(verdict, reason, enforcement)| {
            [false, true].map(|forwarded| {
                let kind = DecisionKind {
                    verdict,
                    reason,
                    forwarded,
                };
                Counted {
                    kind,
                    enforcement,
                    count: self.0.get(cell(kind, enforcement)),
                }
            })
        })
    }
}

fn cell(kind: DecisionKind, enforcement: Enforcement) -> usize {
    let index = kind.verdict.index() * Reason::ALL.len() + kind.reason.index();
    (index * Enforcement::ALL.len() + enforcement.index()) * 2 + usize::from(kind.forwarded)
}

const CELLS: usize = Verdict::ALL.len() * Reason::ALL.len() * Enforcement::ALL.len() * 2;

// === impl Meter ===

impl Meter {
    /// Creates a meter for the bots of a configuration. Continues the counters of bots that `metrics` already knows.
    pub fn new(metrics: Arc<Metrics>, bots: &Bots) -> Self {
        let mut bots: Box<[_]> = bots
            .iter()
            .map(|bot| (bot.clone(), metrics.decisions_of(&bot.name)))
            .collect();
        bots.sort_unstable_by_key(|(bot, _)| Arc::as_ptr(bot));
        Self { metrics, bots }
    }

    /// Counts a decision.
    pub fn decided(&self, decision: &Decision) {
        self.of(&decision.question.subject.identity).add(decision);
        if let Some(usage) = &decision.usage {
            self.metrics.forbidden(&usage.said);
        }
    }

    fn of(&self, identity: &Identity<'_>) -> &Decisions {
        match identity {
            Identity::Bot(bot) => {
                let found = self
                    .bots
                    .binary_search_by_key(&Arc::as_ptr(bot), |(bot, _)| Arc::as_ptr(bot));
                // A decision's bot is always found, because it is from the same configuration as the meter.
                found.map_or(&self.metrics.other, |index| &self.bots[index].1)
            }
            Identity::Token(_) => &self.metrics.other,
            Identity::Unidentified(_) | Identity::Refused(_) => &self.metrics.unidentified,
        }
    }
}
