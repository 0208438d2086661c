//! What operators ask of the history.

use std::{sync::Arc, time::SystemTime};

use super::counts::{ByVerdict, Counts, Refusal, Slot};
use crate::{decision::Verdict, text::words};

words! {
    /// What a series stands for.
    pub enum By {
        Verdict = "verdict",
        Reason = "reason",
        Bot = "bot",
        Site = "site",
        /// Whether sites answered forwarded requests, or failed.
        Answer = "answer",
    }
}

/// What to report.
#[derive(Debug, Clone)]
pub struct Question<'q> {
    pub from: SystemTime,
    pub until: SystemTime,
    pub by: By,
    /// Only requests whose verdict was not `allow`.
    pub only_refusals: bool,
    /// Only this site, or this bot.
    pub site: Option<&'q str>,
    pub bot: Option<&'q str>,
    /// Maximum number of rows in each table.
    pub limit: usize,
}

// === impl Question ===

impl Question<'_> {
    pub(super) fn has(&self, verdict: Verdict) -> bool {
        !self.only_refusals || verdict != Verdict::Allow
    }

    fn is_about(&self, refusal: &Refusal<Arc<str>>) -> bool {
        self.site.is_none_or(|site| *refusal.site == *site) && self.bot.is_none_or(|bot| *refusal.bot == *bot)
    }

    /// Calls `put` with the name of each series and its count in `slot`.
    pub(super) fn each(&self, slot: &Slot, put: &mut impl FnMut(&Arc<str>, u32)) {
        let mut put_verdicts = |name: Option<&Arc<str>>, verdicts: &ByVerdict| {
            for verdict in Verdict::ALL.into_iter().filter(|verdict| self.has(*verdict)) {
                put(name.unwrap_or(&verdict.as_str().into()), verdicts[verdict as usize]);
            }
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
                for ((verdict, _), count) in &slot.results {
                    let mut verdicts = ByVerdict::default();
                    verdicts[*verdict as usize] = *count;
                    put_verdicts(None, &verdicts);
                }
            }
            (By::Reason, None, None) => {
                for ((verdict, reason), count) in &slot.results {
                    if self.has(*verdict) {
                        put(&reason.as_str().into(), *count);
                    }
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
                    match by {
                        By::Reason => put(&refusal.reason.as_str().into(), *count),
                        By::Bot => put(&refusal.bot, *count),
                        By::Site => put(&refusal.site, *count),
                        By::Verdict | By::Answer => put(&refusal.verdict.as_str().into(), *count),
                    }
                }
            }
        }
    }

    /// Leaves out what the question is not about.
    pub(super) fn narrow(&self, counts: &mut Counts) {
        counts
            .sites
            .retain(|name, _| self.site.is_none_or(|site| **name == *site));
        counts.bots.retain(|name, _| self.bot.is_none_or(|bot| **name == *bot));
        counts.refusals.retain(|refusal, _| self.is_about(refusal));
    }
}
