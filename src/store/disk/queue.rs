//! The changes that are not in the file on disk yet. Readers get an origin's latest change from this queue.
//!
//! The size of the waiting states is limited. If a new state does not fit, the origin is removed from the file
//! ([`StoreChange::Forget`]), because readers must not take an older state in the file for the latest.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::oneshot;

use crate::copy::OriginState;

#[derive(Debug, Clone)]
pub enum StoreChange {
    /// Write this state. Unless it is `complete`, first merge it with the state in the file.
    Keep {
        state: Arc<OriginState>,
        complete: bool,
    },
    Forget,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: HashMap<String, StoreChange>,
    writing: Arc<HashMap<String, StoreChange>>,
    /// Size of `waiting` in bytes, including what its states share with the cache in memory.
    bytes: usize,
    /// The callers of `flush` that wait until the changes in `waiting` are written.
    flushing: Vec<oneshot::Sender<()>>,
    /// Whether a state did not fit since the last write.
    overflowed: bool,
    pub(super) closed: bool,
}

pub(super) struct Batch {
    pub(super) changes: Arc<HashMap<String, StoreChange>>,
    pub(super) flushing: Vec<oneshot::Sender<()>>,
}

// === impl StoreChange ===

impl StoreChange {
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
    /// Queues a change. Returns `false` if a state does not fit, but only the first time since the last write.
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

    /// Returns whether to write without waiting for more changes.
    pub(super) fn is_urgent(&self) -> bool {
        self.closed || !self.flushing.is_empty()
    }

    pub(super) fn take(&mut self) -> Batch {
        self.writing = Arc::new(std::mem::take(&mut self.waiting));
        self.bytes = 0;
        Batch {
            changes: self.writing.clone(),
            flushing: std::mem::take(&mut self.flushing),
        }
    }

    pub(super) fn mark_written(&mut self) {
        self.writing = Arc::default();
        self.overflowed = false;
    }

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

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.writing.len()
    }

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

/// Maximum size of the waiting states in bytes, in case the disk is slow or full.
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
