//! What is known about one origin, as the API and `robotgate cache` show it. Reads no clock and opens no file.

use std::{borrow::Cow, time::SystemTime};

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use crate::{
    copy::{Answer, AnswerKind, Due, Location, OriginState, Policy, Sha256},
    origin::Origin,
    robots::{StatementKind, content_signal, content_usage, split_path, statements},
    store::{OriginRecord, VerdictCounts},
    text::{Timestamp, plain, plain_message},
};

/// What is known about an origin, as a row of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub origin: String,
    /// What is known about the robots.txt, as one word: see [`AnswerKind`].
    pub holds: Cow<'static, str>,
    /// `holds` as a sentence for people.
    #[serde(default)]
    pub meaning: Cow<'static, str>,
    /// Whether the next request causes a fetch of the robots.txt: `no`, `background` (the request does not wait) or
    /// `now`.
    pub due: Due,
    pub status: Option<u16>,
    /// When the response that applies was received or last confirmed with a 304. If no response applies, this is the
    /// end of the last fetch.
    pub fetched: Option<Timestamp>,
    /// From this time on at the latest, a request causes a new fetch.
    pub expires: Option<Timestamp>,
    /// When fetches began to fail; `None` if the last fetch did not fail.
    pub failing_since: Option<Timestamp>,
    /// The last failure, unless a fetch has succeeded since.
    pub error: Option<String>,
    /// When the last successful fetch ended, even if its result has expired.
    pub answered: Option<Timestamp>,
    /// Size in bytes of the copy that applies, or of an expired copy until the next fetch ends.
    pub bytes: Option<usize>,
    /// Digest of the last copy with rules, even if it does not apply any more.
    pub sha256: Option<Sha256>,
    /// `fleet` if another robotgate of the fleet made the last fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Cow<'static, str>>,
    /// How many decisions had each verdict since the proxy loaded the origin into memory; `None` if no proxy runs.
    pub verdicts: Option<VerdictCounts>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Page {
    pub(super) origins: Vec<Row>,
    /// Where the next page begins: an origin's name or, in a sorted list, the number of origins before it.
    pub(super) next: Option<String>,
    /// `None` if the list is not sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<u64>,
    /// Whether there was time to read all origins; `None` if the list is not sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) complete: Option<bool>,
}

/// All that is known about an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    #[serde(flatten)]
    pub row: Row,
    pub robots_url: String,
    /// The profile with which this robotgate reads the robots.txt.
    pub profile: Cow<'static, str>,
    /// When the last fetch ended, whether it succeeded or not.
    pub asked: Option<Timestamp>,
    pub etag: Option<String>,
    /// The last copy with rules, even if it does not apply any more.
    pub last_copy: Option<LastCopy>,
    /// The text of the last copy. Bytes that are not UTF-8 are replaced.
    pub robots: Option<String>,
    /// The text in base64, if it is not UTF-8.
    pub robots_b64: Option<String>,
    /// Always false: the proxy keeps no text that is too long to be shown.
    pub robots_truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<SiteUse>,
}

/// What a line of a robots.txt or an entry of a `tdmrep.json` says about the use of content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteUse {
    /// The number of the line in the robots.txt or of the entry in the `tdmrep.json`, from 1.
    pub line: u32,
    /// Empty for a `License` line and for `tdmrep.json`, which name no user-agents.
    pub agents: Vec<String>,
    /// `Content-Signal`, `Content-Usage`, `License` or `tdmrep.json`.
    pub field: Cow<'static, str>,
    /// `None` if the line is about all paths.
    pub path: Option<String>,
    /// The word that names a use, such as `ai-train`; `None` for a `License` line.
    pub key: Option<Cow<'static, str>>,
    pub value: String,
}

/// The last robots.txt copy with rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCopy {
    pub status: u16,
    pub fetched: Timestamp,
    pub bytes: usize,
}

/// The result of forgetting an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgot {
    pub origin: String,
    /// Whether anything was known about the origin.
    pub forgotten: bool,
    /// Whether the fleet's server was told to forget the origin. If not, the other robotgates keep their copies. `None`
    /// without a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_told: Option<bool>,
}

// === impl Row ===

impl Row {
    /// Creates the row for a record of the cache file, with the state of the origin at the time `now`. Returns `None`
    /// if the record is invalid.
    pub fn of(origin: &str, record: OriginRecord, policy: &Policy, now: SystemTime) -> Option<Self> {
        let bytes = record.copy().map(|copy| copy.bytes as usize);
        let state = under(record.outline()?, policy);
        Some(Self::new(origin, &state, bytes, policy, now))
    }

    /// Parses `holds`. Returns `None` for a word that only another version of the proxy knows.
    pub fn kind(&self) -> Option<AnswerKind> {
        AnswerKind::from_word(&self.holds)
    }

    pub(super) fn held(origin: &Origin, state: &OriginState, policy: &Policy, now: SystemTime) -> Self {
        let state = under(state.clone(), policy);
        Self::full(origin, &state, policy, now)
    }

    fn full(origin: &Origin, state: &OriginState, policy: &Policy, now: SystemTime) -> Self {
        let bytes = state.last_copy().map(|copy| copy.robots.body().len());
        Self::new(&origin.to_string(), state, bytes, policy, now)
    }

