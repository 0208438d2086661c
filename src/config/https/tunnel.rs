//! `[[https.tunnel]]`: single hosts that are let through unseen, each with a reason and an end.
//!
//! It takes the time as a parameter and never looks at the clock.

use std::net::IpAddr;
use std::time::SystemTime;

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};
use toml::Spanned;
use toml::value::{Datetime, Offset};
use url::Host;

use crate::config::check::Checker;
use crate::config::written::{self, Table};

/// A host that is let through as a tunnel until a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelException {
    /// The host in lower case: a name in ASCII (punycode), without its leading dot, or an IP address without brackets.
    pub host: String,
    /// Whether the names below the host are meant too: it was written with a leading dot.
    pub subdomains: bool,
    /// Why, in the operator's words; never empty.
    pub reason: String,
    /// The first moment at which the entry holds no more.
    pub until: SystemTime,
}

// === impl TunnelException ===

impl TunnelException {
    /// Whether the entry holds at this time.
    pub fn holds(&self, now: SystemTime) -> bool {
        now < self.until
    }

    /// Whether the host is meant, whatever the time; see [`super::Https::tunnel_exception`].
    pub fn covers(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        if host.eq_ignore_ascii_case(&self.host) {
            return true;
        }
        // Bytes, since a host as sent may be cut anywhere.
        let (host, suffix) = (host.as_bytes(), self.host.as_bytes());
        self.subdomains
            && host.len() > suffix.len() + 1
            && host[host.len() - suffix.len() - 1] == b'.'
            && host[host.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
    }

    pub(super) fn check(entry: Spanned<Table<written::Tunnel>>, checker: &mut Checker<'_>) -> Option<Self> {
        let table = entry.span();
        let Table(written) = entry.into_inner();
        let host = checker
            .required(written.host, &table, "host")
            .and_then(|text| checker.parsed(&text, parse_host));
        let reason = checker.required(written.reason, &table, "reason");
        let reason = reason.and_then(|text| checker.parsed(&text, parse_reason));
        let until = checker.required(written.until, &table, "until").and_then(|until| {
            end(until.get_ref())
                .map_err(|message| checker.complain(until.span(), message))
                .ok()
        });
        let (host, subdomains) = host?;
        Some(Self {
            host,
            subdomains,
            reason: reason?,
            until: until?,
        })
    }
}

/// The host, and whether the names below it are meant.
fn parse_host(text: &str) -> Result<(String, bool), String> {
    let (subdomains, bare) = match text.strip_prefix('.') {
        Some(bare) => (true, bare),
        None => (false, text),
    };
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    if let Some(below) = text.strip_prefix("*.") {
        return Err(format!(r#"write ".{below}" for that host and all below it"#));
    }
    if bare.contains("//") {
        return Err(format!(
            r#""{text}" is a URL; write the host alone, like "bank.example""#
        ));
    }
    let shape = r#"write a name like "bank.example", or ".bank.example" for it and all below it"#;
    if let (Ok(IpAddr::V6(address)), false) = (bare.parse(), subdomains) {
        return Ok((address.to_string(), false));
    }
    match Host::parse(bare) {
        Ok(Host::Domain(name)) if !name.is_empty() && !name.contains("..") => Ok((name, subdomains)),
        Ok(Host::Ipv4(address)) if !subdomains => Ok((address.to_string(), false)),
        Ok(Host::Ipv6(address)) if !subdomains => Ok((address.to_string(), false)),
        Err(_) if bare.contains(':') => Err(format!(
            r#""{text}" is more than a host: an entry holds for every port; {shape}"#
        )),
        _ => Err(format!(r#""{text}" is not a host; {shape}"#)),
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
