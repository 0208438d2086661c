//! Counts the lines of the audit log.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number and total bytes of the lines that were submitted to a log. After a reload, the next log can continue the same
/// counts.
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

    /// Returns the number of lines and of bytes.
    pub fn totals(&self) -> (u64, u64) {
        (self.lines.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}
