//! The documents of a site that robotgate fetches for its decisions.

use crate::robots;

/// A document with a fixed path on each site.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    pub path: &'static str,
    /// The value of the request's `Accept` field.
    pub(super) accept: &'static str,
    /// Maximum decoded bytes of the document that are used.
    pub max_bytes: usize,
}

// === impl Document ===

impl Document {
    pub const ROBOTS_TXT: Self = Self {
        path: "/robots.txt",
        accept: "text/plain,*/*;q=0.8",
        max_bytes: robots::LIMIT,
    };
    /// What a site reserves for text and data mining (TDM Reservation Protocol, W3C community group report, §4).
    pub const TDMREP: Self = Self {
        path: "/.well-known/tdmrep.json",
        accept: "application/json,*/*;q=0.8",
        max_bytes: 1024 * 1024,
    };
}
