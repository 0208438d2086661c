//! Counts in spans of one second, one minute and one hour. Keeps the [`Slot`]s of the latest spans of each length.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use super::counts::{Refusal, SiteCounts, Slot, SlotLimits, SpanCounts};
use crate::{decision::DecisionKind, text::plain_message};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    Second,
    Minute,
    Hour,
}

#[derive(Debug)]
pub(super) struct Rings([Ring; Resolution::ALL.len()]);

/// The spans of one length, without those in which nothing happened.
#[derive(Debug)]
struct Ring {
    resolution: Resolution,
    /// The ended spans, the oldest first.
    slots: VecDeque<Arc<Slot>>,
    /// When the current span began, in seconds since 1970.
    at: u64,
    current: SpanCounts,
}

/// The names of sites and bots and the texts of rules, each stored once.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: HashSet<Arc<str>>,
    bytes: usize,
}

// === impl Resolution ===

impl Resolution {
    pub(super) const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    pub(super) const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }

    /// Returns how many spans of this length are kept, the current one included.
    pub(super) const fn spans(self) -> u64 {
        match self {
            Self::Second => 301,
            Self::Minute => 1441,
            Self::Hour => 193,
        }
    }

    pub(super) const fn limits(self) -> SlotLimits {
        match self {
            // Sites and refusals are counted by the minute, not by the second: the counts of sites arrive only every
            // few seconds.
            Self::Second => SlotLimits {
                bots: 16,
                sites: 0,
                refusals: 0,
            },
            Self::Minute => SlotLimits {
                bots: 16,
                sites: 22,
                refusals: 22,
            },
            Self::Hour => SlotLimits {
                bots: 32,
                sites: 64,
                refusals: 64,
            },
        }
    }
}

// === impl Rings ===

impl Default for Rings {
    fn default() -> Self {
        Self::of(Default::default())
    }
}

impl Rings {
    /// `slots` are the ended spans of each resolution, the oldest first.
    pub(super) fn of(slots: [Vec<Slot>; Resolution::ALL.len()]) -> Self {
        let mut slots = slots.into_iter();
        Self(Resolution::ALL.map(|resolution| Ring {
            resolution,
            slots: slots.next().into_iter().flatten().map(Arc::new).collect(),
            at: 0,
            current: SpanCounts::default(),
        }))
    }

    pub(super) fn advance(&mut self, now: u64, names: &mut Names) {
        let [seconds, minutes, hours] = &mut self.0;
        seconds.advance(now);
        // An hour adds up the slots of its minutes, which can lack some bots, sites and refusals.
        if let Some(minute) = minutes.advance(now) {
            hours.advance(minute.at);
            let hour = &mut hours.current;
            let sites = hour.sites.len() + minute.sites.len();
            if sites.max(hour.refusals.len() + minute.refusals.len()) > MAX_CURRENT {
                let cut = hour.slot(0, CUT);
                *hour = SpanCounts::default();
                hour.add(&cut);
            }
            hour.add(&minute);
            names.sweep();
        }
        hours.advance(now);
    }

