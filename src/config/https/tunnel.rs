//! `[[https.tunnel]]`: single hosts that are let through unseen, each with a reason and an end.
//!
//! It takes the time as a parameter and never looks at the clock.

use std::{sync::Arc, time::SystemTime};

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};
use toml::Spanned;
use toml::value::{Datetime, Offset};

use crate::config::check::Checker;
use crate::config::written::{self, Table};
use crate::origin::HostPattern;

/// A host that is let through as a tunnel until a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelException {
    /// Which hosts are meant.
    pub host: HostPattern,
    /// Why, in the operator's words; never empty.
    pub reason: Arc<str>,
    /// The first moment at which the entry holds no more.
    pub until: SystemTime,
}

// === impl TunnelException ===

impl TunnelException {
    /// Whether the entry holds at this time.
    pub fn holds(&self, now: SystemTime) -> bool {
        now < self.until
    }

    pub(super) fn check(entry: Spanned<Table<written::Tunnel>>, checker: &mut Checker<'_>) -> Option<Self> {
        let table = entry.span();
        let Table(written) = entry.into_inner();
        let host = checker
            .required(written.host, &table, ("host", r#""pinned.example""#))
            .and_then(|text| checker.parsed(&text, str::parse::<HostPattern>));
        let reason = checker.required(
            written.reason,
            &table,
            ("reason", r#""its client trusts one certificate only""#),
        );
        let reason = reason.and_then(|text| checker.parsed(&text, parse_reason));
        let until = checker
            .required(written.until, &table, ("until", "2027-01-31"))
            .and_then(|until| {
                end(until.get_ref())
                    .map_err(|message| checker.complain(until.span(), message))
                    .ok()
            });
        Some(Self {
            host: host?,
            reason: reason?.into(),
            until: until?,
        })
    }
}

fn parse_reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("an entry without a reason cannot be judged later; write why this host is let through".to_owned()),
        reason => Ok(reason.to_owned()),
    }
}

/// The first moment past the end: a date holds through its day, in UTC.
fn end(written: &Datetime) -> Result<SystemTime, String> {
    let unusable =
        || format!("{written} does not say when; write a date like 2027-01-31, which holds through that day in UTC");
    let date = written.date.ok_or_else(unusable)?;
    let date = Month::try_from(date.month)
        .and_then(|month| Date::from_calendar_date(i32::from(date.year), month, date.day))
        .map_err(|_| unusable())?;
    let (date_time, offset) = match (written.time, written.offset) {
        (None, _) => (date.next_day().ok_or_else(unusable)?.midnight(), UtcOffset::UTC),
        (Some(_), None) => {
            return Err(format!(
                "{written} has no time zone; write \"Z\" behind it, or the date alone"
            ));
        }
        (Some(time), Some(offset)) => {
            let (second, nano) = (time.second.unwrap_or(0), time.nanosecond.unwrap_or(0));
            // A leap second ends with its minute; this calendar has none.
            let time = Time::from_hms_nano(time.hour, time.minute, second.min(59), nano).map_err(|_| unusable())?;
            let minutes = match offset {
                Offset::Z => 0,
                Offset::Custom { minutes } => i32::from(minutes),
            };
            let offset = UtcOffset::from_whole_seconds(minutes * 60).map_err(|_| unusable())?;
            (PrimitiveDateTime::new(date, time), offset)
        }
    };
    let moment: OffsetDateTime = date_time.assume_offset(offset);
    Ok(moment.into())
}
