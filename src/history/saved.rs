//! The history as text: one JSON object. Each name, such as that of a site or a bot, occurs in it only once.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    counts::{ByVerdict, Refusal, SiteCounts, Slot},
    rings::{Names, Resolution},
};
use crate::decision::{DecisionKind, Reason, Verdict};

/// Why a saved history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("it is not what this version of robotgate writes")]
    Version,
    #[error("it is damaged: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it is damaged: an entry refers to a name that is not in the list of names")]
    Name,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    names: Vec<String>,
    /// The slots of each resolution, in the order of `Resolution::ALL`.
    slots: Vec<Vec<SavedSlot>>,
}

/// The counts of one second, minute or hour, with indices in `names` in place of names.
#[derive(Serialize, Deserialize)]
struct SavedSlot {
    at: u64,
    results: Vec<(SavedKind, u32)>,
    bots: Vec<(u32, ByVerdict)>,
    sites: Vec<(u32, ByVerdict, u32, u32, u64)>,
    /// The indices in `names` of the site, bot, bot label and rule, then the kind and the count.
    refusals: Vec<(u32, u32, u32, u32, SavedKind, u32)>,
}

/// The indices in `names` of the verdict and the reason, and whether the request was forwarded.
type SavedKind = (u32, u32, bool);

/// Read before the other fields, because these differ between versions.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Default)]
struct Index<'n> {
    names: Vec<String>,
    numbers: HashMap<&'n str, u32>,
}

pub(super) fn write(slots: &[Vec<Arc<Slot>>]) -> String {
    let mut index = Index::default();
    let slots = slots.iter().map(|slots| {
        let slots = slots.iter().map(|slot| SavedSlot {
            at: slot.at,
            results: (slot.results.iter())
                .map(|(kind, count)| (index.of_kind(*kind), *count))
                .collect(),
            bots: (slot.bots.iter())
                .map(|(name, verdicts)| (index.of(name), *verdicts))
                .collect(),
            sites: (slot.sites.iter())
                .map(|(name, site)| (index.of(name), site.verdicts, site.failed, site.answered, site.micros))
                .collect(),
            refusals: (slot.refusals.iter())
                .map(|(refusal, count)| {
                    let names = [&refusal.site, &refusal.bot, &refusal.bot_label, &refusal.rule];
                    let [site, bot, bot_label, rule] = names.map(|name| index.of(name));
                    (site, bot, bot_label, rule, index.of_kind(refusal.kind), *count)
                })
                .collect(),
        });
        slots.collect()
    });
    let slots = slots.collect();
    let saved = Saved {
        version: VERSION,
        slots,
        names: index.names,
    };
    // This cannot fail, because `saved` has only numbers and texts.
    serde_json::to_string(&saved).unwrap_or_default()
}

pub(super) fn read(text: &[u8], names: &mut Names) -> Result<[Vec<Slot>; Resolution::ALL.len()], Unreadable> {
    let Versioned { version } = serde_json::from_slice(text)?;
    if version != VERSION {
        return Err(Unreadable::Version);
    }
    let saved: Saved = serde_json::from_slice(text)?;
    let known = saved.names;
    let word = |number: u32| known.get(number as usize).ok_or(Unreadable::Name);
    // Returns `None` for a verdict or reason that only another version of robotgate has.
    let kind_of = |(verdict, reason, forwarded): SavedKind| {
        let words = Verdict::from_word(word(verdict)?).zip(Reason::from_word(word(reason)?));
        Ok::<_, Unreadable>(words.map(|(verdict, reason)| DecisionKind {
            verdict,
            reason,
            forwarded,
        }))
    };
    let mut read = Vec::new();
    for (slots, resolution) in saved.slots.into_iter().zip(Resolution::ALL) {
        let (limits, mut kept) = (resolution.limits(), Vec::new());
        for slot in slots {
            let mut results = Vec::new();
            for (kind, count) in slot.results {
                results.extend(kind_of(kind)?.map(|kind| (kind, count)));
            }
            let mut bots = Vec::new();
            for (name, verdicts) in slot.bots.into_iter().take(limits.bots) {
                bots.extend(names.store(word(name)?).map(|name| (name, verdicts)));
            }
            let mut sites = Vec::new();
            for (name, verdicts, failed, answered, micros) in slot.sites.into_iter().take(limits.sites) {
                let counts = SiteCounts {
                    verdicts,
                    failed,
                    answered,
                    micros,
                };
                sites.extend(names.store(word(name)?).map(|name| (name, counts)));
            }
            let mut refusals = Vec::new();
            for (site, bot, bot_label, rule, kind, count) in slot.refusals.into_iter().take(limits.refusals) {
                let mut stored = |number| Ok::<_, Unreadable>(names.store(word(number)?));
                let names = [stored(site)?, stored(bot)?, stored(bot_label)?, stored(rule)?];
                if let [Some(site), Some(bot), Some(bot_label), Some(rule)] = names
                    && let Some(kind) = kind_of(kind)?
                {
                    let refusal = Refusal {
                        site,
                        bot,
                        bot_label,
                        rule,
                        kind,
                    };
                    refusals.push((refusal, count));
                }
            }
            kept.push(Slot {
                at: slot.at,
                results: results.into(),
                bots: bots.into(),
                sites: sites.into(),
                refusals: refusals.into(),
            });
        }
        let excess = kept.len().saturating_sub(resolution.spans() as usize);
        kept.drain(..excess);
        read.push(kept);
    }
    read.try_into().map_err(|_| Unreadable::Version)
}

// === impl Index ===

impl<'n> Index<'n> {
    fn of(&mut self, name: &'n str) -> u32 {
        let names = &mut self.names;
        *self.numbers.entry(name).or_insert_with(|| {
            names.push(name.to_owned());
            // The cast loses nothing, because all names together take at most `MAX_BYTES`.
            names.len() as u32 - 1
        })
    }

    fn of_kind(&mut self, kind: DecisionKind) -> SavedKind {
        let [verdict, reason] = [kind.verdict.as_str(), kind.reason.as_str()].map(|word| self.of(word));
        (verdict, reason, kind.forwarded)
    }
}

const VERSION: u32 = 3;