    /// `state` must have the profile of `policy` (see `under`). `bytes` is the size of the last copy in `state`.
    fn new(origin: &str, state: &OriginState, bytes: Option<usize>, policy: &Policy, now: SystemTime) -> Self {
        let answer = state.answer(now, policy);
        let copy = match answer {
            Answer::Unreachable(None) => state.current(),
            _ => answer.copy(),
        };
        let source_fetch = state.source_fetch(now, policy);
        let error = state.failure().map(|failure| failure.error.to_string());
        Self {
            origin: origin.to_owned(),
            holds: answer.holds().as_str().into(),
            meaning: answer.holds().meaning().into(),
            due: state.due(now, policy),
            status: source_fetch.status,
            fetched: source_fetch.fetched.map(Timestamp),
            expires: source_fetch.expires.map(Timestamp),
            failing_since: state.failing_since().map(Timestamp),
            error: error.map(|error| plain_message(&error, MAX_ERROR).into_owned()),
            answered: state.answered().map(Timestamp),
            // If a copy applies, it is the last copy, so `bytes` is its size.
            bytes: bytes.filter(|_| copy.is_some()),
            sha256: state.last_copy().map(|copy| copy.sha256),
            source: state.is_shared().then_some(Cow::Borrowed("fleet")),
            verdicts: None,
        }
    }
}

// === impl Detail ===

impl Detail {
    /// Creates the details of `origin` at `now`, from the states of its robots.txt and of its `tdmrep.json`.
    pub fn of(
        origin: &Origin,
        state: OriginState,
        tdmrep: Option<&OriginState>,
        policy: &Policy,
        now: SystemTime,
    ) -> Self {
        let state = under(state, policy);
        let body = state.last_copy().map(|copy| copy.robots.body());
        let mut usage = body.map_or_else(Vec::new, |body| SiteUse::all(policy, body));
        if let Some(file) = tdmrep.and_then(|state| state.current()?.tdmrep.as_deref()) {
            usage.extend(file.locations().take(MAX_USES - usage.len()).map(SiteUse::of_location));
        }
        Self {
            row: Row::full(origin, &state, policy, now),
            robots_url: origin.robots_url(),
            profile: policy.profile.as_str().into(),
            asked: state.last_fetch().map(Timestamp),
            etag: state.etag().map(str::to_owned),
            last_copy: state.last_copy().map(|copy| LastCopy {
                status: copy.status,
                fetched: Timestamp(copy.fetched),
                bytes: copy.robots.body().len(),
            }),
            robots: body.map(|body| String::from_utf8_lossy(body).into_owned()),
            robots_b64: (body.filter(|body| str::from_utf8(body).is_err())).map(|body| BASE64.encode(body)),
            robots_truncated: false,
            usage,
        }
    }

    /// Returns the text of the last copy, byte for byte.
    pub fn text(&self) -> Option<Cow<'_, [u8]>> {
        match &self.robots_b64 {
            // The proxy writes only valid base64.
            Some(encoded) => Some(BASE64.decode(encoded.as_bytes()).unwrap_or_default().into()),
            None => Some(self.robots.as_ref()?.as_bytes().into()),
        }
    }
}

// === impl SiteUse ===

impl SiteUse {
    fn of_location(location: Location<'_>) -> Self {
        Self {
            line: location.reservation.entry,
            agents: Vec::new(),
            field: Cow::Borrowed("tdmrep.json"),
            path: Some(plain(location.paths, MAX_TEXT).into_owned()),
            key: Some(Cow::Borrowed("tdm-reservation")),
            value: u8::from(location.reservation.reserved).to_string(),
        }
    }

    fn all(policy: &Policy, body: &[u8]) -> Vec<Self> {
        let mut found = Vec::new();
        for statement in statements(policy.profile, body) {
            let agents = || statement.agents.iter().take(MAX_AGENTS);
            let of = |path: &[u8], key: Option<&'static str>, value: &str| Self {
                line: statement.line,
                agents: agents()
                    .map(|agent| plain(&agent.name(), MAX_TEXT).into_owned())
                    .collect(),
                field: statement.kind.as_str().into(),
                path: (!path.is_empty()).then(|| plain(&String::from_utf8_lossy(path), MAX_TEXT).into_owned()),
                key: key.map(Cow::Borrowed),
                value: plain(value, MAX_TEXT).into_owned(),
            };
            let value = statement.value.as_bytes();
            match statement.kind {
                StatementKind::License => found.push(of(b"", None, &statement.value)),
                // A line before the first `User-agent` line applies to no bot.
                _ if statement.agents.is_empty() => {}
                StatementKind::ContentSignal => found.extend(content_signal(value).map(|(label, allowed)| {
                    let value = if allowed { "yes" } else { "no" };
                    of(b"", Some(label.name), value)
                })),
                StatementKind::ContentUsage => {
                    let (path, value) = split_path(value);
                    found.extend(content_usage(value).map(|(label, allowed)| {
                        let value = if allowed { "y" } else { "n" };
                        of(path, Some(label.name), value)
                    }));
                }
                StatementKind::Sitemap | StatementKind::CrawlDelay => {}
            }
            if found.len() >= MAX_USES {
                found.truncate(MAX_USES);
                break;
            }
        }
        found
    }
}

/// Converts a saved state to the profile of the policy, because `robots.profile` can have changed since.
pub(super) fn under(state: OriginState, policy: &Policy) -> OriginState {
    match state.is_under(policy) {
        true => state,
        false => state.under(policy),
    }
}

/// Maximum length of an error's text, in bytes.
const MAX_ERROR: usize = 512;
/// Maximum number of `SiteUse` values that are shown, and of user-agents in each.
const MAX_USES: usize = 200;
const MAX_AGENTS: usize = 20;
/// Maximum length of a text from a robots.txt, in bytes.
const MAX_TEXT: usize = 200;

#[cfg(test)]
mod tests;
