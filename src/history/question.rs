//! The questions that operators can ask about the history.

use std::{sync::Arc, time::SystemTime};

use super::counts::{ByVerdict, Refusal, Slot, SpanCounts};
use crate::{
    decision::{DecisionKind, Handling},
    text::words,
};

words! {
    /// By what a chart groups requests: it has one series for each verdict, reason, bot, site or kind of answer.
    pub enum By {
        Verdict = "verdict",
        Reason = "reason",
        Bot = "bot",
        Site = "site",
        /// Whether the site answered a forwarded request, or failed.
        Answer = "answer",
    }
}

/// A question: which time, which requests, and how to group them.
#[derive(Debug, Clone)]
pub struct HistoryQuestion<'q> {
    pub from: SystemTime,
    pub until: SystemTime,
    pub by: By,
    /// Whether the series count only refused requests. [`By::Answer`] ignores this.
    pub only_refusals: bool,
    pub site: Option<&'q str>,
    /// The bot as the metrics name it.
    pub bot: Option<&'q str>,
    /// Maximum number of rows in each table.
    pub limit: usize,
}

// === impl HistoryQuestion ===

impl HistoryQuestion<'_> {
    pub(super) fn has(&self, handling: Handling) -> bool {
        !self.only_refusals || handling == Handling::Refused
    }

    fn is_about(&self, refusal: &Refusal<Arc<str>>) -> bool {
        self.site.is_none_or(|site| *refusal.site == *site) && self.bot.is_none_or(|bot| *refusal.bot_label == *bot)
    }

    /// Calls `put` with the name of a series and a number for each count in `slot` that the question is about.
    pub(super) fn each(&self, slot: &Slot, put: &mut impl FnMut(&Arc<str>, u32)) {
        let mut put_verdicts = |name: Option<&Arc<str>>, verdicts: &ByVerdict| {
            for (_, series, count) in verdicts.iter().filter(|(handling, ..)| self.has(*handling)) {
                put(name.unwrap_or(&series.into()), count);
            }
        };
        let of_kind = |kind: &DecisionKind, count: u32| {
            let mut verdicts = ByVerdict::default();
            verdicts.count(kind.verdict, kind.forwarded, count);
            verdicts
        };
        let is_site = |name: &Arc<str>| self.site.is_none_or(|site| **name == *site);
        let is_bot = |name: &Arc<str>| self.bot.is_none_or(|bot| **name == *bot);
        match (self.by, self.site, self.bot) {
            (By::Answer, ..) => {
                for (_, counts) in slot.sites.iter().filter(|(name, _)| is_site(name)) {
                    put(&"answered".into(), counts.answered);
                    put(&"failed".into(), counts.failed);
                }
            }
            (By::Verdict, None, None) => {
                for (kind, count) in &slot.results {
                    put_verdicts(None, &of_kind(kind, *count));
                }
            }
            (By::Reason, None, None) => {
                for (kind, count) in slot.results.iter().filter(|(kind, _)| self.has(kind.handling())) {
                    put(&kind.reason.as_str().into(), *count);
                }
            }
            (By::Verdict | By::Site, _, None) => {
                for (name, counts) in slot.sites.iter().filter(|(name, _)| is_site(name)) {
                    put_verdicts((self.by == By::Site).then_some(name), &counts.verdicts);
                }
            }
            (By::Verdict | By::Bot, None, _) => {
                for (name, verdicts) in slot.bots.iter().filter(|(name, _)| is_bot(name)) {
                    put_verdicts((self.by == By::Bot).then_some(name), verdicts);
                }
            }
            (by, ..) => {
                for (refusal, count) in slot.refusals.iter().filter(|(refusal, _)| self.is_about(refusal)) {
                    let name = match by {
                        By::Reason => Some(refusal.kind.reason.as_str().into()),
                        By::Bot => Some(refusal.bot_label.clone()),
                        By::Site => Some(refusal.site.clone()),
                        By::Verdict | By::Answer => None,
                    };
                    put_verdicts(name.as_ref(), &of_kind(&refusal.kind, *count));
                }
            }
        }
    }

    pub(super) fn narrow(&self, counts: &mut SpanCounts) {
        counts
            .sites
            .retain(|name, _| self.site.is_none_or(|site| **name == *site));
        counts.bots.retain(|name, _| self.bot.is_none_or(|bot| **name == *bot));
        counts.refusals.retain(|refusal, _| self.is_about(refusal));
    }
}
