//! Statistics of the cache.

use std::{borrow::Cow, collections::BTreeMap, path::Path, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::row::under;
use crate::{
    copy::Policy,
    store::{CopyFile, FileError, Memory, OriginRecord},
};

/// Statistics of the cache file, and of the proxy that has the file open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub path: String,
    pub file_bytes: u64,
    #[serde(flatten)]
    pub count: Count,
    /// Number of different texts. Several origins can have the same one.
    pub texts: u64,
    pub text_bytes: u64,
    /// `None` if no proxy runs.
    pub running: Option<Running>,
}

/// How many origins are in the cache file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub origins: u64,
    /// Numbers of origins by what is known of their robots.txt; see [`Row::holds`](super::Row::holds).
    pub holds: BTreeMap<Cow<'static, str>, u64>,
    /// Origins whose last fetch failed, even if an earlier copy still applies.
    pub failing: u64,
    pub origins_with_text: u64,
}

/// What the running proxy has in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Changes of robots.txt and `tdmrep.json` copies that were not on disk when the query arrived.
    pub waiting_writes: usize,
    pub memory_origins: usize,
    pub memory_bytes: u64,
    pub memory_max_bytes: u64,
    /// Fetches that run or wait to run.
    pub fetches: usize,
}

// === impl Stats ===

impl Stats {
    pub(super) fn new(path: &Path, file: &CopyFile, count: Count, running: Option<Running>) -> Result<Self, FileError> {
        let contents = file.contents()?;
        Ok(Self {
            path: path.display().to_string(),
            file_bytes: std::fs::metadata(path)?.len(),
            count,
            texts: contents.texts,
            text_bytes: contents.text_bytes,
            running,
        })
    }
}

// === impl Count ===

impl Count {
    /// Counts an origin, unless its record is invalid.
    pub fn add(&mut self, record: OriginRecord, policy: &Policy, now: SystemTime) {
        let has_text = record.copy().is_some();
        let Some(state) = record.outline() else { return };
        let state = under(state, policy);
        let holds = state.answer(now, policy).holds().as_str();
        self.origins += 1;
        *self.holds.entry(holds.into()).or_default() += 1;
        self.failing += u64::from(state.failure().is_some());
        self.origins_with_text += u64::from(has_text);
    }
}

// === impl Running ===

impl Running {
    pub(super) fn new(waiting_writes: usize, memory: Memory) -> Self {
        Self {
            waiting_writes,
            memory_origins: memory.origins,
            memory_bytes: memory.bytes,
            memory_max_bytes: memory.max_bytes,
            fetches: memory.fetches,
        }
    }
}
