//! `[cache]`: how much of the robots.txt files is kept in memory.
//!
//! It holds no copy; that is the cache's own work.

use std::ops::RangeInclusive;

use super::check::Checker;
use super::written;

const DEFAULT: u64 = 256 << 20;
/// Two copies of the largest size must fit; a tebibyte is a slip of the unit.
const LIMITS: (RangeInclusive<u64>, &str) = (1 << 20..=1 << 40, "from 1MiB to 1TiB");

/// The `[cache]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Bytes of memory for copies and what was parsed from them.
    pub max_bytes: u64,
}

// === impl Cache ===

impl Cache {
    pub(super) fn check(written: written::Cache, checker: &mut Checker<'_>) -> Self {
        Self {
            max_bytes: checker.size(written.max_bytes, DEFAULT, LIMITS),
        }
    }
}
