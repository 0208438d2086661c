//! Everything that is known of an origin's robots.txt: which copy is current, when to fetch again, what a failure
//! means.
//!
//! A state machine: an event and a time go in, a new [`OriginState`] comes out. A state and a time give the answer. It
//! does no I/O and reads no clock. [`crate::store`] keeps the copies, [`crate::fetch`] fetches them.

mod clock;
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
    failure::{Failure, FetchError, NetworkError},
    freshness::Freshness,
    lookup::{CacheStatus, Lookup, Tallied, Tally},
    meaning::{Fetched, Meaning, Received},
    policy::{Policy, Retry, Then, Unreachable, WithoutCopy},
    robots_copy::{RobotsCopy, Sha256},
    state::{Answer, AnswerKind, Due, LastAnswer, OriginState, Saved, SavedCopy, SourceFetch},
    tdmrep::{Reservation, TdmRep, TooLong},
};
