//! `[cache]`: how much of the robots.txt files is kept in memory, and what is kept on disk.
//!
//! It holds no copy and opens no file; that is the cache's own work.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::check::Checker;
use super::written;

const DEFAULT: u64 = 256 << 20;
/// Two copies of the largest size must fit; a tebibyte is a slip of the unit.
const LIMITS: (RangeInclusive<u64>, &str) = (1 << 20..=1 << 40, "from 1MiB to 1TiB");

const DEFAULT_DISK: u64 = 2 << 30;
/// Some files of the largest size must fit; more is a slip of the unit.
const DISK_LIMITS: (RangeInclusive<u64>, &str) = (16 << 20..=1 << 50, "from 16MiB to 1024TiB");

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const DEFAULT_KEEP: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Over a night without requests nothing may be forgotten; past ten years it is a slip of the unit.
const KEEPS: RangeInclusive<Duration> = DAY..=Duration::from_secs(3650 * 24 * 60 * 60);

/// The `[cache]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The file that outlives a restart; none where `persist` is false. Nothing says yet that it is there.
    pub path: Option<PathBuf>,
    /// How long the file remembers an origin that nobody asks for.
    pub keep: Duration,
    /// Bytes of texts and records that the file may hold.
    pub max_disk_bytes: u64,
    /// Bytes of memory for copies and what was parsed from them.
    pub max_bytes: u64,
}

// === impl Cache ===

impl Cache {
    pub(super) fn check(written: written::Cache, checker: &mut Checker<'_>) -> Self {
        let persist = written.persist.unwrap_or(true);
        if let Some(path) = written.path.as_ref().filter(|_| !persist) {
            checker.complain(
                path.span(),
                "with persist = false there is no file; leave out either this or persist",
            );
        }
        Self {
            path: persist.then(|| checker.path_or_state(written.path, "robots.redb")),
            keep: checker.duration(written.keep, DEFAULT_KEEP, KEEPS),
            max_disk_bytes: checker.size(written.max_disk_bytes, DEFAULT_DISK, DISK_LIMITS),
            max_bytes: checker.size(written.max_bytes, DEFAULT, LIMITS),
        }
    }
}
