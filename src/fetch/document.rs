//! The documents that robotgate fetches from sites for its decisions.

use crate::robots;

/// A document with a fixed path on each site.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    pub path: &'static str,
    /// The value of the request's `Accept` field.
    pub(super) accept: &'static str,
    /// Maximum number of bytes of the decoded document that count.
    pub max_bytes: usize,
}

// === impl Document ===

impl Document {
    pub const ROBOTS_TXT: Self = Self {
        path: "/robots.txt",
        accept: "text/plain,*/*;q=0.8",
        max_bytes: robots::LIMIT,
    };
    /// The file in which a site reserves its rights in text and data mining (TDM Reservation Protocol, W3C community
    /// group report, §4).
    pub const TDMREP: Self = Self {
        path: "/.well-known/tdmrep.json",
        accept: "application/json,*/*;q=0.8",
        max_bytes: 1024 * 1024,
    };
}
