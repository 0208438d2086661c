//! How often an origin's robots.txt led to each verdict, while the origin was in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::decision::Verdict;

/// Counts that many requests add to at once.
#[derive(Debug, Default)]
pub struct Verdicts {
    allow: AtomicU64,
    deny: AtomicU64,
    unverifiable: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    pub allow: u64,
    pub deny: u64,
    pub unverifiable: u64,
}

// === impl Verdicts ===

impl Verdicts {
    /// Counts one more.
    pub fn count(&self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Allow => &self.allow,
            Verdict::Deny => &self.deny,
            Verdict::Unverifiable => &self.unverifiable,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn counts(&self) -> VerdictCounts {
        VerdictCounts {
            allow: self.allow.load(Ordering::Relaxed),
            deny: self.deny.load(Ordering::Relaxed),
            unverifiable: self.unverifiable.load(Ordering::Relaxed),
        }
    }
}
