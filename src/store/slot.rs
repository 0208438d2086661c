//! The place of one origin in memory, and what it weighs.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use quick_cache::Weighter;

use crate::{
    copy::{OriginState, Tally},
    origin::{Host, Origin},
};

/// The place of one origin.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: ArcSwap<OriginState>,
    /// Whether all that is known on disk is here.
    recalled: AtomicBool,
    /// How often all was forgotten.
    forgotten: AtomicU64,
    /// Whether a fetch runs, or waits for its turn in the background. Only a hint that spares a lock:
    /// [`InFlightFetches`](super::in_flight::InFlightFetches) decides.
    pub(super) fetching: AtomicBool,
    /// What it led to.
    pub(super) tally: Arc<Tally>,
    /// Held by the lookup that reads the disk, or the state anew.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// A slot as the cache holds it. The weight is that of the time when it was put there: the
/// cache's books would not balance if it changed by itself.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) slot: Arc<Slot>,
    weight: u64,
}

#[derive(Debug, Clone)]
pub(super) struct HeldWeight;

// === impl Slot ===

impl Slot {
    /// Of an origin of which nothing is known yet; `recalled` where the disk has no more to say.
    pub(super) fn new(recalled: bool) -> Self {
        Self {
            state: ArcSwap::from_pointee(OriginState::unknown()),
            recalled: AtomicBool::new(recalled),
            forgotten: AtomicU64::new(0),
            fetching: AtomicBool::new(false),
            tally: Arc::default(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) fn is_recalled(&self) -> bool {
        self.recalled.load(Ordering::Acquire)
    }

    pub(super) fn set_recalled(&self) {
        self.recalled.store(true, Ordering::Release);
    }

    /// Forgets all that is known. Whoever brings something back from disk meanwhile sees it by
    /// [`forgotten`](Self::forgotten).
    pub(super) fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.state.store(Arc::new(OriginState::unknown()));
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }
}

// === impl Held ===

impl Held {
    pub(super) fn new(origin: &Origin, slot: Arc<Slot>) -> Self {
        let name = match &origin.host {
            Host::Name(name) => name.len(),
            Host::Ip(_) => 0,
        };
        let bytes = name + size_of::<Origin>() + size_of::<Slot>() + size_of::<Tally>() + slot.state.load().weight();
        // An allocator rounds up to its next size, which comes to about an eighth.
        let weight = bytes + bytes / 8 + ENTRY_OVERHEAD;
        Self {
            slot,
            weight: weight as u64,
        }
    }
}

// === impl HeldWeight ===

impl Weighter<Origin, Held> for HeldWeight {
    fn weight(&self, _origin: &Origin, held: &Held) -> u64 {
        held.weight
    }
}

/// The cache's and the allocator's own bytes for an entry, as measured with 100,000 of them.
const ENTRY_OVERHEAD: usize = 400;
