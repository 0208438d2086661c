//! What the cache keeps in memory about an origin, and how much memory that takes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use quick_cache::Weighter;

use super::tally::Tally;
use crate::{
    copy::OriginState,
    origin::{Host, Origin},
};

/// What the cache keeps in memory about one origin and its robots.txt.
#[derive(Debug)]
pub(super) struct CachedOrigin {
    pub(super) state: ArcSwap<OriginState>,
    /// Whether the state has been merged with the state on disk.
    recalled: AtomicBool,
    /// How many times an operator has made robotgate forget the origin. A task that gets an earlier state from the disk
    /// or the fleet compares this number before and after. If it has changed, the task does not use that state.
    forgotten: AtomicU64,
    /// Whether a fetch is running, or waits in the background until it may start. This can be out of date. If it is
    /// set, a lookup does not have to lock [`InFlightFetches`](super::in_flight::InFlightFetches), which knows for
    /// certain.
    pub(super) fetching: AtomicBool,
    /// Counts the verdicts of decisions that were based on the state.
    pub(super) tally: Arc<Tally>,
    /// A lookup holds this lock while it reads the disk or parses the robots.txt again, so that other lookups wait for
    /// its result.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// A cached origin and its weight, which is its approximate memory in bytes. The weight does not change while the cache
/// holds the origin. Otherwise, the cache would subtract another weight from its total than it has added.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) cached: Arc<CachedOrigin>,
    weight: u64,
}

#[derive(Debug, Clone)]
pub(super) struct HeldWeight;

// === impl CachedOrigin ===

impl CachedOrigin {
    /// Creates the cached origin for an origin about which nothing is known. `recalled` says that nothing about it has
    /// to be read from disk.
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

    /// Forgets the origin. A lookup that is just reading it from disk notices this by [`forgotten`](Self::forgotten).
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
    pub(super) fn new(origin: &Origin, cached: Arc<CachedOrigin>) -> Self {
        let name = match &origin.host {
            Host::Name(name) => name.len(),
            Host::Ip(_) => 0,
        };
        let bytes =
            name + size_of::<Origin>() + size_of::<CachedOrigin>() + size_of::<Tally>() + cached.state.load().weight();
        // Add an eighth, because an allocator rounds up to its next size class.
        let weight = bytes + bytes / 8 + ENTRY_OVERHEAD;
        Self {
            cached,
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

/// Number of bytes that the cache and the allocator need for each cached origin, measured with 100,000 origins.
const ENTRY_OVERHEAD: usize = 400;
