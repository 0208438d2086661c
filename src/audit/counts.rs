//! How much went to the log.

use std::sync::atomic::{AtomicU64, Ordering};

/// What one log, or several after one another, were handed.
#[derive(Debug, Default)]
pub struct AuditCounts {
    lines: AtomicU64,
    bytes: AtomicU64,
}

// === impl AuditCounts ===

impl AuditCounts {
    pub(super) fn add(&self, line: &[u8]) {
        self.lines.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(line.len() as u64, Ordering::Relaxed);
    }

    /// Lines, and the bytes of them.
    pub fn both(&self) -> (u64, u64) {
        (self.lines.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}
