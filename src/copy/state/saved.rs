//! The state of an origin in the form in which it is saved across restarts. The text of its robots.txt is stored
//! separately, under its SHA-256. A restored state gives the same answers as the saved one.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{AnswerKind, Content, Failure, FailureSeries, FetchError, LastResponse, OriginState, RobotsCopy};
use crate::{
    copy::{Sha256, SiteDocument},
    robots::{self, Profile},
    text::{micros, micros_since_1970},
};

/// A saved [`OriginState`]. Times are microseconds since 1970 in UTC; durations are microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Saved {
    profile: Profile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered: Option<SavedAnswer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing: Option<SavedFailing>,
    /// The last copy with rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<SavedCopy>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
}

/// A saved copy, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SavedCopy {
    pub sha256: Sha256,
    pub bytes: u32,
    fetched: u64,
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<Box<str>>,
    #[serde(rename = "whole", default, skip_serializing_if = "std::ops::Not::not")]
    complete: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tdmrep: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SavedAnswer {
    /// `rules`, `no-robots` or `soft-404`. With `rules`, [`Saved::copy`] is the copy of this response.
    meaning: AnswerKind,
    status: u16,
    fetched: u64,
    life: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SavedFailing {
    since: u64,
    attempts: u32,
    tried: u64,
    retry: u64,
    /// HTTP status, if the failure was a response with an error status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    error: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    prohibited: bool,
}

// === impl OriginState ===

impl OriginState {
    /// Converts the state for saving.
    pub fn save(&self) -> Saved {
        Saved {
            profile: self.profile,
            shared: self.shared,
            answered: self.answered.as_ref().map(|answered| SavedAnswer {
                meaning: answered.answer().holds(),
                status: answered.status,
                fetched: micros_since_1970(answered.fetched),
                life: micros(answered.life),
            }),
            failing: self.failing.as_ref().map(|failing| SavedFailing {
                since: micros_since_1970(failing.since),
                attempts: failing.attempts,
                tried: micros_since_1970(failing.tried),
                retry: micros(failing.retry),
                status: match failing.last.error {
                    FetchError::Status(status) => Some(status),
                    _ => None,
                },
                error: failing.last.error.to_string(),
                prohibited: failing.last.is_prohibited(),
            }),
            copy: self.last_good.as_deref().map(|copy| SavedCopy {
                sha256: copy.sha256,
                // A copy's size is limited to far less than 4 GiB.
                bytes: u32::try_from(copy.robots.body().len()).unwrap_or(u32::MAX),
                fetched: micros_since_1970(copy.fetched),
                status: copy.status,
                etag: copy.etag.clone(),
                complete: copy.complete,
                tdmrep: copy.tdmrep.is_some(),
            }),
        }
    }

    /// Returns the text of the last copy with rules. [`save`](Self::save) leaves it out.
    pub fn text(&self) -> Option<&[u8]> {
        self.last_good.as_deref().map(|copy| copy.robots.body())
    }
}

// === impl Saved ===

impl Saved {
    /// Restores a state. `text` is the text of the saved copy, or `None` if no copy was saved. Returns `None` if the
    /// data is damaged.
    pub fn restore(self, text: Option<&[u8]>) -> Option<OriginState> {
        let last_good = match (&self.copy, text) {
            (Some(saved), Some(text)) if text.len() <= saved.max_bytes() && saved.sha256 == Sha256::of(text) => {
                Some(saved.with(self.profile, text))
            }
            (None, None) => None,
            _ => return None,
        };
        self.with(last_good)
    }

    /// Restores the state with an empty copy, for callers that need no text.
    pub fn outline(self) -> Option<OriginState> {
        let last_good = self.copy.as_ref().map(|saved| saved.with(self.profile, b""));
        self.with(last_good)
    }

    fn with(self, last_good: Option<RobotsCopy>) -> Option<OriginState> {
        let last_good = last_good.map(Arc::new);
        let answered = match self.answered {
            None => None,
            Some(answered) => Some(LastResponse {
                meaning: match answered.meaning {
                    AnswerKind::Rules => Content::Rules(last_good.clone()?),
                    AnswerKind::NoRobots => Content::NoRobots,
                    AnswerKind::Soft404 => Content::Soft404,
                    AnswerKind::Expired
                    | AnswerKind::Unreachable
                    | AnswerKind::LastCopy
                    | AnswerKind::UnreachableTooLong
                    | AnswerKind::Egress => return None,
                },
                status: answered.status,
                fetched: time(answered.fetched)?,
                life: Duration::from_micros(answered.life).min(LONGEST),
            }),
        };
        let failing = match self.failing {
            None => None,
            Some(failing) => Some(FailureSeries {
                since: time(failing.since)?,
                attempts: failing.attempts,
                tried: time(failing.tried)?,
                retry: Duration::from_micros(failing.retry).min(LONGEST),
                last: Failure::from(match failing.status {
                    Some(status) => FetchError::Status(status),
                    None if failing.prohibited => FetchError::Prohibited(failing.error),
                    None => FetchError::Earlier(failing.error),
                }),
            }),
        };
        Some(OriginState {
            profile: self.profile,
            answered,
            failing,
            last_good,
            shared: self.shared,
        })
    }
}

// === impl SavedCopy ===

impl SavedCopy {
    /// Returns the maximum length of the text in bytes.
    pub fn max_bytes(&self) -> usize {
        let document = match self.tdmrep {
            true => SiteDocument::TDMREP,
            false => SiteDocument::ROBOTS_TXT,
        };
        // A line end right behind the limit belongs to the text, too.
        document.max_bytes + robots::BEYOND
    }

    fn with(&self, profile: Profile, text: &[u8]) -> RobotsCopy {
        let parse = match self.tdmrep {
            true => RobotsCopy::of_tdmrep,
            false => RobotsCopy::new,
        };
        RobotsCopy {
            sha256: self.sha256,
            status: self.status,
            etag: self.etag.clone(),
            complete: self.complete,
            ..parse(profile, text, time(self.fetched).unwrap_or(SystemTime::UNIX_EPOCH))
        }
    }
}

/// Returns `None` for a time more than 9,000 years after 1970, which only damaged data contains.
fn time(micros: u64) -> Option<SystemTime> {
    let since = Some(Duration::from_micros(micros)).filter(|since| *since < 9000 * LONGEST);
    SystemTime::UNIX_EPOCH.checked_add(since?)
}

/// Longest lifetime of a response, and longest delay before a retry.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
