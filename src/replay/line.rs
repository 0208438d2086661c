//! A line of the audit log, as a replay reads it.

use std::{borrow::Cow, time::SystemTime};

use serde::Deserialize;
use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::Missing;
use crate::{
    audit::RecordHead,
    copy::{Reservation, Sha256},
    decision::{Basis, Reason, TdmrepAnswer, TdmrepState},
    usage::Vocabulary,
};

/// A `decision` record of the log, with the fields that a replay needs. `docs/audit-log.md` describes them.
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
    /// What identified the bot, such as the name of a credential. A line of another version of robotgate can lack this.
    #[serde(default)]
    pub matched_by: Option<String>,
    /// The name of the client's credential, certificate or network. Even old lines without `matched_by` have this.
    #[serde(default)]
    pub credential: Option<String>,
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
    pub version: Option<String>,
    #[serde(default)]
    pub robots_url: Option<String>,
    pub robots_status: Option<u16>,
    pub robots_sha256: Option<Sha256>,
    pub robots_error: Option<String>,
    /// A line of another version of robotgate can lack this.
    #[serde(default)]
    pub config_sha256: Option<Sha256>,
    /// A line of another version of robotgate can lack this.
    #[serde(default)]
    pub usage: Option<LoggedUsage>,
}

/// The field `usage` of a `decision` record.
#[derive(Debug, Clone, Deserialize)]
pub struct LoggedUsage {
    pub purposes: Value,
    pub said: Value,
    pub refused: Value,
    /// What was known of the site's `tdmrep.json`: a word of [`TdmrepState`], or null if the file did not matter.
    pub tdmrep: Value,
    pub tdmrep_sha256: Option<Sha256>,
}

#[derive(Debug)]
pub(super) enum LoggedLine<'a> {
    Decision(Box<LoggedDecision<'a>>),
    /// A record other than a decision, or an empty line.
    Other,
    Unreadable,
}

// === impl LoggedDecision ===

impl LoggedDecision<'_> {
    /// Returns `None` if this version does not know the reason.
    pub(super) fn basis(&self) -> Option<Basis> {
        Reason::from_word(&self.reason).map(Reason::basis)
    }

    pub(super) fn time(&self) -> Result<SystemTime, Missing> {
        let time = OffsetDateTime::parse(&self.time, &Rfc3339).map_err(|_| Missing::Malformed("time"))?;
        Ok(time.into())
    }

    /// Returns whether the line says what robotgate knew of the site's robots.txt.
    pub(super) fn has_lookup(&self) -> bool {
        self.robots_sha256.is_some() || self.robots_status.is_some() || self.robots_error.is_some()
    }

    pub(super) fn is(&self, reason: Reason) -> bool {
        self.reason == reason.as_str()
    }

    /// Returns whether the line says if the site has a `tdmrep.json`.
    pub(super) fn asked_for_tdmrep(&self) -> bool {
        self.has_tdmrep_state(TdmrepState::Found) || self.has_tdmrep_state(TdmrepState::None)
    }

    pub(super) fn waited_for_tdmrep(&self) -> bool {
        self.has_tdmrep_state(TdmrepState::Pending)
    }

    fn has_tdmrep_state(&self, state: TdmrepState) -> bool {
        let usage = self.usage.as_ref();
        usage.is_some_and(|usage| usage.tdmrep == state.as_str())
    }

    pub(super) fn tdmrep_sha256(&self) -> Option<Sha256> {
        self.usage.as_ref()?.tdmrep_sha256
    }

    /// Returns what the site's `tdmrep.json` said about the URL, or `None` if the line names no such file.
    pub(super) fn tdmrep_answer(&self) -> Option<TdmrepAnswer> {
        let usage = self.usage.as_ref()?;
        let said = usage.said.as_array();
        let statement = said.and_then(|said| {
            said.iter()
                .find(|statement| statement["vocabulary"] == Vocabulary::Tdmrep.as_str())
        });
        let reservation = statement.and_then(|statement| {
            Some(Reservation {
                reserved: statement["value"] == "1",
                entry: statement["entry"].as_u64()?.try_into().ok()?,
            })
        });
        Some(TdmrepAnswer {
            reservation,
            sha256: usage.tdmrep_sha256?,
        })
    }
}

// === impl LoggedLine ===

impl<'a> LoggedLine<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Self {
        if line.trim_ascii().is_empty() {
            return Self::Other;
        }
        // robotgate writes the field `event` first and without escapes, so most other records need not be parsed.
        let event = line
            .strip_prefix(b"{\"event\":\"")
            .and_then(|rest| rest.split(|byte| *byte == b'"').next());
        if event.is_some_and(|event| event != b"decision" && !event.contains(&b'\\'))
            && line.trim_ascii().ends_with(b"}")
        {
            return Self::Other;
        }
        match serde_json::from_slice::<LoggedDecision<'a>>(line) {
            Ok(decision) if decision.event == "decision" => Self::Decision(Box::new(decision)),
            Ok(_) => Self::Other,
            Err(_) => match RecordHead::parse(line).and_then(|record| record.event) {
                Some(event) if event != "decision" => Self::Other,
                _ => Self::Unreadable,
            },
        }
    }
}
