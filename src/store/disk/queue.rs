//! The changes that wait to be written, so that nobody waits for a disk: the latest of each origin,
//! which counts until it stands in the file.
//!
//! The states that wait never grow past a bound. An origin whose state has no room is forgotten, so that no older
//! record passes for the latest.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::oneshot;

use crate::copy::OriginState;

/// A change of what is known of an origin.
#[derive(Debug, Clone)]
pub enum Change {
    /// This is known. If it is not `complete`, the file may know more from before.
    Keep { state: Arc<OriginState>, complete: bool },
    /// Nothing is known any more.
    Forget,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// By origin.
    waiting: HashMap<String, Change>,
    /// What is being written now.
    writing: Arc<HashMap<String, Change>>,
    /// Bytes that the waiting states hold, shared with the memory or not.
    bytes: usize,
    /// Those who wait until all that waits now is written.
    flushing: Vec<oneshot::Sender<()>>,
    /// Whether something had to be forgotten since the last write.
    overflowed: bool,
    pub(super) closed: bool,
}

/// What is to be written in one go.
pub(super) struct Batch {
    pub(super) changes: Arc<HashMap<String, Change>>,
    /// Told when it is written.
    pub(super) flushing: Vec<oneshot::Sender<()>>,
}

// === impl Change ===

impl Change {
    /// This change on top of an earlier one, as one.
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
    /// Puts a change in, on top of an earlier one of the same origin. `false` where there is no room
    /// for it, for the first time since the last write.
    pub(super) fn put(&mut self, origin: String, change: Change) -> bool {
        let change = match self.waiting.remove(&origin) {
            Some(earlier) => {
                self.bytes -= weight(&origin, &earlier);
                change.after(&earlier)
            }
            None => change,
        };
        let has_room = self.bytes + weight(&origin, &change) <= MAX_BYTES;
        let change = if has_room { change } else { Change::Forget };
        self.bytes += weight(&origin, &change);
        self.waiting.insert(origin, change);
        has_room || std::mem::replace(&mut self.overflowed, true)
    }

    /// The change of an origin that is not in the file yet.
    pub(super) fn find(&self, origin: &str) -> Option<&Change> {
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

    /// Whether someone waits for it.
    pub(super) fn is_urgent(&self) -> bool {
        self.closed || !self.flushing.is_empty()
    }

    /// Takes what is to be written next.
    pub(super) fn take(&mut self) -> Batch {
        self.writing = Arc::new(std::mem::take(&mut self.waiting));
        self.bytes = 0;
        Batch {
            changes: self.writing.clone(),
            flushing: std::mem::take(&mut self.flushing),
        }
    }

    /// What was taken stands in the file.
    pub(super) fn mark_written(&mut self) {
        self.writing = Arc::default();
        self.overflowed = false;
    }

    /// What was taken could not be written: it waits again, below what came later.
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

    /// How many origins wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.writing.len()
    }

    /// Gives up all that waits: there is no file any more.
    pub(super) fn clear(&mut self) {
        *self = Self {
            closed: self.closed,
            ..Self::default()
        };
    }
}

fn weight(origin: &str, change: &Change) -> usize {
    let overhead = origin.len() + size_of::<(String, Change)>();
    match change {
        Change::Keep { state, .. } => overhead + state.weight(),
        Change::Forget => overhead,
    }
}

/// Bytes that may wait while the disk is slow or full; what is being written comes on top.
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
