//! The robots.txt copies: which one holds now, when to fetch again, what a failure means.
//!
//! [`state`](self) is pure: an event and a time go in, a new state comes out. Around it stand the
//! fetcher, which does the I/O of one fetch, and the store, which sees to it that one fetch per
//! origin runs at a time, and keeps all of it on disk. Nothing in the state machine reads a clock or
//! touches a socket.

mod clock;
mod copy;
mod disk;
mod failure;
mod fetch;
mod freshness;
mod lookup;
mod meaning;
mod policy;
mod state;
mod store;
mod verdicts;

#[cfg(fuzzing)]
pub use self::fetch::Hop;
pub use self::{
    copy::{RobotsCopy, Sha256},
    disk::{Contents, CopyFile, Disk, DiskError, DiskOptions, FileError, Record, Why},
    failure::{Failure, FetchError},
    fetch::{
        Asked, Fetch, Fetched, Fetcher, FetcherOptions, Landed, Lanes, Name, Place, Requester, Traced, within_limit,
    },
    freshness::Freshness,
    lookup::{CacheStatus, Lookup, LookupError, TOO_MANY_FETCHES},
    meaning::{Meaning, Received},
    policy::{Policy, Retry, Then, Unreachable, WithoutCopy},
    state::{Answer, Due, Ground, OriginState, Saved, SavedCopy},
    store::{Memory, Query, Store},
    verdicts::{VerdictCounts, Verdicts},
};
