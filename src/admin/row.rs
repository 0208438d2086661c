//! What is known of one origin, for a person or a program, from what the file has of it, a policy
//! and a time.
//!
//! Fields that the audit log has, too, are called as there. No clock is read and no file opened.

use std::{borrow::Cow, time::SystemTime};

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use crate::{
    copy::{Answer, Due, OriginState, Policy, RobotsCopy, Sha256},
    origin::Origin,
    store::Record,
    text::{Timestamp, plain_message},
};

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub origin: String,
    /// What holds: `rules`; `expired`, where the robots.txt is fetched before the next decision; or the
    /// reason why no file decides or only an old one does.
    pub holds: Cow<'static, str>,
    /// Whether the origin is asked anew when it is next needed: `no`, `background` (what is known holds
    /// meanwhile) or `now`.
    pub due: Due,
    pub robots_status: Option<u16>,
    /// When the copy that decides was received or last confirmed; where there is none, when the last
    /// fetch ended.
    pub robots_fetched: Option<Timestamp>,
    /// When the origin is asked again, if it is needed then.
    pub robots_expires: Option<Timestamp>,
    /// When it first failed of the times that it failed without an answer between them.
    pub failing_since: Option<Timestamp>,
    /// Of the copy that decides, or did until its time was over.
    pub robots_sha256: Option<Sha256>,
    /// How long the text of that copy is.
    pub bytes: Option<usize>,
    /// The last failure, while no answer has come since.
    pub robots_error: Option<String>,
    /// When the last answer came, whether it holds still or not.
    pub answered: Option<Timestamp>,
    /// Of the last copy that had rules, whether it decides or not.
    pub last_copy_sha256: Option<Sha256>,
}

/// All that is known of an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    #[serde(flatten)]
    pub row: Row,
    /// Whose reading of robots.txt all of this is in.
    pub profile: Cow<'static, str>,
    /// When the origin was last asked, whatever came of it.
    pub asked: Option<Timestamp>,
    /// By which the origin is asked whether its robots.txt has changed.
    pub etag: Option<String>,
    /// The last copy that had rules, whether it decides or not.
    pub copy: Option<CopyDetail>,
}

/// A copy, with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyDetail {
    pub robots_sha256: Sha256,
    pub robots_status: u16,
    /// When it was received.
    pub robots_fetched: Timestamp,
    pub bytes: usize,
    /// The text, where it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<String>,
    /// The text in base64, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots_b64: Option<String>,
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

    /// Of a state in the reading of `policy`, whose last copy has a text of so many `bytes`.
    fn new(origin: &str, state: &OriginState, bytes: Option<usize>, policy: &Policy, now: SystemTime) -> Self {
        let answer = state.answer(now, policy);
        let copy = match answer {
            Answer::Unreachable(None) => state.current(),
            _ => answer.copy(),
        };
        let ground = state.ground(now, policy);
        let error = state.failure().map(|failure| failure.error.to_string());
        Self {
            origin: origin.to_owned(),
            holds: answer.holds().as_str().into(),
            due: state.due(now, policy),
            robots_status: ground.status,
            robots_fetched: ground.fetched.map(Timestamp),
            robots_expires: ground.expires.map(Timestamp),
            failing_since: state.failing_since().map(Timestamp),
            robots_sha256: copy.map(|copy| copy.sha256),
            // The last copy is the only one that can decide.
            bytes: bytes.filter(|_| copy.is_some()),
            robots_error: error.map(|error| plain_message(&error, MAX_ERROR).into_owned()),
            answered: state.answered().map(Timestamp),
            last_copy_sha256: state.last_copy().map(|copy| copy.sha256),
        }
    }
}

// === impl Detail ===

impl Detail {
    /// What is known of `origin` at `now`.
    pub fn of(origin: &Origin, state: OriginState, policy: &Policy, now: SystemTime) -> Self {
        let state = under(state, policy);
        let bytes = state.last_copy().map(|copy| copy.robots.body().len());
        Self {
            row: Row::new(&origin.to_string(), &state, bytes, policy, now),
            profile: policy.profile.as_str().into(),
            asked: state.asked().map(Timestamp),
            etag: state.etag().map(str::to_owned),
            copy: state.last_copy().map(CopyDetail::of),
        }
    }
}

// === impl CopyDetail ===

impl CopyDetail {
    fn of(copy: &RobotsCopy) -> Self {
        let body = copy.robots.body();
        let robots = str::from_utf8(body).ok().map(str::to_owned);
        Self {
            robots_sha256: copy.sha256,
            robots_status: copy.status,
            robots_fetched: Timestamp(copy.fetched),
            bytes: body.len(),
            robots_b64: robots.is_none().then(|| BASE64.encode(body)),
            robots,
        }
    }

    /// The text, byte for byte.
    pub fn text(&self) -> Cow<'_, [u8]> {
        match (&self.robots, &self.robots_b64) {
            (Some(text), _) => text.as_bytes().into(),
            // What is no base64 was not written by this.
            (None, Some(encoded)) => BASE64.decode(encoded.as_bytes()).unwrap_or_default().into(),
            (None, None) => Cow::default(),
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
