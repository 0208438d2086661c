//! Keeps the texts that decisions were based on (robots.txt, `tdmrep.json` and the configuration), each under its
//! SHA-256. With them, a decision in the audit log can be checked months later. Also records which robots.txt each
//! origin had, and when ([`EvidenceReader::history`]).
//!
//! A text is stored before the first decision that is based on it. A separate thread writes the texts, many in one
//! transaction. If the store fails, robotgate still decides requests, unless the configuration forbids it
//! ([`EvidenceOptions::required`]).
//!
//! The file is open only while something is written, so that [`EvidenceReader`] can read it while a proxy runs, and
//! several robotgates can share it.

mod file;
mod history;
mod queue;
mod reader;
mod writer;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use serde::Serialize;

use self::{history::day_of, queue::PutResult, writer::Shared};
pub use self::{
    history::{SeenText, Sighting, Version},
    reader::EvidenceReader,
};
pub use crate::database::FileError;
use crate::{copy::Sha256, database};

/// The `[evidence]` section of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceOptions {
    /// The file of the store. It need not exist.
    pub path: PathBuf,
    /// How long to keep a text after the last day on which it was in use.
    pub keep: Duration,
    /// Maximum bytes of the compressed texts and the history. Above that, what has been unused for the longest time is
    /// removed.
    pub max_bytes: u64,
    /// Whether requests are refused if the robots.txt that decides them could not be stored.
    pub required: bool,
}

pub struct Evidence {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// The state of the store, for the metrics and the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidenceState {
    pub texts: u64,
    /// Size of the compressed texts, in bytes.
    pub bytes: u64,
    pub max_bytes: u64,
    /// How many times a text could not be stored in time.
    pub failures: u64,
    /// Why texts cannot be stored at present, and what to do. Contains no path.
    #[serde(rename = "error")]
    pub trouble: Option<String>,
}

/// A robots.txt or `tdmrep.json` is not in the store, because it could not be written in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the robots.txt or tdmrep.json could not be stored as evidence")]
pub struct NotStored;

/// Why the store of evidence cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct EvidenceError {
    pub path: PathBuf,
    /// Contains no path.
    pub why: String,
}

// === impl Evidence ===

impl Evidence {
    /// Starts the store, and waits at most four seconds until it has stored the text of the configuration.
    ///
    /// # Errors
    /// Fails if the store's thread cannot be started, or if the store is required and the text was not stored in time.
    pub fn start(options: &EvidenceOptions, config: &Arc<str>) -> Result<Self, EvidenceError> {
        let shared = Arc::new(Shared::new(options));
        let writer = std::thread::Builder::new().name("evidence".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.write_until_closed()
        });
        let writer = writer.map_err(|error| EvidenceError {
            path: options.path.clone(),
            why: format!("cannot start a thread: {error}"),
        })?;
        let evidence = Self {
            shared,
            writer: Mutex::new(Some(writer)),
        };
        evidence.set_config(config, options.required)?;
        Ok(evidence)
    }

    /// Stores the text of a new configuration before the configuration is used. Waits for this at most four seconds.
    ///
    /// # Errors
    /// Fails if the store is `required` and the text was not stored in time.
    pub fn set_config(&self, config: &Arc<str>, required: bool) -> Result<(), EvidenceError> {
        let sha256 = self.shared.set_config(config);
        if self.shared.wait_until_stored(&sha256, Instant::now() + MAX_START) {
            return Ok(());
        }
        self.shared.failures.fetch_add(1, Ordering::Relaxed);
        match required {
            true => Err(EvidenceError {
                path: self.path().to_owned(),
                why: self
                    .trouble()
                    .unwrap_or_else(|| "storing the configuration here took more than 4 s".to_owned()),
            }),
            false => Ok(()),
        }
    }

    /// Checks whether this process could store texts at `path`. Does not create the file.
    pub fn check(path: &Path) -> Result<(), EvidenceError> {
        database::check(path).map_err(|error| EvidenceError {
            path: path.to_owned(),
            why: error.to_string(),
        })
    }

    /// Stores a text. Returns when the text is on disk, or at once if this process stored it before.
    ///
    /// # Errors
    /// Fails if the text was not stored within a second, if texts cannot be stored at present, or if the queue is full
    /// or closed. Unless the queue is full or closed, the text is stored later.
    pub async fn put(&self, sha256: Sha256, text: &[u8]) -> Result<(), NotStored> {
        let stored = match self.shared.put(sha256, text, day_of(SystemTime::now())) {
            PutResult::Stored => return Ok(()),
            PutResult::Waiting(stored) => matches!(tokio::time::timeout(MAX_WAIT, stored).await, Ok(Ok(true))),
            PutResult::Fails => false,
        };
        match stored {
            true => Ok(()),
            false => {
                self.shared.failures.fetch_add(1, Ordering::Relaxed);
                Err(NotStored)
            }
        }
    }

    /// Queues what a site answered when its robots.txt was fetched. `before` is the previous answer, if its text was
    /// different.
    pub fn saw(&self, before: Option<Sighting>, seen: Sighting) {
        let day = day_of(seen.at);
        self.shared.saw(before, seen, day);
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Changes the limits of the store, but not its path.
    pub fn set_options(&self, options: &EvidenceOptions) {
        self.shared.set_limits(options);
    }

    /// Returns why texts cannot be stored at present, and what to do. The text contains no path.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.text()
    }

    /// Returns whether texts cannot be stored at present. Takes no lock.
    pub fn is_failing(&self) -> bool {
        self.shared.is_failing.load(Ordering::Relaxed)
    }

    pub fn state(&self) -> EvidenceState {
        EvidenceState {
            texts: self.shared.texts.load(Ordering::Relaxed),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            max_bytes: self.shared.limits().max_bytes,
            failures: self.shared.failures.load(Ordering::Relaxed),
            trouble: self.trouble(),
        }
    }

    /// Tries once to write all that is queued, and ends the writer thread. Blocks until the thread has ended.
    pub fn close(&self) {
        self.shared.close();
        let writer = self.writer.lock().take();
        if let Some(writer) = writer {
            // A panic of the writer is already on stderr.
            let _ = writer.join();
        }
    }
}

impl Drop for Evidence {
    /// Does not wait for the writer thread.
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evidence")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

/// How long [`Evidence::put`] waits until the text is stored.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// How long a start or a reload waits until the text of the configuration is stored.
const MAX_START: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests;
