//! The history of the last days, for operators: decisions by verdict, reason, bot and site, the rules that refused, and
//! how sites answered. It keeps five minutes by the second, a day by the minute, and eight days by the hour.
//!
//! No request waits for it. About once a second, the service passes it a [`Sample`]. It reads no clock and opens no
//! file.
//!
//! It takes at most about 10 MiB, so it leaves out bots, sites and rules beyond the limits in `rings`. The totals by
//! verdict and reason leave out nothing.

mod counts;
mod question;
mod report;
mod rings;
mod saved;

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use parking_lot::Mutex;

pub use self::{
    counts::{ByVerdict, Refusal, SiteCounts},
    question::{By, HistoryQuestion},
    report::{BotRow, HistoryReport, RefusalRow, Series, SiteRow},
    saved::Unreadable,
};
use self::{
    report::Span,
    rings::{Names, Rings},
};
use crate::decision::DecisionKind;

/// The history of one robotgate.
#[derive(Debug, Default)]
pub struct History(Mutex<State>);

/// The counts that the service passes to the history about once a second.
#[derive(Debug, Default)]
pub struct Sample<'s> {
    /// The number of decisions since the start of the process, by bot and kind.
    pub totals: Totals,
    /// What was counted for sites since the last sample with sites. Most samples have no sites.
    pub sites: Vec<(String, SiteCounts)>,
    /// The requests whose verdict was not `allow`, since the last sample, as far as [`Recent`](crate::audit::Recent)
    /// still has their lines.
    pub refusals: Vec<Refusal<&'s str>>,
}

#[derive(Debug, Default)]
struct State {
    rings: Rings,
    names: Names,
    totals: Totals,
}

type Totals = HashMap<(Arc<str>, DecisionKind), u64>;

// === impl History ===

impl History {
    /// Adds what was counted until `now`.
    pub fn add(&self, now: SystemTime, sample: &Sample<'_>) {
        let State { rings, names, totals } = &mut *self.0.lock();
        rings.advance(seconds(now), names);
        for ((bot, kind), total) in &sample.totals {
            let before = totals.insert((bot.clone(), *kind), *total).unwrap_or_default();
            let added = total.saturating_sub(before);
            if added > 0 {
                rings.decided(names, bot, *kind, added);
            }
        }
        for (site, counts) in &sample.sites {
            rings.visited(names, site, counts);
        }
        for refusal in &sample.refusals {
            rings.refused(names, refusal);
        }
    }

    /// Returns the answer to `question` at the time `now`.
    pub fn report(&self, now: SystemTime, question: &HistoryQuestion<'_>) -> HistoryReport {
        let span = Span::of(question, seconds(now));
        // Under the lock, copy only the pointers to the ended spans, and the counts of the current ones.
        let (slots, of_tables) = {
            let state = self.0.lock();
            let slots = |resolution| state.rings.slots(resolution);
            (slots(span.resolution()), slots(span.resolution_of_tables()))
        };
        span.report(question, &slots, &of_tables)
    }

    /// Returns the whole history as text.
    pub fn saved(&self) -> String {
        let slots = rings::Resolution::ALL.map(|resolution| self.0.lock().rings.slots(resolution));
        saved::write(&slots)
    }

    /// Replaces the history with the one in `text`. What was added before is lost.
    ///
    /// # Errors
    /// Fails, and changes nothing, if the text is not what [`saved`](Self::saved) returns.
    pub fn restore(&self, text: &[u8]) -> Result<(), Unreadable> {
        let state = &mut *self.0.lock();
        let mut names = Names::default();
        state.rings = Rings::of(saved::read(text, &mut names)?);
        state.names = names;
        Ok(())
    }
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
