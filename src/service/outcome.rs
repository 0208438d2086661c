//! What came of the last reload, for those who ask later than the log was read.

use std::{sync::Arc, time::SystemTime};

use arc_swap::ArcSwapOption;

use crate::config::Change;

/// What came of reloads.
#[derive(Debug, Default)]
pub struct Reloads {
    last: ArcSwapOption<Reload>,
}

/// One attempt.
#[derive(Debug)]
pub struct Reload {
    pub time: SystemTime,
    pub cause: &'static str,
    /// What the file has changed; else why it changed nothing.
    pub outcome: Result<Changes, String>,
    /// The generation in force after it.
    pub generation: u64,
}

/// What a reload has changed.
#[derive(Debug, Default)]
pub struct Changes {
    pub changes: Vec<Change>,
    /// Keys among them that take effect at the next start.
    pub restart: Vec<&'static str>,
}

// === impl Reloads ===

impl Reloads {
    /// The last attempt; `None` before the first.
    pub fn last(&self) -> Option<Arc<Reload>> {
        self.last.load_full()
    }

    pub(super) fn note(&self, reload: Reload) {
        self.last.store(Some(Arc::new(reload)));
    }
}
