//! Collects the outages and the changes of each site's robots.txt.

use std::{
    collections::{HashMap, VecDeque},
    time::SystemTime,
};

use super::{
    kept,
    line::{Record, Text},
    top::SEPARATOR,
};
use crate::copy::AnswerKind;

/// A time during which the robots.txt of a site could not be fetched.
#[derive(Debug, Clone)]
pub(super) struct Outage {
    pub(super) site: String,
    pub(super) from: SystemTime,
    /// When the last failed fetch ended, or robotgate stopped.
    pub(super) last: SystemTime,
    /// When a fetch succeeded again. `None` if the log does not show that.
    pub(super) until: Option<SystemTime>,
    pub(super) failures: u64,
    pub(super) error: String,
}

/// The outages of all sites. Each robotgate fetches by itself, so each has its own outages. If it is stopped during
/// an outage, the outage goes on until a fetch succeeds.
#[derive(Debug, Default)]
pub(super) struct Outages {
    open: HashMap<String, Outage>,
    /// Open outages of robotgates that were stopped, by site. The next fetch from the site, by any robotgate, continues
    /// or ends the outage.
    stopped: HashMap<String, Outage>,
    ended: Vec<Outage>,
    pub(super) total: u64,
    /// Whether outages were dropped, because too many had ended (the longest are kept) or too many were open.
    pub(super) is_cut: bool,
}

#[derive(Debug, Clone)]
pub(super) struct SiteChange {
    pub(super) time: SystemTime,
    pub(super) site: String,
    /// The checksums of the old text (`before`) and of the new text (`after`); `None` if there was no robots.txt.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// The numbers of added and removed rules; `None` if the log does not say.
    pub(super) rules: Option<(u64, u64)>,
}

/// If there are too many changes, only those that were added last are kept.
#[derive(Debug, Default)]
pub(super) struct SiteChanges {
    kept: VecDeque<SiteChange>,
    pub(super) total: u64,
}

// === impl Outages ===

impl Outages {
    /// Adds the record of a fetch, or of a copy from another robotgate. `log` is the number of the log file.
    pub(super) fn add(&mut self, record: &Record<'_>, log: usize) {
        // With `egress`, nothing was fetched, so the record says nothing about an outage of the site.
        if (record.holds.as_ref()).is_some_and(|holds| holds.as_str() == AnswerKind::Egress.as_str()) {
            return;
        }
        let (key, time) = (key(record, log), record.time.0);
        let since = record.failing_since.map(|since| since.0);
        match (self.open.get_mut(&key), since) {
            (Some(open), Some(since)) if since <= open.last => {
                open.last = open.last.max(time);
                open.failures += 1;
                if let Some(error) = &record.error {
                    open.error = kept(error.as_str());
                }
            }
            // The last failure was before `since`, so this is a new outage. The log lacks the success in between.
            (Some(_), Some(since)) => {
                self.end(&key, since);
                self.begin(key, record, since);
            }
            (None, Some(since)) => self.begin(key, record, since),
            // This record is older than the last failure, so it does not end the outage.
            (Some(open), None) if time < open.last => {}
            (Some(_), None) => self.end(&key, time),
            (None, None) => {
                if let Some(mut outage) = self.take_stopped(record.origin(), time) {
                    outage.until = Some(time);
                    self.keep(outage);
                }
            }
        }
    }

    /// Takes the outage of the site during which a robotgate was stopped before `time`, if there is one.
    fn take_stopped(&mut self, site: &str, time: SystemTime) -> Option<Outage> {
        self.stopped.get(site).filter(|outage| outage.last <= time)?;
        self.stopped.remove(site)
    }

    pub(super) fn stop(&mut self, record: &Record<'_>, log: usize) {
        let run = run(record, log) + SEPARATOR;
        let keys: Vec<_> = self.open.keys().filter(|key| key.starts_with(&run)).cloned().collect();
        for key in keys {
            if let Some(mut outage) = self.open.remove(&key) {
                outage.last = outage.last.max(record.time.0);
                let displaced = match self.stopped.len() < MAX_OPEN {
                    true => self.stopped.insert(outage.site.clone(), outage),
                    false => Some(outage),
                };
                if let Some(outage) = displaced {
                    self.keep(outage);
                }
            }
        }
    }

