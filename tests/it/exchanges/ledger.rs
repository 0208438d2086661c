//! The audit log of a gate. It is read incrementally, because many exchanges are looked up in it repeatedly.

use std::{
    collections::HashMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;

/// An index of the audit log.
pub struct Ledger {
    path: PathBuf,
    known: Mutex<Known>,
}

/// A decision and the completions with its id. There must be exactly one completion.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Number of decisions before this one in the log.
    pub at: usize,
    pub decision: Value,
    pub completions: Vec<Value>,
}

#[derive(Default)]
struct Known {
    offset: u64,
    /// An incomplete line.
    begun: Vec<u8>,
    /// Indices of `entries`. The key is the host and port of the URL, or these with the first two parts of the path.
    about: HashMap<String, Vec<usize>>,
    by_id: HashMap<String, usize>,
    entries: HashMap<usize, Entry>,
    /// Number of entries so far, including forgotten ones.
    count: usize,
}

// === impl Ledger ===

impl Ledger {
    /// Creates a ledger of the log in this file, which need not exist yet.
    pub fn of(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    /// Returns the exchanges so far, oldest first. `authority` is `host:port`, or `host:port/a/b` for only those whose
    /// path begins with `/a/b`.
    pub fn about(&self, authority: &str) -> Vec<Entry> {
        let mut known = self.known.lock();
        known.read(&self.path);
        let found = known.about.get(authority).cloned().unwrap_or_default();
        found.iter().filter_map(|at| known.entries.get(at)).cloned().collect()
    }

    /// Forgets the exchanges that [`about`](Self::about) returns, because a fuzzer causes too many to keep.
    pub fn forget(&self, about: &str) {
        let mut known = self.known.lock();
        for at in known.about.remove(about).unwrap_or_default() {
            known.entries.remove(&at);
        }
    }

    /// Waits until `condition` is true for the exchanges with a host and port, and returns them.
    ///
    /// # Errors
    /// Returns the exchanges so far if that takes longer than `patience`.
    pub async fn wait(
        &self,
        authority: &str,
        patience: Duration,
        condition: impl Fn(&[Entry]) -> bool,
    ) -> Result<Vec<Entry>, Vec<Entry>> {
        let begun = Instant::now();
        loop {
            let found = self.about(authority);
            if condition(&found) {
                return Ok(found);
            }
            if begun.elapsed() > patience {
                return Err(found);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Returns whether each decision has its completion.
pub fn are_complete(entries: &[Entry]) -> bool {
    entries.iter().all(|entry| !entry.completions.is_empty())
}

// === impl Known ===

impl Known {
    fn read(&mut self, path: &PathBuf) {
        // The log file does not exist before the first line is written.
        let Ok(mut file) = File::open(path) else { return };
        file.seek(SeekFrom::Start(self.offset)).expect("a file that grows");
        let read = file.read_to_end(&mut self.begun).expect("a file that can be read");
        self.offset += read as u64;
        let complete = self
            .begun
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let rest = self.begun.split_off(complete);
        let lines = std::mem::replace(&mut self.begun, rest);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.take(serde_json::from_slice(line).expect("a record"));
        }
    }

    fn take(&mut self, record: Value) {
        let id = record["id"].as_str().unwrap_or_default().to_owned();
        match record["event"].as_str() {
            Some("decision") => {
                let url = record["url"].as_str().unwrap_or_default();
                let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
                let authority = rest.split(['/', '?']).next().unwrap_or_default().to_owned();
                let at = self.count;
                self.count += 1;
                assert!(
                    self.by_id.insert(id, at).is_none(),
                    "two decisions have one id: {record}"
                );
                let parts: Vec<&str> = rest.split(['/', '?']).take(3).collect();
                let below = parts.join("/");
                if below != authority {
                    self.about.entry(below).or_default().push(at);
                }
                self.about.entry(authority).or_default().push(at);
                let entry = Entry {
                    at,
                    decision: record,
                    completions: Vec::new(),
                };
                self.entries.insert(at, entry);
            }
            Some("completion") => {
                let at = self.by_id.get(&id).unwrap_or_else(|| panic!("no decision: {record}"));
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.completions.push(record);
                }
            }
            _ => {}
        }
    }
}
