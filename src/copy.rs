//! Everything that is known of an origin's robots.txt, as a state machine: which copy is current, when to fetch again,
//! what a failure means.
//!
//! This module does no I/O and reads no clock. [`crate::store`] keeps the copies, and [`crate::fetch`] fetches them.
//!
//! The submodules to read first:
//!
//! - `policy`: the configured times and limits.
//! - `meaning`: what a response means, for example a 429.
//! - `freshness`: how long a response applies.
//! - `failure`: why a fetch failed, and when to try again.
//! - `state`: what applies now, and when a fetch is due.

mod clock;
mod document;
mod failure;
mod freshness;
mod lookup;
mod meaning;
mod policy;
mod robots_copy;
mod state;
mod tdmrep;

pub(crate) use self::freshness::retry_after;
pub use self::{
    clock::{ClockReadings, Jump},
    document::SiteDocument,
    failure::{Failure, FetchError, NetworkError},
    freshness::Freshness,
    lookup::{CacheStatus, Lookup},
    meaning::{Fetched, Meaning, OriginResponse, is_refused_ftp_login},
    policy::{Policy, Retry, Then, Unreachable, WithoutCopy},
    robots_copy::{RobotsCopy, Sha256},
    state::{Answer, AnswerKind, Due, LastAnswer, OriginState, Saved, SavedCopy, Severity, SourceFetch},
    tdmrep::{Location, Reservation, TdmRep, TooLong},
};
