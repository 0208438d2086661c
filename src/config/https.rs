//! `[https]` and `[[https.tunnel]]`: how robotgate handles a CONNECT, and the certificates that it presents and trusts.
//!
//! This module creates no certificate and reads no clock. The only files that it reads are root certificates.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};
use toml::Spanned;
use toml::value::{Datetime, Offset};

use super::checker::Reads;
use super::table::{NONE, Table, ValueOr as _};
use crate::decision::{HttpsMode, Unverifiable};
use crate::origin::HostPattern;
use crate::{files, pem};

/// The `[https]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Https {
    pub mode: HttpsMode,
    /// How to decide about a tunnel to a site whose robots.txt disallows only some paths.
    pub unverifiable: Unverifiable,
    /// The certificate of the local certificate authority, in PEM. The file may not exist yet.
    pub ca_certificate: PathBuf,
    /// The private key of the certificate authority, in PEM.
    pub ca_key: PathBuf,
    /// Whether robotgate offers HTTP/2 to origins, in addition to HTTP/1.1.
    pub upstream_http2: bool,
    /// Roots that robotgate trusts in addition to those of the system.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// The `[[https.tunnel]]` entries, in the order of the file.
    pub tunnels: Vec<TunnelException>,
}

/// A host that is tunnelled until a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelException {
    pub host: HostPattern,
    /// Why the operator made the exception; never empty.
    pub reason: Arc<str>,
    /// The time from which the host is no longer tunnelled.
    pub until: SystemTime,
}

// === impl Https ===

impl Https {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let checker = table.checker;
        let mode = table.choice_or("mode", HttpsMode::default());
        let unverifiable = table.choice_or("unverifiable", Unverifiable::default());
        let [ca_certificate, ca_key] = ["ca-certificate", "ca-key"].map(|key| table.text(key));
        let key_at = ca_key.as_ref().or(ca_certificate.as_ref()).map(Spanned::span);
        let ca_certificate = table.path_or_state("ca-certificate", ca_certificate, "ca.pem");
        let ca_key = table.path_or_state("ca-key", ca_key, "ca-key.pem");
        if let Some(span) = key_at.filter(|_| ca_certificate == ca_key) {
            checker.complain(
                span,
                "ca-certificate and ca-key name the same file, perhaps by default; change one of them",
            );
        }
        Self {
            mode,
            unverifiable,
            ca_certificate,
            ca_key,
            upstream_http2: table.flag_or("upstream-http2", true),
            extra_roots: roots(table, "extra-roots"),
            tunnels: table.tables("tunnel", TunnelException::read),
        }
    }

    /// Returns the first `[[https.tunnel]]` entry for this host that applies at the time `now`. `host` is a name in
    /// ASCII (punycode) or an IP address, without a port.
    pub fn tunnel_exception(&self, host: &str, now: SystemTime) -> Option<&TunnelException> {
        self.tunnels
            .iter()
            .find(|tunnel| tunnel.holds(now) && tunnel.host.covers(host))
    }
}

// === impl TunnelException ===

impl TunnelException {
    /// Returns whether the host is still tunnelled at `now`.
    pub fn holds(&self, now: SystemTime) -> bool {
        now < self.until
    }

    fn read(table: &Table<'_>) -> Option<Self> {
        let host = table.required("host", r#""pinned.example""#, |table, key| {
            table.parsed(key, str::parse)
        });
        let reason = table.required("reason", r#""its client trusts one certificate only""#, |table, key| {
            table.parsed(key, parse_reason)
        });
        let until = table.required("until", "2027-01-31", Table::date);
        let until = until.and_then(|until| table.checker.taken(until.span(), end(until.get_ref())));
        Some(Self {
            host: host?,
            reason: reason?.into(),
            until: until?,
        })
    }
}

pub(super) fn roots(table: &Table<'_>, key: &'static str) -> Vec<CertificateDer<'static>> {
    let mut roots = Vec::new();
    let files = table.list(key);
    table.has_default(key, NONE);
    for item in files.value_or_default() {
        let Some(path) = table.checker.path(&item) else {
            continue;
        };
        if table.checker.reads == Reads::Nothing {
            continue;
        }
        let read = match files::read(&path) {
            Ok(bytes) => pem::roots(&bytes).map_err(|why| format!("{} {why}", path.display())),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        };
        roots.extend(table.checker.taken(item.span(), read).into_iter().flatten());
    }
    roots
}

fn parse_reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err(
            "the reason is empty; write why robotgate should not intercept this host, so that others can \
            judge it later"
                .to_owned(),
        ),
        reason => Ok(reason.to_owned()),
    }
}

/// A date without a time means the end of that day in UTC.
fn end(raw: &Datetime) -> Result<SystemTime, String> {
    let unusable = || {
        format!(
            "{raw} is not a usable date; write one like 2027-01-31, and the entry applies until the end of that day in UTC"
        )
    };
    let date = raw.date.ok_or_else(unusable)?;
    let date = Month::try_from(date.month)
        .and_then(|month| Date::from_calendar_date(i32::from(date.year), month, date.day))
        .map_err(|_| unusable())?;
    let (date_time, offset) = match (raw.time, raw.offset) {
        (None, _) => (date.next_day().ok_or_else(unusable)?.midnight(), UtcOffset::UTC),
        (Some(_), None) => {
            return Err(format!(
                "{raw} has no time zone; add \"Z\" for UTC, or write the date alone"
            ));
        }
        (Some(time), Some(offset)) => {
            let (second, nano) = (time.second.unwrap_or(0), time.nanosecond.unwrap_or(0));
            // `Time` has no leap seconds, so second 60 becomes second 59.
            let time = Time::from_hms_nano(time.hour, time.minute, second.min(59), nano).map_err(|_| unusable())?;
            let minutes = match offset {
                Offset::Z => 0,
                Offset::Custom { minutes } => i32::from(minutes),
            };
            let offset = UtcOffset::from_whole_seconds(minutes * 60).map_err(|_| unusable())?;
            (PrimitiveDateTime::new(date, time), offset)
        }
    };
    let end_time: OffsetDateTime = date_time.assume_offset(offset);
    Ok(end_time.into())
}
