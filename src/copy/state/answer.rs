//! What the state of an origin says at a given time.

use std::{sync::Arc, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::{Failure, RobotsCopy};
use crate::text::words;

/// What applies to an origin at a given time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer<'s> {
    Rules(&'s Arc<RobotsCopy>),
    NoRobots,
    Soft404,
    Unreachable(Option<&'s Failure>),
    /// The last copy with rules decides, because the origin fails.
    LastCopy(&'s Arc<RobotsCopy>, &'s Failure),
    UnreachableTooLong(&'s Failure),
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal { meaning: $meaning:literal, severity: $severity:ident, fails: $fails:literal, })+) => {
        words! {
            /// The kinds of [`Answer`], for the log, the metrics, the API and people. Except for `rules` and `expired`,
            /// each word is also the reason of the decisions that such an answer determines.
            pub enum AnswerKind {
                $($(#[$doc])* $name = $word,)+
            }
        }

        impl AnswerKind {
            /// Returns in a few words what the kind means for requests to the site.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)+
                }
            }

            /// Returns how bad the kind is for the bots.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$name => Severity::$severity,)+
                }
            }

            /// Returns whether the answer is based on a failed fetch.
            pub const fn fails(self) -> bool {
                match self {
                    $(Self::$name => $fails,)+
                }
            }
        }
    };
}

kinds! {
    Rules = "rules" {
        meaning: "the rules of its robots.txt decide",
        severity: Fine,
        fails: false,
    }
    /// There is no usable answer: the robots.txt has to be fetched first.
    Expired = "expired" {
        meaning: "no answer of the site is valid now: robotgate fetches its robots.txt before the next decision",
        severity: Warning,
        fails: false,
    }
    NoRobots = "no-robots" {
        meaning: "the site has no robots.txt: everything is allowed",
        severity: Fine,
        fails: false,
    }
    Soft404 = "soft-404" {
        meaning: "a server error said that there is no robots.txt: everything is allowed",
        severity: Warning,
        fails: false,
    }
    Unreachable = "unreachable" {
        meaning: "the robots.txt cannot be fetched, so everything is disallowed",
        severity: Bad,
        fails: true,
    }
    LastCopy = "last-copy" {
        meaning: "the site has been failing for so long that its last good robots.txt decides",
        severity: Warning,
        fails: true,
    }
    /// The origin has failed for long, and everything is allowed. There is no last copy, or the configuration does not
    /// use it.
    UnreachableTooLong = "unreachable-too-long" {
        meaning: "the site has failed for so long that everything is allowed",
        severity: Warning,
        fails: true,
    }
    /// The configuration does not let bots reach the origin.
    Egress = "egress" {
        meaning: "bots must not go there (egress in the configuration)",
        severity: Bad,
        fails: true,
    }
}

/// How bad an answer is for the bots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Fine,
    /// Bots may be able to fetch pages, but the robots.txt has expired, or the last fetch of it ended with an error.
    Warning,
    /// Bots may fetch nothing.
    Bad,
}

/// The fetch that an answer is based on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceFetch {
    /// HTTP status. `None` if it is unknown, or if the fetch failed for another reason than its status.
    pub status: Option<u16>,
    /// When the fetch ended or, for a copy, when its origin last confirmed it.
    pub fetched: Option<SystemTime>,
    /// The time from which a request needs a new fetch. A fetch in the background can come earlier.
    pub expires: Option<SystemTime>,
}

/// Whether the robots.txt has to be fetched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Due {
    No,
    /// Start a fetch, but decide the request at once.
    Background,
    /// Fetch the robots.txt before deciding the request.
    Now,
}

// === impl Answer ===

impl<'s> Answer<'s> {
    /// Returns the copy whose rules decide, if any.
    pub fn copy(self) -> Option<&'s Arc<RobotsCopy>> {
        match self {
            Answer::Rules(copy) | Answer::LastCopy(copy, _) => Some(copy),
            _ => None,
        }
    }

    /// Returns which kind of answer this is.
    pub fn holds(self) -> AnswerKind {
        match self {
            Answer::Rules(_) => AnswerKind::Rules,
            Answer::NoRobots => AnswerKind::NoRobots,
            Answer::Soft404 => AnswerKind::Soft404,
            Answer::Unreachable(None) => AnswerKind::Expired,
            Answer::Unreachable(Some(failure)) if failure.is_prohibited() => AnswerKind::Egress,
            Answer::Unreachable(Some(_)) => AnswerKind::Unreachable,
            Answer::LastCopy(..) => AnswerKind::LastCopy,
            Answer::UnreachableTooLong(_) => AnswerKind::UnreachableTooLong,
        }
    }

    /// Returns the failed fetch that the answer is based on, if any.
    pub fn failure(self) -> Option<&'s Failure> {
        match self {
            Answer::Unreachable(failure) => failure,
            Answer::LastCopy(_, failure) | Answer::UnreachableTooLong(failure) => Some(failure),
            _ => None,
        }
    }
}
