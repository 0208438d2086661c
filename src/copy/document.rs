//! The documents that robotgate fetches from sites for its decisions.

use crate::{origin::Origin, robots};

/// A document with a fixed path on each site.
#[derive(Debug, PartialEq, Eq)]
pub struct SiteDocument {
    pub path: &'static str,
    pub accept: &'static str,
    /// How many bytes of the decoded document are used at most.
    pub max_bytes: usize,
}

// === impl SiteDocument ===

impl SiteDocument {
    pub const ROBOTS_TXT: Self = Self {
        path: "/robots.txt",
        accept: "text/plain,*/*;q=0.8",
        max_bytes: robots::LIMIT,
    };
    /// The file in which a site reserves its rights in text and data mining (TDM Reservation Protocol, §4).
    pub const TDMREP: Self = Self {
        path: "/.well-known/tdmrep.json",
        accept: "application/json,*/*;q=0.8",
        max_bytes: 1024 * 1024,
    };

    /// Returns the name under which this document of `origin` is stored: for a robots.txt the origin, otherwise the
    /// document's URL.
    #[must_use]
    pub fn name(&self, origin: &Origin) -> String {
        match *self == Self::ROBOTS_TXT {
            true => origin.to_string(),
            false => format!("{origin}{}", self.path),
        }
    }

    /// Returns whether `name` is the [`name`](Self::name) of a robots.txt.
    #[must_use]
    pub fn is_robots_txt(name: &str) -> bool {
        !name.ends_with(Self::TDMREP.path)
    }
}
