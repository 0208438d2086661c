//! What is known of an origin in a form that outlives the program: everything but the text of its
//! copy, which is kept apart under its digest.
//!
//! Nothing is decided here, and what is restored is what was saved.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{Answered, Failing, Failure, FetchError, Holding, OriginState, RobotsCopy};
use crate::{
    copy::Sha256,
    robots::{LIMIT, Profile},
    text::{micros, micros_since_1970},
};

/// An [`OriginState`] as it is written down. Times are microseconds since 1970 in UTC; durations are
/// microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Saved {
    profile: Profile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered: Option<SavedAnswer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing: Option<SavedFailing>,
    /// The last copy that had rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<SavedCopy>,
}

/// What is known of a copy, but for its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SavedCopy {
    pub sha256: Sha256,
    /// How long the text is.
    pub bytes: u32,
    fetched: u64,
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<Box<str>>,
    /// Versions up to 0.1 did not write it down; then nobody knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    whole: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SavedAnswer {
    meaning: SavedMeaning,
    status: u16,
    fetched: u64,
    life: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SavedMeaning {
    /// Those of the copy.
    Rules,
    NoRobots,
    #[serde(rename = "soft-404")]
    Soft404,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SavedFailing {
    since: u64,
    attempts: u32,
    tried: u64,
    retry: u64,
    /// The status that was the failure, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The failure in words.
    error: String,
    /// Whether it is one of robotgate's own configuration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    prohibited: bool,
}

// === impl OriginState ===

impl OriginState {
    /// What is known, to be written down.
    pub fn save(&self) -> Saved {
        Saved {
            profile: self.profile,
            answered: self.answered.as_ref().map(|answered| SavedAnswer {
                meaning: match answered.meaning {
                    Holding::Rules(_) => SavedMeaning::Rules,
                    Holding::NoRobots => SavedMeaning::NoRobots,
                    Holding::Soft404 => SavedMeaning::Soft404,
                },
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
                // No text is longer than what counts of a robots.txt.
                bytes: u32::try_from(copy.robots.body().len()).unwrap_or(u32::MAX),
                fetched: micros_since_1970(copy.fetched),
                status: copy.status,
                etag: copy.etag.clone(),
                whole: copy.complete,
            }),
        }
    }

    /// The text of the last copy that had rules: what [`save`](Self::save) leaves out.
    pub fn text(&self) -> Option<&[u8]> {
        self.last_good.as_deref().map(|copy| copy.robots.body())
    }
}

// === impl Saved ===

impl Saved {
    /// What was saved, with the text of its copy where it has one. `None` where the two do not fit:
    /// what was damaged counts as not known.
    pub fn restore(self, text: Option<&[u8]>) -> Option<OriginState> {
        let last_good = match (&self.copy, text) {
            (Some(saved), Some(text)) if text.len() <= LIMIT && saved.sha256 == Sha256::of(text) => {
                Some(saved.with(self.profile, text))
            }
            (None, None) => None,
            _ => return None,
        };
        self.with(last_good)
    }

    /// The same with an empty text in place of the copy's, for those who only look at what it is.
    pub fn outline(self) -> Option<OriginState> {
        let last_good = self.copy.as_ref().map(|saved| saved.with(self.profile, b""));
        self.with(last_good)
    }

    fn with(self, last_good: Option<RobotsCopy>) -> Option<OriginState> {
        let last_good = last_good.map(Arc::new);
        let answered = match self.answered {
            None => None,
            Some(answered) => Some(Answered {
                meaning: match answered.meaning {
                    SavedMeaning::Rules => Holding::Rules(last_good.clone()?),
                    SavedMeaning::NoRobots => Holding::NoRobots,
                    SavedMeaning::Soft404 => Holding::Soft404,
                },
                status: answered.status,
                fetched: time(answered.fetched)?,
                life: Duration::from_micros(answered.life).min(LONGEST),
            }),
        };
        let failing = match self.failing {
            None => None,
            Some(failing) => Some(Failing {
                since: time(failing.since)?,
                attempts: failing.attempts,
                tried: time(failing.tried)?,
                // The next run may have another configuration, and can tell at once.
                retry: match failing.prohibited {
                    true => Duration::ZERO,
                    false => Duration::from_micros(failing.retry).min(LONGEST),
                },
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
        })
    }
}

// === impl SavedCopy ===

impl SavedCopy {
    fn with(&self, profile: Profile, text: &[u8]) -> RobotsCopy {
        RobotsCopy {
            sha256: self.sha256,
            status: self.status,
            etag: self.etag.clone(),
            complete: self.whole,
            ..RobotsCopy::new(profile, text, time(self.fetched).unwrap_or(SystemTime::UNIX_EPOCH))
        }
    }
}

/// `None` past the year 9000, which no clock that can be written down has come to.
fn time(micros: u64) -> Option<SystemTime> {
    let since = Some(Duration::from_micros(micros)).filter(|since| *since < 9000 * LONGEST);
    SystemTime::UNIX_EPOCH.checked_add(since?)
}

/// No answer holds for longer, and no failure is left alone for longer.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
