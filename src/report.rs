//! Summarises audit logs for people. A report takes a limited amount of memory, however long the logs are. This module
//! does no I/O and reads no clock.

mod csv;
mod document;
mod events;
mod forwarded;
mod html;
mod line;
mod markdown;
mod sites;
mod text;
mod timeline;
mod top;
mod waits;

use std::time::SystemTime;

pub use self::{csv::to_csv, document::Document, html::to_html, line::time_of, markdown::to_markdown, text::to_text};
use self::{
    events::Events,
    forwarded::Forwarded,
    line::{LogLine, Record},
    sites::{Outages, SiteChanges},
    timeline::Timeline,
    top::Top,
    waits::Waits,
};
use crate::{
    decision::{Handling, Reason},
    parallel::in_parallel,
    text::plain_message,
};

/// The property by which a table of the report counts requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    Bot,
    Site,
    Reason,
    Rule,
}

/// The time that a report covers. `since` is included, `until` is not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Period {
    pub since: Option<SystemTime>,
    pub until: Option<SystemTime>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OutcomeCounts {
    pub(crate) requests: u64,
    /// Requests that robotgate did not forward, or whose response it withheld because the response forbids what the bot
    /// uses content for.
    pub(crate) refused: u64,
    /// Requests that robotgate forwarded although the verdict was not `allow`.
    pub(crate) not_enforced: u64,
    /// Requests with the reason `exempt`.
    pub(crate) exempt: u64,
}

/// What a report has read from the logs so far.
#[derive(Debug, Default)]
pub struct Report {
    period: Period,
    lines: Lines,
    /// The number of the log file that is being read.
    log: usize,
    decided: Option<(SystemTime, SystemTime)>,
    total: OutcomeCounts,
    bots: Top,
    sites: Top,
    reasons: Top,
    /// The requests that a rule allowed or disallowed, by rule and site.
    rules: Top,
    /// The refused requests, by site and reason.
    refused: Top,
    /// The refused requests, by bot and reason.
    refused_bots: Top,
    /// The forwarded requests whose verdict was not `allow`, by bot and reason.
    not_enforced: Top,
    /// The forwarded requests to which an exemption or an `[[https.tunnel]]` entry applied, by its text and by bot.
    exemptions: Top,
    errors: Top,
    completions: u64,
    /// Bytes of content received from clients, and sent to clients.
    bytes: (u64, u64),
    fetches: u64,
    failed_fetches: u64,
    outages: Outages,
    changes: SiteChanges,
    waits: Waits,
    events: Events,
    timeline: Timeline,
    forwarded: Forwarded,
}

#[derive(Debug, Clone, Copy, Default)]
struct Lines {
    read: u64,
    /// Lines that are no valid record.
    unreadable: u64,
    empty: u64,
    /// Lines that somebody put in the place of erased ones (see `docs/seal.md`).
    erased: u64,
    /// Lines whose time is not in the period.
    outside: u64,
}

// === impl Period ===

impl Period {
    pub fn contains(&self, time: SystemTime) -> bool {
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

// === impl OutcomeCounts ===

impl OutcomeCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.not_enforced += other.not_enforced;
        self.exempt += other.exempt;
    }

    pub(crate) fn forwarded(&self) -> u64 {
        self.requests - self.refused
    }

    fn of(record: &Record<'_>) -> Self {
        let handling = Handling::of(record.verdict() == "allow", record.forwarded.unwrap_or_default());
        Self {
            requests: 1,
            refused: u64::from(handling == Handling::Refused),
            not_enforced: u64::from(handling == Handling::NotEnforced),
            exempt: u64::from(record.reason() == "exempt"),
        }
    }

    fn one() -> Self {
        Self {
            requests: 1,
            ..Self::default()
        }
    }
}

// === impl Report ===

impl Report {
    pub fn new(period: Period) -> Self {
        Self {
            period,
            ..Self::default()
        }
    }

    /// Begins the next log file. If its lines do not say which run of robotgate wrote them, they count as lines of one
    /// run.
    pub fn next_log(&mut self) {
        self.log += 1;
    }

    /// Returns whether the logs have lines, but not one valid record.
    pub fn has_no_record(&self) -> bool {
        self.lines.unreadable > 0 && self.lines.unreadable == self.lines.read - self.lines.empty
    }

