//! The changes that wait to be written, so that nobody waits for a disk: the latest of each origin,
//! which counts until it stands in the file.
//!
//! The states that wait never grow past a bound: of what has no room only a mark waits, so that no older
//! record passes for the latest.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::oneshot;

use super::change::{Base, Change};
use crate::copy::OriginState;

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

/// What the queue knows of an origin.
#[derive(Debug)]
pub(super) enum Queued {
    /// Nothing: the file's record counts.
    No,
    /// This is all.
    Known(Arc<OriginState>),
    /// This, and what it began without.
    Part(Arc<OriginState>, Base),
    /// The last copy of the file's record.
    Outdated,
    Forgotten,
}

/// What is to be written in one go.
pub(super) struct Batch {
    pub(super) changes: Arc<HashMap<String, Change>>,
    /// Told when it is written.
    pub(super) flushing: Vec<oneshot::Sender<()>>,
}

// === impl Queue ===

impl Queue {
    /// Puts a change in, on top of an earlier one of the same origin. `false` where there is no room
    /// for it, for the first time since the last write.
    pub(super) fn put(&mut self, origin: String, change: Change) -> bool {
        let earlier = self.waiting.remove(&origin);
        self.bytes -= earlier.as_ref().map_or(0, |change| weight(&origin, change));
        // Without room, of what is to be forgotten nothing is left, of all else the last copy.
        let mark = match earlier {
            Some(Change::Forget) => Change::Forget,
            _ => Change::Outdate,
        };
        let change = match earlier {
            Some(earlier) => change.after(&earlier),
            None => change,
        };
        let more = weight(&origin, &change);
        let is_mark = matches!(change, Change::Forget | Change::Outdate);
        if is_mark || self.bytes.saturating_add(more) <= MAX_BYTES {
            self.bytes += more;
            self.waiting.insert(origin, change);
            return true;
        }
        self.bytes += weight(&origin, &mark);
        self.waiting.insert(origin, mark);
        std::mem::replace(&mut self.overflowed, true)
    }

    pub(super) fn find(&self, origin: &str) -> Queued {
        match self.waiting.get(origin).or_else(|| self.writing.get(origin)) {
            None => Queued::No,
            Some(Change::Keep {
                state,
                base: Base::Nothing,
            }) => Queued::Known(state.clone()),
            Some(Change::Keep { state, base }) => Queued::Part(state.clone(), *base),
            Some(Change::Outdate) => Queued::Outdated,
            Some(Change::Forget) => Queued::Forgotten,
        }
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
    pub(super) fn written(&mut self) {
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
    let own = origin.len() + size_of::<(String, Change)>();
    match change {
        Change::Keep { state, .. } => own + state.weight(),
        Change::Outdate | Change::Forget => own,
    }
}

/// Bytes that may wait while the disk is slow or full; what is being written comes on top.
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
