//! What became of reloads.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

/// What became of reloads. The start counts as one that went well, and for none.
#[derive(Debug)]
pub struct Reloads {
    last_went_well: AtomicBool,
    /// In milliseconds since 1970: the last one, and the last one that went well.
    last: AtomicU64,
    last_good: AtomicU64,
    ok: AtomicU64,
    rejected: AtomicU64,
}

// === impl Reloads ===

impl Default for Reloads {
    fn default() -> Self {
        let now = millis(SystemTime::now());
        Self {
            last_went_well: AtomicBool::new(true),
            last: AtomicU64::new(now),
            last_good: AtomicU64::new(now),
            ok: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        }
    }
}

impl Reloads {
    /// Notes that a reload ended at `at`: another configuration is in force, or it was rejected.
    pub fn note(&self, went_well: bool, at: SystemTime) {
        let at = millis(at);
        self.last_went_well.store(went_well, Ordering::Relaxed);
        self.last.store(at, Ordering::Relaxed);
        let count = if went_well {
            self.last_good.store(at, Ordering::Relaxed);
            &self.ok
        } else {
            &self.rejected
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn last_went_well(&self) -> bool {
        self.last_went_well.load(Ordering::Relaxed)
    }

    /// In seconds since 1970.
    pub(super) fn last(&self) -> f64 {
        self.last.load(Ordering::Relaxed) as f64 / 1e3
    }

    /// In seconds since 1970.
    pub(super) fn last_good(&self) -> f64 {
        self.last_good.load(Ordering::Relaxed) as f64 / 1e3
    }

    /// How many went well, and how many were rejected.
    pub(super) fn counts(&self) -> [(&'static str, u64); 2] {
        [
            ("ok", self.ok.load(Ordering::Relaxed)),
            ("rejected", self.rejected.load(Ordering::Relaxed)),
        ]
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