    /// Adds the next lines of a log, parsed on all cores. Pass some thousand lines at a time.
    pub fn add(&mut self, lines: &[&[u8]]) {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let parsed = in_parallel(cores, lines, |line| LogLine::parse(line));
        self.lines.read += lines.len() as u64;
        for line in &parsed {
            match line {
                LogLine::Record(record) if self.period.contains(record.time.0) => self.add_record(record),
                LogLine::Record(_) => self.lines.outside += 1,
                LogLine::Unreadable => self.lines.unreadable += 1,
                LogLine::Empty => self.lines.empty += 1,
                LogLine::Erased => self.lines.erased += 1,
                LogLine::Other => {}
            }
        }
        self.waits.find_requests(&parsed);
    }

    fn add_record(&mut self, record: &Record<'_>) {
        match record.event() {
            "decision" => self.add_decision(record),
            "withdrawn" => self.withdraw(record),
            "completion" => {
                self.forwarded.remove(record);
                self.completions += 1;
                self.bytes.0 = self.bytes.0.saturating_add(record.bytes_in.unwrap_or_default());
                self.bytes.1 = self.bytes.1.saturating_add(record.bytes_out.unwrap_or_default());
                if let Some(error) = &record.error {
                    self.errors.add([error.as_str(), ""], OutcomeCounts::one());
                }
                self.waits.add(record);
            }
            "robots" | "shared" => {
                if record.event() == "robots" {
                    self.fetches += 1;
                    self.failed_fetches += u64::from(record.error.is_some());
                }
                self.outages.add(record, self.log);
                self.changes.add_fetch(record);
            }
            "robots-changed" => self.changes.add_change(record),
            event => {
                if event == "stop" {
                    self.outages.stop(record, self.log);
                }
                self.events.add(record);
            }
        }
    }

    fn add_decision(&mut self, record: &Record<'_>) {
        let counts = OutcomeCounts::of(record);
        let time = record.time.0;
        let (first, last) = self.decided.unwrap_or((time, time));
        self.decided = Some((first.min(time), last.max(time)));
        self.total.add(counts);
        self.timeline.add(time, counts);
        let bot = record.bot.as_ref().map_or("-", |bot| bot.as_str());
        let (site, reason) = (record.origin(), record.reason());
        self.bots.add([bot, ""], counts);
        self.sites.add([site, ""], counts);
        self.reasons.add([reason, ""], counts);
        if let Some(rule) = &record.rule {
            self.rules.add([rule.as_str(), site], counts);
        }
        self.forwarded.add(record);
        if counts.refused > 0 {
            self.refused.add([site, reason], counts);
            self.refused_bots.add([bot, reason], counts);
        }
        if counts.not_enforced > 0 {
            self.not_enforced.add([bot, reason], counts);
        }
        let exemption = match (&record.exemption, &record.exception) {
            (Some(exemption), _) => Some(exemption.as_str()),
            (None, Some(exception)) => Some(exception.as_str()),
            // A line of another version of robotgate may not say what exempted the request.
            (None, None) => (counts.exempt > 0).then_some("exempt"),
        };
        if let Some(exemption) = exemption.filter(|_| counts.refused == 0) {
            self.exemptions.add([exemption, bot], counts);
        }
    }

    /// Counts a request as refused instead of forwarded, because the site's response forbids what the bot uses content
    /// for.
    fn withdraw(&mut self, record: &Record<'_>) {
        let Some(request) = self.forwarded.remove(record) else {
            return;
        };
        let refused = OutcomeCounts {
            refused: 1,
            ..OutcomeCounts::default()
        };
        self.total.add(refused);
        self.timeline.add(request.time, refused);
        self.bots.refuse_one([&request.bot, ""]);
        self.sites.refuse_one([&request.site, ""]);
        let (reason, one) = (Reason::Usage.as_str(), OutcomeCounts { requests: 1, ..refused });
        self.refused.add([&request.site, reason], one);
        self.refused_bots.add([&request.bot, reason], one);
        self.reasons.remove_one([&request.reason, ""]);
        self.reasons.add([reason, ""], one);
        if let Some(rule) = &request.rule {
            self.rules.remove_one([rule, &request.site]);
        }
    }
}

/// Escapes what is unsafe for a terminal, and limits the length.
fn kept(text: &str) -> String {
    plain_message(text, MAX_TEXT).into_owned()
}

/// Maximum length of a text in a report, in bytes.
const MAX_TEXT: usize = 1024;
