//! The queue of what the writer thread has to write: texts, and what sites answered. Also remembers what the file
//! already contains.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use tokio::sync::oneshot;

use super::history::{SeenText, Sighting};
use crate::copy::Sha256;

pub(super) enum PutResult {
    Stored,
    /// The receiver gets `true` when the text is in the file, and `false` if writing failed.
    Waiting(oneshot::Receiver<bool>),
    /// Do not wait: the text cannot be written at present, or the queue is full or closed.
    Fails,
}

/// The queue of the writer thread. Its texts never take more than [`MAX_BYTES`].
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: HashMap<Sha256, Arc<[u8]>>,
    bytes: usize,
    callers: Vec<oneshot::Sender<bool>>,
    /// For texts in the file, the day on which this process last recorded their use. Can be incomplete, to save memory.
    known: HashMap<Sha256, u32>,
    /// What sites answered, as far as it still has to be written.
    seen: Vec<Sighting>,
    /// By the hash of the origin: its last answer, and the day on which this process recorded it. Can be incomplete.
    noted: HashMap<u64, (Option<SeenText>, u32)>,
    hasher: RandomState,
    pub(super) closed: bool,
}

#[derive(Debug, Default)]
pub(super) struct TakenTexts {
    pub(super) texts: HashMap<Sha256, Arc<[u8]>>,
    pub(super) seen: Vec<Sighting>,
    pub(super) callers: Vec<oneshot::Sender<bool>>,
}

// === impl Queue ===

impl Queue {
    pub(super) fn is_known(&self, sha256: &Sha256) -> bool {
        self.known.contains_key(sha256)
    }

    /// Queues a text, unless its use on `day` is already recorded. If writing `fails` at present, the text is queued
    /// too, but nobody should wait for it.
    pub(super) fn put(&mut self, sha256: Sha256, text: &[u8], day: u32, fails: bool) -> PutResult {
        let known = self.known.get(&sha256).copied();
        // `known` is later than `day` if the clock was set back.
        if known.is_some_and(|known| known >= day) {
            return PutResult::Stored;
        }
        let is_queued = !self.closed && self.make_room_for(sha256, text);
        match known {
            // Only the day of the last use has to be updated.
            Some(_) => {
                if is_queued {
                    self.known.insert(sha256, day);
                }
                PutResult::Stored
            }
            None if fails || !is_queued => PutResult::Fails,
            None => {
                let (caller, stored) = oneshot::channel();
                self.callers.push(caller);
                PutResult::Waiting(stored)
            }
        }
    }

    /// Queues a site's answer, unless one with the same text was queued on `day`, or the queue is full or closed.
    /// `before` is the previous answer, if its text was different.
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
        // `before` is written too, because it says when the old version was last seen.
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

    pub(super) fn take(&mut self) -> TakenTexts {
        self.bytes = 0;
        TakenTexts {
            texts: std::mem::take(&mut self.waiting),
            seen: std::mem::take(&mut self.seen),
            callers: std::mem::take(&mut self.callers),
        }
    }

    /// Queues the data of a failed write again. Returns the channels to all callers that wait, including those that
    /// came during the write.
    pub(super) fn give_back(&mut self, mut taken: TakenTexts) -> Vec<oneshot::Sender<bool>> {
        for (sha256, text) in taken.texts {
            self.make_room_for(sha256, &text);
        }
        // Answers that were queued during the write are newer, so they come last.
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

    pub(super) fn forget_all(&mut self) {
        self.known.clear();
        self.noted.clear();
    }
}

/// Maximum bytes of the texts that wait. It is only reached if writing fails or is slow.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of entries of `known`, which take about 10 MB. Also the maximum for `noted`.
const MAX_KNOWN: usize = 200_000;
/// Maximum number of answers in `seen`. They take a few megabytes.
const MAX_SEEN: usize = 20_000;
