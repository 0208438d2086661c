//! What is known of one origin, for a person or a program, from what the file has of it, a policy
//! and a time: the answers of the API, and of `robotgate cache`.
//!
//! No clock is read and no file opened.

use std::{borrow::Cow, time::SystemTime};

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use crate::{
    copy::{Answer, Due, OriginState, Policy, Sha256},
    origin::Origin,
    store::{Record, VerdictCounts},
    text::{Timestamp, plain_message},
};

/// What is known of an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub origin: String,
    /// What holds: `rules`; `expired`, where the robots.txt is fetched before the next decision; or the
    /// reason why no file decides or only an old one does.
    pub holds: Cow<'static, str>,
    /// Whether the origin is asked anew when it is next needed: `no`, `background` (what is known holds
    /// meanwhile) or `now`.
    pub due: Due,
    pub status: Option<u16>,
    /// When the copy that decides was received or last confirmed; where there is none, when the last
    /// fetch ended.
    pub fetched: Option<Timestamp>,
    /// When the origin is asked again, if it is needed then.
    pub expires: Option<Timestamp>,
    /// When it first failed of the times that it failed without an answer between them.
    pub failing_since: Option<Timestamp>,
    /// The last failure, while no answer has come since.
    pub error: Option<String>,
    /// When the last answer came, whether it holds still or not.
    pub answered: Option<Timestamp>,
    /// How long the text is of the copy that decides, or did until its time was over.
    pub bytes: Option<usize>,
    /// Of the last copy that had rules, whether it decides or not.
    pub sha256: Option<Sha256>,
    /// What was decided since the origin came into the memory of the proxy; `None` where none runs.
    pub verdicts: Option<VerdictCounts>,
}

/// A part of the list of all origins.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Page {
    pub(super) origins: Vec<Row>,
    /// Where the next part begins; `None` where this is the last.
    pub(super) next: Option<String>,
}

/// All that is known of an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    #[serde(flatten)]
    pub row: Row,
    pub robots_url: String,
    /// Whose reading of robots.txt all of this is in.
    pub profile: Cow<'static, str>,
    /// When the origin was last asked, whatever came of it.
    pub asked: Option<Timestamp>,
    /// By which the origin is asked whether its robots.txt has changed.
    pub etag: Option<String>,
    /// The last copy that had rules, whether it decides or not.
    pub last_copy: Option<LastCopy>,
    /// Its text. What is not UTF-8 is replaced.
    pub robots: Option<String>,
    /// The text in base64, where it is not UTF-8.
    pub robots_b64: Option<String>,
    /// Whether there is more of the text, which there never is: the proxy keeps no more than this shows.
    pub robots_truncated: bool,
}

/// The last copy that had rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCopy {
    pub status: u16,
    /// When it was received.
    pub fetched: Timestamp,
    pub bytes: usize,
}

/// What came of forgetting an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgot {
    pub origin: String,
    /// Whether anything was known of it.
    pub forgotten: bool,
}

// === impl Row ===

impl Row {
    /// What the file has of `origin`, at `now`. `None` for what cannot be understood, which the proxy
    /// does not know either.
    pub fn of(origin: &str, record: Record, policy: &Policy, now: SystemTime) -> Option<Self> {
        let bytes = record.copy().map(|copy| copy.bytes as usize);
        let state = under(record.outline()?, policy);
        Some(Self::new(origin, &state, bytes, policy, now))
    }

    /// What memory has of it.
    pub(super) fn held(origin: &Origin, state: &OriginState, policy: &Policy, now: SystemTime) -> Self {
        let state = under(state.clone(), policy);
        Self::full(origin, &state, policy, now)
    }

    fn full(origin: &Origin, state: &OriginState, policy: &Policy, now: SystemTime) -> Self {
        let bytes = state.last_copy().map(|copy| copy.robots.body().len());
        Self::new(&origin.to_string(), state, bytes, policy, now)
    }

    /// Of a state in the reading of `policy`, whose last copy has a text of so many `bytes`.
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
            due: state.due(now, policy),
            status: source_fetch.status,
            fetched: source_fetch.fetched.map(Timestamp),
            expires: source_fetch.expires.map(Timestamp),
            failing_since: state.failing_since().map(Timestamp),
            error: error.map(|error| plain_message(&error, MAX_ERROR).into_owned()),
            answered: state.answered().map(Timestamp),
            // The last copy is the only one that can decide.
            bytes: bytes.filter(|_| copy.is_some()),
            sha256: state.last_copy().map(|copy| copy.sha256),
            verdicts: None,
        }
    }
}

// === impl Detail ===

impl Detail {
    /// What is known of `origin` at `now`.
    pub fn of(origin: &Origin, state: OriginState, policy: &Policy, now: SystemTime) -> Self {
        let state = under(state, policy);
        let body = state.last_copy().map(|copy| copy.robots.body());
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
        }
    }

    /// The text of the last copy, byte for byte.
    pub fn text(&self) -> Option<Cow<'_, [u8]>> {
        match &self.robots_b64 {
            // What is no base64 was not written by this.
            Some(encoded) => Some(BASE64.decode(encoded.as_bytes()).unwrap_or_default().into()),
            None => Some(self.robots.as_ref()?.as_bytes().into()),
        }
    }
}

/// The state as the proxy would take it, which a change of `robots.profile` makes another one.
pub(super) fn under(state: OriginState, policy: &Policy) -> OriginState {
    match state.is_under(policy) {
        true => state,
        false => state.under(policy),
    }
}

/// Bytes of the text of an error.
const MAX_ERROR: usize = 512;

#[cfg(test)]
mod tests;
