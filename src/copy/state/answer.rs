//! What a state says at a time: what holds, what that rests on, and whether to ask the origin again.

use std::{sync::Arc, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::{Failure, RobotsCopy};
use crate::text::words;

/// What holds for an origin at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer<'s> {
    Rules(&'s Arc<RobotsCopy>),
    NoRobots,
    Soft404,
    Unreachable(Option<&'s Failure>),
    /// The last copy that had rules decides, because of failures of which this is the last.
    LastCopy(&'s Arc<RobotsCopy>, &'s Failure),
    UnreachableTooLong(&'s Failure),
}

words! {
    /// What holds for a known origin, in a word: the list of [`Answer`]s for the log, the metrics and the API. Where a copy
    /// decides nothing, the word is that of the reason for it.
    pub enum Holds {
        Rules = "rules",
        /// The origin has to be asked before what is known is used.
        Expired = "expired",
        NoRobots = "no-robots",
        Soft404 = "soft-404",
        Unreachable = "unreachable",
        LastCopy = "last-copy",
        UnreachableTooLong = "unreachable-too-long",
        /// Bots may not go there.
        Egress = "egress",
    }
}

/// The fetch that an answer rests on: of the copy that decides, or else the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ground {
    /// Its HTTP status, where it came to one.
    pub status: Option<u16>,
    /// When it ended; of a copy, when its origin last said that it holds.
    pub fetched: Option<SystemTime>,
    /// When the origin is asked again.
    pub expires: Option<SystemTime>,
}

/// Whether the origin has to be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Due {
    No,
    /// Soon: what is known holds meanwhile.
    Background,
    /// Before what is known may be used.
    Now,
}

// === impl Answer ===

impl<'s> Answer<'s> {
    /// The copy that decides, where one does.
    pub fn copy(self) -> Option<&'s Arc<RobotsCopy>> {
        match self {
            Answer::Rules(copy) | Answer::LastCopy(copy, _) => Some(copy),
            _ => None,
        }
    }

    /// What holds, in a word.
    pub fn holds(self) -> Holds {
        match self {
            Answer::Rules(_) => Holds::Rules,
            Answer::NoRobots => Holds::NoRobots,
            Answer::Soft404 => Holds::Soft404,
            Answer::Unreachable(None) => Holds::Expired,
            Answer::Unreachable(Some(failure)) if failure.is_prohibited() => Holds::Egress,
            Answer::Unreachable(Some(_)) => Holds::Unreachable,
            Answer::LastCopy(..) => Holds::LastCopy,
            Answer::UnreachableTooLong(_) => Holds::UnreachableTooLong,
        }
    }

    /// The failure behind an answer that was made without an answer of the origin.
    pub fn failure(self) -> Option<&'s Failure> {
        match self {
            Answer::Unreachable(failure) => failure,
            Answer::LastCopy(_, failure) | Answer::UnreachableTooLong(failure) => Some(failure),
            _ => None,
        }
    }
}