    fn begin(&mut self, key: String, record: &Record<'_>, from: SystemTime) {
        if self.open.len() >= MAX_OPEN {
            self.total += 1;
            self.is_cut = true;
            return;
        }
        let site = kept(record.origin());
        let earlier = self.take_stopped(&site, record.time.0);
        self.total += u64::from(earlier.is_none());
        let outage = Outage {
            site,
            from: earlier.as_ref().map_or(from, |earlier| earlier.from.min(from)),
            last: record.time.0,
            until: None,
            failures: 1 + earlier.map_or(0, |earlier| earlier.failures),
            error: record
                .error
                .as_ref()
                .map_or_else(String::new, |error| kept(error.as_str())),
        };
        self.open.insert(key, outage);
    }

    fn end(&mut self, key: &str, until: SystemTime) {
        if let Some(mut outage) = self.open.remove(key) {
            outage.until = Some(until);
            self.keep(outage);
        }
    }

    fn keep(&mut self, outage: Outage) {
        self.ended.push(outage);
        if self.ended.len() >= 2 * MAX_ENDED {
            self.is_cut = true;
            self.ended.sort_by_key(|outage| std::cmp::Reverse(outage.length()));
            self.ended.truncate(MAX_ENDED);
        }
    }

    pub(super) fn longest(&self) -> Vec<&Outage> {
        let mut all: Vec<_> = self
            .ended
            .iter()
            .chain(self.open.values())
            .chain(self.stopped.values())
            .collect();
        all.sort_by(|one, other| (other.length(), &one.site, one.from).cmp(&(one.length(), &other.site, other.from)));
        all
    }
}

// === impl Outage ===

impl Outage {
    pub(super) fn length(&self) -> std::time::Duration {
        let end = self.until.unwrap_or(self.last);
        end.duration_since(self.from).unwrap_or_default()
    }
}

// === impl SiteChanges ===

impl SiteChanges {
    /// Adds the change if the record of a fetch, or of a copy from another robotgate, says that the text is new.
    pub(super) fn add_fetch(&mut self, record: &Record<'_>) {
        if record.new_text
            && let (Some(before), Some(after)) = (&record.held_sha256, &record.robots_sha256)
        {
            self.add(record, Some(before), Some(after));
        }
    }

    /// Adds the change that a `robots-changed` record describes. The record of the fetch may have added it already.
    pub(super) fn add_change(&mut self, record: &Record<'_>) {
        let before = record.robots_sha256_before.as_ref();
        let after = record.robots_sha256.as_ref();
        self.add(record, before, after);
    }

    fn add(&mut self, record: &Record<'_>, before: Option<&Text<'_>>, after: Option<&Text<'_>>) {
        let change = SiteChange {
            time: record.time.0,
            site: kept(record.origin()),
            before: before.map(|before| kept(before.as_str())),
            after: after.map(|after| kept(after.as_str())),
            rules: record.rules_added.zip(record.rules_removed),
        };
        let mut last = self.kept.iter_mut().rev().take(NEAR);
        let is_same = |known: &&mut SiteChange| {
            (&known.site, &known.before, &known.after) == (&change.site, &change.before, &change.after)
        };
        // The record of a fetch and the `robots-changed` record after it describe the same change. List it only once.
        if let Some(known) = last
            .find(is_same)
            .filter(|known| known.rules.is_none() || change.rules.is_none())
        {
            known.rules = known.rules.or(change.rules);
            return;
        }
        self.total += 1;
        self.kept.push_back(change);
        if self.kept.len() > MAX_CHANGES {
            self.kept.pop_front();
        }
    }

    pub(super) fn newest(&self) -> Vec<&SiteChange> {
        let mut all: Vec<_> = self.kept.iter().collect();
        all.sort_by_key(|change| std::cmp::Reverse(change.time));
        all
    }
}

fn key(record: &Record<'_>, log: usize) -> String {
    run(record, log) + SEPARATOR + &kept(record.origin())
}

/// Returns the run of robotgate that wrote `record`, or the number of the log file if the record does not name the run.
fn run(record: &Record<'_>, log: usize) -> String {
    match &record.instance {
        Some(instance) => kept(instance.as_str()),
        None => format!("log {log}"),
    }
}

const MAX_OPEN: usize = 50_000;
const MAX_ENDED: usize = 5_000;
const MAX_CHANGES: usize = 5_000;
/// How many of the last changes are searched for one that equals the change to add.
const NEAR: usize = 64;
