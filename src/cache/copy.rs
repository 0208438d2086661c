//! One fetched robots.txt and what is known of it.

use std::{fmt, time::SystemTime};

use sha2::{Digest, Sha256};

use crate::robots::{Profile, RobotsTxt};

/// A copy of a robots.txt, parsed.
pub struct RobotsCopy {
    pub robots: RobotsTxt,
    /// The SHA-256 of the bytes that were parsed, in lower-case hex: with it an auditor can tell
    /// months later which text decided.
    pub sha256: String,
    pub fetched: SystemTime,
}

// === impl RobotsCopy ===

impl RobotsCopy {
    /// Parses `body`, which was received at `fetched`, in the reading of `profile`.
    pub fn new(profile: Profile, body: &[u8], fetched: SystemTime) -> Self {
        Self {
            robots: RobotsTxt::parse_as(profile, body),
            sha256: data_encoding::HEXLOWER.encode(&Sha256::digest(body)),
            fetched,
        }
    }

    /// The same text, in the reading of `profile`.
    #[must_use]
    pub fn under(&self, profile: Profile) -> Self {
        Self {
            robots: RobotsTxt::parse_as(profile, self.robots.body()),
            sha256: self.sha256.clone(),
            fetched: self.fetched,
        }
    }

    /// The bytes of memory that the copy holds.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.robots.weight() + self.sha256.capacity()
    }
}

impl fmt::Debug for RobotsCopy {
    /// The digest stands for the file, which may be half a megabyte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsCopy")
            .field("profile", &self.robots.profile())
            .field("sha256", &self.sha256)
            .field("fetched", &self.fetched)
            .finish_non_exhaustive()
    }
}

impl PartialEq for RobotsCopy {
    fn eq(&self, other: &Self) -> bool {
        let profiles_are_equal = self.robots.profile() == other.robots.profile();
        profiles_are_equal && self.sha256 == other.sha256 && self.fetched == other.fetched
    }
}

/// Bytes that take about half a millisecond to parse, which would keep other requests waiting.
pub(super) const LARGE: usize = 64 * 1024;
