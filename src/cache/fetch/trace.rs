//! What a fetch went through on its way: each URL that was asked and how it answered. For people
//! and records; nothing is decided by it.

use std::time::Duration;

use super::Fetched;

/// A fetch and its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    pub fetched: Fetched,
    /// In order, one at the least; all but the first are where redirects led.
    pub hops: Vec<Asked>,
    /// From the start to the last byte that counts, or to the failure.
    pub took: Duration,
}

/// One URL that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub url: String,
    /// `None` where no answer came.
    pub status: Option<u16>,
}
