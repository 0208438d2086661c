//! The changes that are not in the file on disk yet. The queue keeps only the latest change of each origin. Readers get
//! that change until it is in the file.
//!
//! The queued states never exceed a limit in bytes. If a state does not fit, the queue replaces it with a change that
//! removes the origin from the file. Otherwise, readers would take an older state in the file for the latest.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::oneshot;

use crate::copy::OriginState;

/// A change to what the file stores about an origin.
#[derive(Debug, Clone)]
pub enum StoreChange {
    /// Store this state of the origin. `complete` says whether it already includes what the file says about the origin.
    Keep { state: Arc<OriginState>, complete: bool },
    /// Forget the origin.
    Forget,
}

/// The changes that are not in the file on disk yet.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The latest change of each origin.
    waiting: HashMap<String, StoreChange>,
    /// The changes that are being written to the file now.
    writing: Arc<HashMap<String, StoreChange>>,
    /// Size of the states in `waiting`, in bytes. It includes states that the cache in memory shares.
    bytes: usize,
    /// The callers of `flush`. They are notified when the changes that are in `waiting` now have been written.
    flushing: Vec<oneshot::Sender<()>>,
    /// Whether an origin's state did not fit into the queue since the last write.
    overflowed: bool,
    pub(super) closed: bool,
}

/// Changes that are written in one transaction.
pub(super) struct Batch {
    pub(super) changes: Arc<HashMap<String, StoreChange>>,
    /// Callers of `flush`, who are notified after the write.
    pub(super) flushing: Vec<oneshot::Sender<()>>,
}

// === impl Change ===

impl StoreChange {
    /// Combines this change with an earlier one of the same origin.
    fn after(self, earlier: &Self) -> Self {
        match (self, earlier) {
            (
                Self::Keep { state, complete: false },
                Self::Keep {
                    state: earlier,
                    complete,
                },
            ) => Self::Keep {
                state: Arc::new(state.resuming(earlier)),
                complete: *complete,
            },
            (Self::Keep { state, .. }, Self::Forget) => Self::Keep { state, complete: true },
            (change, _) => change,
        }
    }
}

// === impl Queue ===

impl Queue {
    /// Adds a change, and merges it with an earlier one of the same origin. If the queue has no room for a state, adds
    /// a change that removes the origin from the file. Returns `false` when that happens for the first time since the
    /// last write, so that it is logged only once.
    pub(super) fn put(&mut self, origin: String, change: StoreChange) -> bool {
        let change = match self.waiting.remove(&origin) {
            Some(earlier) => {
                self.bytes -= weight(&origin, &earlier);
                change.after(&earlier)
            }
            None => change,
        };
        let has_room = self.bytes + weight(&origin, &change) <= MAX_BYTES;
        let change = if has_room { change } else { StoreChange::Forget };
        self.bytes += weight(&origin, &change);
        self.waiting.insert(origin, change);
        has_room || std::mem::replace(&mut self.overflowed, true)
    }

    /// Returns the last change of an origin that is queued or being written. `None` if the file has the last change.
    pub(super) fn find(&self, origin: &str) -> Option<&StoreChange> {
        self.waiting.get(origin).or_else(|| self.writing.get(origin))
    }

    pub(super) fn flush(&mut self) -> oneshot::Receiver<()> {
        let (flushed, wait) = oneshot::channel();
        self.flushing.push(flushed);
        wait
    }

    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.flushing.is_empty()
    }

    /// Returns whether to write without waiting for more changes: the queue is closed, or a caller of `flush` waits.
    pub(super) fn is_urgent(&self) -> bool {
        self.closed || !self.flushing.is_empty()
    }

    /// Takes all waiting changes out of the queue, to write them next.
    pub(super) fn take(&mut self) -> Batch {
        self.writing = Arc::new(std::mem::take(&mut self.waiting));
        self.bytes = 0;
        Batch {
            changes: self.writing.clone(),
            flushing: std::mem::take(&mut self.flushing),
        }
    }

    /// Records that the batch from the last [`take`](Self::take) is in the file.
    pub(super) fn mark_written(&mut self) {
        self.writing = Arc::default();
        self.overflowed = false;
    }

    /// Puts a batch back into the queue after its write has failed. Merges it with the changes that were queued since.
    pub(super) fn give_back(&mut self, batch: Batch) {
        self.writing = Arc::default();
        for (origin, change) in batch.changes.iter() {
            let later = self.waiting.remove(origin);
            self.bytes -= later.as_ref().map_or(0, |later| weight(origin, later));
            let change = later.map_or_else(|| change.clone(), |later| later.after(change));
            self.put(origin.clone(), change);
        }
        self.flushing.extend(batch.flushing);
    }

    /// Returns how many origins wait to be written.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.writing.len()
    }

    /// Drops all changes, because the file is closed for good.
    pub(super) fn clear(&mut self) {
        *self = Self {
            closed: self.closed,
            ..Self::default()
        };
    }
}

fn weight(origin: &str, change: &StoreChange) -> usize {
    let overhead = origin.len() + size_of::<(String, StoreChange)>();
    match change {
        StoreChange::Keep { state, .. } => overhead + state.weight(),
        StoreChange::Forget => overhead,
    }
}

/// Maximum size of the waiting states in bytes, in case the disk is slow or full. The changes that are being written
/// now do not count.
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
