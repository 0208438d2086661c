//! What is known, in numbers.

use std::{borrow::Cow, collections::BTreeMap, path::Path, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::row::under;
use crate::{
    copy::Policy,
    store::{CopyFile, FileError, Memory, Record},
};

/// All numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// The file that these are of.
    pub path: String,
    /// Its size on disk.
    pub file_bytes: u64,
    #[serde(flatten)]
    pub count: Count,
    /// Different texts that are stored, each once.
    pub texts: u64,
    pub text_bytes: u64,
    /// What the proxy says that has the file open; `null` where none does.
    pub running: Option<Running>,
}

/// Origins, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// All that are known.
    pub origins: u64,
    /// By what holds, in the words of the list.
    pub holds: BTreeMap<Cow<'static, str>, u64>,
    /// Those that fail, whatever holds meanwhile.
    pub failing: u64,
    /// Those that have a text, which several may share.
    pub origins_with_text: u64,
}

/// What is in the memory of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Origins whose latest state is not on disk yet.
    pub waiting_writes: usize,
    pub memory_origins: usize,
    pub memory_bytes: u64,
    pub memory_max_bytes: u64,
    /// Fetches that run or wait for their turn.
    pub fetches: usize,
}

// === impl Stats ===

impl Stats {
    /// Of the file at `path`, whose origins were counted.
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
    /// Counts one more origin. What cannot be understood is not known.
    pub fn add(&mut self, record: Record, policy: &Policy, now: SystemTime) {
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
