//! A line of the audit log, as a report reads it.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use serde::Deserialize;

use crate::text::Timestamp;

/// The fields of all events that a report shows. `docs/audit-log.md` describes them.
#[derive(Debug, Deserialize)]
pub(super) struct Record<'a> {
    #[serde(borrow)]
    event: Text<'a>,
    pub(super) time: Timestamp,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    verdict: Option<Text<'a>>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    enforcement: Option<Text<'a>>,
    pub(super) forwarded: Option<bool>,
    #[serde(borrow)]
    pub(super) bot: Option<Text<'a>>,
    #[serde(borrow)]
    identity: Option<Text<'a>>,
    #[serde(borrow)]
    client: Option<Text<'a>>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) exception: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) exemption: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    #[serde(borrow)]
    origin: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) rule: Option<Text<'a>>,
    // Of a completion or a fetch.
    #[serde(borrow)]
    pub(super) error: Option<Text<'a>>,
    pub(super) bytes_in: Option<u64>,
    pub(super) bytes_out: Option<u64>,
    pub(super) robots_wait_us: Option<u64>,
    pub(super) pace_wait_us: Option<u64>,
    // Of a fetch.
    #[serde(borrow)]
    pub(super) holds: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) held_sha256: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) robots_sha256: Option<Text<'a>>,
    #[serde(default)]
    pub(super) new_text: bool,
    pub(super) failing_since: Option<Timestamp>,
    // Of a change.
    #[serde(borrow)]
    pub(super) robots_sha256_before: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) before: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) after: Option<Text<'a>>,
    pub(super) rules_added: Option<u64>,
    pub(super) rules_removed: Option<u64>,
    // Of what happened to robotgate.
    #[serde(borrow)]
    pub(super) instance: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) version: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) config_file: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) cause: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) result: Option<Text<'a>>,
    pub(super) cut_off: Option<u64>,
    #[serde(borrow)]
    pub(super) by: Option<Text<'a>>,
}

/// A text that is borrowed from the line if it has no escapes. In an option, serde copies a plain [`Cow`].
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a line of the log is.
#[derive(Debug)]
pub(super) enum Line<'a> {
    Record(Box<Record<'a>>),
    /// An event of a later version.
    Other,
    Empty,
    Unreadable,
}

/// The fields that every event has.
#[derive(Deserialize)]
struct Any<'a> {
    #[serde(borrow)]
    event: Text<'a>,
    time: Timestamp,
}

// === impl Line ===

impl<'a> Line<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Self {
        match serde_json::from_slice::<Record<'_>>(line) {
            Ok(record) if record.is_plausible() => Self::Record(Box::new(record)),
            Ok(_) => Self::Unreadable,
            Err(_) if line.trim_ascii().is_empty() => Self::Empty,
            // A field of an unknown event may have another type.
            Err(_) => match serde_json::from_slice::<Any<'_>>(line) {
                Ok(any) if !KNOWN.contains(&any.event.as_str()) => Self::Other,
                _ => Self::Unreadable,
            },
        }
    }
}

/// Returns the time of a line of the log, if it has one.
pub fn time_of(line: &[u8]) -> Option<SystemTime> {
    serde_json::from_slice::<Any<'_>>(line).ok().map(|any| any.time.0)
}

// === impl Record ===

impl Record<'_> {
    /// Whether its times have a year from 1970 to 9999, and a decision has all fields that a replay requires.
    fn is_plausible(&self) -> bool {
        let mut times = [Some(&self.time), self.failing_since.as_ref()].into_iter().flatten();
        let required = [
            &self.id,
            &self.verdict,
            &self.reason,
            &self.enforcement,
            &self.identity,
            &self.client,
            &self.method,
            &self.url,
            &self.origin,
        ];
        times.all(|time| {
            time.0
                .duration_since(SystemTime::UNIX_EPOCH)
                .is_ok_and(|since| since < END)
        }) && (self.event() != "decision" || self.forwarded.is_some() && required.iter().all(|field| field.is_some()))
    }

    pub(super) fn event(&self) -> &str {
        self.event.as_str()
    }

    pub(super) fn verdict(&self) -> &str {
        text_of(self.verdict.as_ref())
    }

    pub(super) fn reason(&self) -> &str {
        text_of(self.reason.as_ref())
    }

    /// Returns the site.
    pub(super) fn origin(&self) -> &str {
        text_of(self.origin.as_ref())
    }
}

fn text_of<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("-", Text::as_str)
}

// === impl Text ===

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The time from 1970 to the year 10000.
const END: Duration = Duration::from_secs(253_402_300_800);
const KNOWN: [&str; 9] = [
    "decision",
    "completion",
    "robots",
    "shared",
    "robots-changed",
    "start",
    "stop",
    "reload",
    "forget",
];