    pub(super) fn decided(&mut self, names: &mut Names, bot: &str, kind: DecisionKind, count: u64) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let bot = names.store(bot);
        let [seconds, minutes, _] = &mut self.0;
        for counts in [&mut seconds.current, &mut minutes.current] {
            counts.result(kind, count);
            if let Some(bot) = &bot {
                let counted = counts.bots.entry(bot.clone()).or_default();
                counted.count(kind.verdict, kind.forwarded, count);
            }
        }
    }

    pub(super) fn visited(&mut self, names: &mut Names, site: &str, counts: &SiteCounts) {
        let current = &mut self.0[1].current;
        let is_new = || current.sites.len() < MAX_CURRENT || current.sites.contains_key(site);
        if let Some(site) = is_new().then(|| names.store(site)).flatten() {
            current.sites.entry(site).or_default().add(counts);
        }
    }

    pub(super) fn refused(&mut self, names: &mut Names, refusal: &Refusal<&str>) {
        let current = &mut self.0[1].current;
        // A refusal that is not counted must not use up room for names.
        let is_full = current.refusals.len() >= MAX_CURRENT;
        let mut named = |name: &str| match is_full {
            true => names.find(name),
            false => names.store(name),
        };
        let mut stored = || {
            Some(Refusal {
                site: named(refusal.site)?,
                bot: named(&plain_message(refusal.bot, MAX_TEXT))?,
                bot_label: named(refusal.bot_label)?,
                rule: named(&plain_message(refusal.rule, MAX_TEXT))?,
                kind: refusal.kind,
            })
        };
        if let Some(refusal) = stored()
            && (!is_full || current.refusals.contains_key(&refusal))
        {
            current.refusal(refusal, 1);
        }
    }

    #[cfg(test)]
    pub(super) fn counting(&self, resolution: Resolution) -> [usize; 2] {
        let current = &self.0[resolution as usize].current;
        [current.sites.len(), current.refusals.len()]
    }

    /// Returns the spans, the oldest first and the current one last.
    pub(super) fn slots(&self, resolution: Resolution) -> Vec<Arc<Slot>> {
        let [_, minutes, hours] = &self.0;
        let ring = &self.0[resolution as usize];
        let mut slots: Vec<_> = ring.slots.iter().cloned().collect();
        let current = match resolution {
            Resolution::Hour => {
                let mut current = hours.current.clone();
                current.add(&minutes.ended());
                current
            }
            _ => ring.current.clone(),
        };
        if !current.is_empty() {
            slots.push(Arc::new(current.slot(ring.at, resolution.limits())));
        }
        slots
    }
}

// === impl Ring ===

impl Ring {
    /// Ends the current span if `now` is not in it. Returns the ended span, unless nothing happened in it.
    fn advance(&mut self, now: u64) -> Option<Arc<Slot>> {
        let step = self.resolution.seconds();
        let at = now - now % step;
        if at == self.at {
            return None;
        }
        let ended = (!self.current.is_empty()).then(|| Arc::new(self.ended()));
        self.current = SpanCounts::default();
        self.slots.extend(ended.clone());
        self.at = at;
        // If the clock was set back, drop the spans after `at`, because their time will be counted again.
        self.slots.retain(|slot| slot.at <= at);
        let oldest = (at + step).saturating_sub(self.resolution.spans() * step);
        // After a restart, a span can have two slots, one from each run. So limit the number of slots too, not only
        // their age.
        while self.slots.len() as u64 > self.resolution.spans()
            || self.slots.front().is_some_and(|slot| slot.at < oldest)
        {
            self.slots.pop_front();
        }
        ended
    }

    fn ended(&self) -> Slot {
        self.current.slot(self.at, self.resolution.limits())
    }
}

// === impl Names ===

impl Names {
    /// Returns `None` if there is no room for another name.
    pub(super) fn store(&mut self, name: &str) -> Option<Arc<str>> {
        if let Some(stored) = self.find(name) {
            return Some(stored);
        }
        if self.bytes + weight(name) > MAX_BYTES {
            return None;
        }
        let stored: Arc<str> = name.into();
        self.bytes += weight(name);
        self.names.insert(stored.clone());
        Some(stored)
    }

    fn find(&self, name: &str) -> Option<Arc<str>> {
        self.names.get(name).cloned()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn sweep(&mut self) {
        self.names.retain(|name| Arc::strong_count(name) > 1);
        self.bytes = self.names.iter().map(|name| weight(name)).sum();
    }
}

fn weight(name: &str) -> usize {
    name.len() + 48
}

/// Maximum length of a rule or of a bot's name in a refusal, in bytes. A longer one is cut, so that one site or client
/// cannot use up the room for names.
const MAX_TEXT: usize = 128;
/// Maximum number of sites, and of refusals, that the current span counts. One more would double the memory of the map
/// that counts them.
pub(super) const MAX_CURRENT: usize = 4096 / 8 * 7;
/// If a minute would bring the current hour above [`MAX_CURRENT`], the hour is first cut to these limits.
const CUT: SlotLimits = SlotLimits {
    bots: 1024,
    sites: 512,
    refusals: 512,
};
/// Maximum size of all names together, in bytes.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
