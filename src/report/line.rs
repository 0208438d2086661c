//! Parses a line of the audit log for a report.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, de::IgnoredAny};

use crate::{audit::EVENTS, seal::erased_entry, text::Timestamp};

/// A record of the log, of any kind, with all fields that a report uses. `docs/audit-log.md` describes the fields.
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
    /// Set only if the bot has purposes.
    pub(super) usage: Option<IgnoredAny>,
    // Fields of the records of completions. The records of fetches also have `error`.
    #[serde(borrow)]
    pub(super) error: Option<Text<'a>>,
    pub(super) bytes_in: Option<u64>,
    pub(super) bytes_out: Option<u64>,
    pub(super) robots_wait_us: Option<u64>,
    pub(super) pace_wait_us: Option<u64>,
    // Fields of the records of fetches.
    #[serde(borrow)]
    pub(super) holds: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) held_sha256: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) robots_sha256: Option<Text<'a>>,
    #[serde(default)]
    pub(super) new_text: bool,
    pub(super) failing_since: Option<Timestamp>,
    // Fields of the records of changes of a robots.txt.
    #[serde(borrow)]
    pub(super) robots_sha256_before: Option<Text<'a>>,
    pub(super) rules_added: Option<u64>,
    pub(super) rules_removed: Option<u64>,
    // Fields of the records about robotgate itself.
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

/// A text that borrows from the line unless it contains escapes. serde would copy an `Option<Cow<str>>`.
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Debug)]
pub(super) enum LogLine<'a> {
    Record(Box<Record<'a>>),
    /// A record of an unknown kind that does not fit into [`Record`].
    Other,
    /// A line that somebody put in the place of an erased one (see `docs/seal.md`).
    Erased,
    Empty,
    Unreadable,
}

#[derive(Deserialize)]
struct Any<'a> {
    #[serde(borrow)]
    event: Text<'a>,
    time: Timestamp,
}

// === impl LogLine ===

impl<'a> LogLine<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Self {
        match serde_json::from_slice::<Record<'_>>(line) {
            Ok(record) if record.is_plausible() => Self::Record(Box::new(record)),
            Ok(_) => Self::Unreadable,
            Err(_) if line.trim_ascii().is_empty() => Self::Empty,
            Err(_) if erased_entry(line.trim_ascii_end()).is_some() => Self::Erased,
            // A record of an unknown kind may use a known field name with another type.
            Err(_) => match serde_json::from_slice::<Any<'_>>(line) {
                Ok(any) if !EVENTS.contains(&any.event.as_str()) => Self::Other,
                _ => Self::Unreadable,
            },
        }
    }
}

/// Returns the time of a log line, or `None` if the line is no record with a valid time.
pub fn time_of(line: &[u8]) -> Option<SystemTime> {
    serde_json::from_slice::<Any<'_>>(line).ok().map(|any| any.time.0)
}

// === impl Record ===

impl Record<'_> {
    /// Returns whether all times are between 1970 and 9999 and, if the record is a decision, all required fields are
    /// there.
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

    /// Returns the origin, or `-` if there is none.
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

/// Time from 1970 to the start of the year 10000.
const END: Duration = Duration::from_secs(253_402_300_800);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_record_of_a_known_kind_is_unreadable() {
        let line = |event: &str| format!(r#"{{"event":"{event}","time":"2026-11-22T08:00:00Z","error":7}}"#);
        for event in EVENTS {
            assert!(
                matches!(LogLine::parse(line(event).as_bytes()), LogLine::Unreadable),
                "{event}"
            );
        }
        assert!(matches!(LogLine::parse(line("later").as_bytes()), LogLine::Other));
        let erased =
            br#"{"event":"erased","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}"#;
        assert!(matches!(LogLine::parse(erased), LogLine::Erased));
        let with_text = br#"{"event":"erased","sha256":"9f86","note":"x"}"#;
        assert!(matches!(LogLine::parse(with_text), LogLine::Unreadable));
    }
}
