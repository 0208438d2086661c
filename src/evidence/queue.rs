//! The texts that wait to be written, and which texts are known to be in the file.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use tokio::sync::oneshot;

use super::history::{SeenText, Sighting};
use crate::copy::Sha256;

/// Where a text is.
pub(super) enum Place {
    /// It is in the file.
    Stored,
    /// It waits to be written. The receiver gets `true` when it is in the file, and `false` if that failed.
    Waiting(oneshot::Receiver<bool>),
    /// It cannot be written now.
    Fails,
}

/// The queue. Never holds more than [`MAX_BYTES`].
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: HashMap<Sha256, Arc<[u8]>>,
    bytes: usize,
    callers: Vec<oneshot::Sender<bool>>,
    /// The day on which this process last wrote each text, or found it in the file. It is incomplete, so that it stays
    /// small.
    known: HashMap<Sha256, u32>,
    /// What sites answered and waits to be written. Never more than [`MAX_SEEN`].
    seen: Vec<Sighting>,
    /// What each origin last answered, and the day on which this process noted that, by the hash of the origin. It is
    /// incomplete, so that it stays small.
    noted: HashMap<u64, (Option<SeenText>, u32)>,
    hasher: RandomState,
    pub(super) closed: bool,
}

/// Texts that are written in one transaction, and the callers that wait for it.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) texts: HashMap<Sha256, Arc<[u8]>>,
    pub(super) seen: Vec<Sighting>,
    pub(super) callers: Vec<oneshot::Sender<bool>>,
}

// === impl Queue ===

impl Queue {
    pub(super) fn is_known(&self, sha256: &Sha256) -> bool {
        self.known.contains_key(sha256)
    }

    /// Queues a text that is in use on `day`, unless the file has it. With `fails`, the file cannot be written now, so
    /// the text waits, but no caller does.
    pub(super) fn put(&mut self, sha256: Sha256, text: &[u8], day: u32, fails: bool) -> Place {
        let known = self.known.get(&sha256).copied();
        // A clock that was set back must not write every text again.
        if known.is_some_and(|known| known >= day) {
            return Place::Stored;
        }
        let is_queued = !self.closed && self.make_room_for(sha256, text);
        match known {
            // Only its day is old.
            Some(_) => {
                if is_queued {
                    self.known.insert(sha256, day);
                }
                Place::Stored
            }
            None if fails || !is_queued => Place::Fails,
            None => {
                let (caller, stored) = oneshot::channel();
                self.callers.push(caller);
                Place::Waiting(stored)
            }
        }
    }

    /// Queues what a site answered on `day`, unless that was noted on this day. `before` is its last answer, if that
    /// was another one.
    pub(super) fn saw(&mut self, before: Option<Sighting>, seen: Sighting, day: u32) {
        let key = self.hasher.hash_one(&seen.origin);
        let is_noted = |(text, noted): &(Option<SeenText>, u32)| *text == seen.text && *noted >= day;
        let is_known = before.is_none() && self.noted.get(&key).is_some_and(is_noted);
        if self.closed || self.seen.len() >= MAX_SEEN || is_known {
            return;
        }
        if self.noted.len() >= MAX_KNOWN {
            self.noted.clear();
        }
        self.noted.insert(key, (seen.text, day));
        // The time of the last answer is when the version before was last seen.
        self.seen.extend(before.into_iter().chain([seen]));
    }

    fn make_room_for(&mut self, sha256: Sha256, text: &[u8]) -> bool {
        if !self.waiting.contains_key(&sha256) {
            if self.bytes + text.len() > MAX_BYTES {
                return false;
            }
            self.bytes += text.len();
            self.waiting.insert(sha256, text.into());
        }
        true
    }

    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.seen.is_empty()
    }

    pub(super) fn take(&mut self) -> Taken {
        self.bytes = 0;
        Taken {
            texts: std::mem::take(&mut self.waiting),
            seen: std::mem::take(&mut self.seen),
            callers: std::mem::take(&mut self.callers),
        }
    }

    /// Queues texts again that could not be written, and releases the callers that came meanwhile too.
    pub(super) fn give_back(&mut self, mut taken: Taken) -> Vec<oneshot::Sender<bool>> {
        for (sha256, text) in taken.texts {
            self.make_room_for(sha256, &text);
        }
        // Those that came meanwhile are newer.
        taken.seen.append(&mut self.seen);
        taken.seen.truncate(MAX_SEEN);
        self.seen = taken.seen;
        taken.callers.append(&mut self.callers);
        taken.callers
    }

    pub(super) fn mark_stored(&mut self, texts: impl IntoIterator<Item = Sha256>, day: u32) {
        for sha256 in texts {
            if self.known.len() >= MAX_KNOWN {
                self.known.clear();
            }
            self.known.insert(sha256, day);
        }
    }

    pub(super) fn forget(&mut self, removed: &[Sha256]) {
        for sha256 in removed {
            self.known.remove(sha256);
        }
    }

    /// Forgets what the file contains, because there is another file.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
        self.noted.clear();
    }
}

/// Maximum bytes of the texts that wait while the disk is slow or full.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of texts that are known to be in the file. They take about 10 MB.
const MAX_KNOWN: usize = 200_000;
/// Maximum number of answers that wait while the disk is slow or full. They take a few megabytes.
const MAX_SEEN: usize = 20_000;
