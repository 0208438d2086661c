//! What came of the last reload, for those who ask later than the log was read.

use std::{sync::Arc, time::SystemTime};

use arc_swap::ArcSwapOption;

use crate::{admin::http::LastReload, config::Change, text::Timestamp};

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

    /// The same, for operators who ask.
    pub(super) fn told(&self) -> Option<LastReload> {
        let last = self.last()?;
        let changes = last.outcome.as_ref().ok();
        Some(LastReload {
            time: Timestamp(last.time),
            cause: last.cause,
            ok: changes.is_some(),
            error: last.outcome.as_ref().err().cloned(),
            generation: last.generation,
            changes: changes.map_or_else(Vec::new, |told| told.changes.iter().map(ToString::to_string).collect()),
            restart_needed: changes.map_or_else(Vec::new, |told| told.restart.clone()),
        })
    }

    pub(super) fn note(&self, reload: Reload) {
        self.last.store(Some(Arc::new(reload)));
    }
}
