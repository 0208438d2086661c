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

#[derive(Debug)]
pub(super) struct CachedOrigin {
    pub(super) state: ArcSwap<OriginState>,
    /// Whether the state has been merged with the state on disk, if there is one.
    recalled: AtomicBool,
    /// How many times an operator has made robotgate forget the origin. If this number changes while a task gets a
    /// state from the disk or the fleet, the task drops that state.
    forgotten: AtomicU64,
    /// Whether a fetch runs, or is queued in the background. The value can be out of date, but reading it does not lock
    /// [`InFlightFetches`](super::in_flight::InFlightFetches).
    pub(super) fetching: AtomicBool,
    pub(super) tally: Arc<Tally>,
    /// Held while a lookup reads the disk or parses the robots.txt again. Other lookups wait for its result.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// A cached origin, and its weight: the approximate memory that it takes, in bytes. The weight must not change while
/// the cache holds the origin, because the cache subtracts the weight from its total when it removes the origin.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) cached: Arc<CachedOrigin>,
    weight: u64,
}

#[derive(Debug, Clone)]
pub(super) struct HeldWeight;

// === impl CachedOrigin ===

impl CachedOrigin {
    /// `recalled` says that nothing has to be read from disk.
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
        // An allocator rounds up to its next size class, so add an eighth.
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

/// Further bytes that the cache and the allocator need for each origin, measured with 100,000 origins.
const ENTRY_OVERHEAD: usize = 400;
