//! A line of the audit log, as a replay reads it.

use std::borrow::Cow;

use serde::Deserialize;

use crate::copy::Sha256;

/// A `decision` record. Fields that a replay does not need are left out. `docs/audit-log.md` describes them.
#[derive(Debug, Clone, Deserialize)]
pub struct LoggedDecision<'a> {
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub verdict: Cow<'a, str>,
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    #[serde(borrow)]
    pub enforcement: Cow<'a, str>,
    pub forwarded: bool,
    pub bot: Option<String>,
    pub user_agent: Option<String>,
    pub agent: Option<String>,
    #[serde(borrow)]
    pub identity: Cow<'a, str>,
    /// Versions up to 0.1 did not write this.
    #[serde(default)]
    pub matched_by: Option<String>,
    /// The client's address, with its port.
    #[serde(borrow)]
    pub client: Cow<'a, str>,
    pub exception: Option<String>,
    pub exemption: Option<String>,
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    #[serde(borrow)]
    pub url: Cow<'a, str>,
    #[serde(borrow)]
    pub origin: Cow<'a, str>,
    pub rule: Option<String>,
    pub line: Option<u32>,
    pub group: Option<String>,
    pub reading: Option<String>,
    pub read_as: Option<String>,
    #[serde(default)]
    pub robots_url: Option<String>,
    pub robots_status: Option<u16>,
    pub robots_sha256: Option<Sha256>,
    pub robots_error: Option<String>,
    /// Versions up to 0.1 did not write this.
    #[serde(default)]
    pub config_sha256: Option<Sha256>,
}

/// What a line of the log is.
#[derive(Debug)]
pub(super) enum LoggedLine<'a> {
    Decision(Box<LoggedDecision<'a>>),
    /// Another event, or an empty line.
    Other,
    Unreadable,
}

// === impl LoggedLine ===

impl<'a> LoggedLine<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Self {
        if line.trim_ascii().is_empty() {
            return Self::Other;
        }
        if memchr::memmem::find(line, b"\"decision\"").is_none() {
            let line = line.trim_ascii();
            return match line.starts_with(b"{") && line.ends_with(b"}") {
                true => Self::Other,
                false => Self::Unreadable,
            };
        }
        match serde_json::from_slice::<LoggedDecision<'a>>(line) {
            Ok(decision) if decision.event == "decision" => Self::Decision(Box::new(decision)),
            Ok(_) => Self::Other,
            Err(_) => match serde_json::from_slice::<Event<'a>>(line) {
                Ok(event) if event.event != "decision" => Self::Other,
                _ => Self::Unreadable,
            },
        }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
}
