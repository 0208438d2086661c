//! Keeps what was counted for origins that have left the cache, until
//! [`Store::take_tallies`](super::Store::take_tallies) reads it.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use quick_cache::Lifecycle;

use super::{
    cached_origin::{CachedOrigin, Held},
    tally::Tally,
};
use crate::origin::Origin;

/// At most [`MAX_DEPARTED`] tallies. Further ones are dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Departed(pub(super) Arc<Mutex<Tallies>>);

type Tallies = Vec<(Origin, Arc<Tally>)>;

// === impl Departed ===

impl Departed {
    /// Keeps the tally of an origin, unless its counts were all taken and no request can add to them any more.
    pub(super) fn add(&self, origin: Origin, cached: &Arc<CachedOrigin>) {
        let tally = &cached.tally;
        let is_in_use = Arc::strong_count(tally) > 1 || Arc::strong_count(cached) > 1;
        if !is_in_use && !tally.has_untaken() {
            return;
        }
        let mut departed = self.0.lock();
        if departed.len() < MAX_DEPARTED {
            departed.push((origin, tally.clone()));
        }
    }

    /// Removes the tallies for which `each` returns `false`. Other threads can add tallies meanwhile.
    pub(super) fn retain(&self, mut each: impl FnMut(&Origin, &mut Arc<Tally>) -> bool) {
        // Do not keep the list locked: `each` can wait for a lock of the cache, and the cache calls `add` while it
        // holds that lock.
        let mut departed = std::mem::take(&mut *self.0.lock());
        departed.retain_mut(|(origin, tally)| each(origin, tally));
        // If an evicted origin was cached again and evicted again, its tally is in the list twice.
        let mut seen = HashSet::new();
        departed.retain(|(_, tally)| seen.insert(Arc::as_ptr(tally)));
        let mut added = self.0.lock();
        departed.append(&mut added);
        departed.truncate(MAX_DEPARTED);
        *added = departed;
    }
}

impl Lifecycle<Origin, Held> for Departed {
    /// Evicted origins. The cache drops them after it has released its locks, so freeing them blocks no other thread.
    type RequestState = [Option<Held>; 2];

    fn on_evict(&self, state: &mut Self::RequestState, origin: Origin, held: Held) {
        self.add(origin, &held.cached);
        if let Some(free) = state.iter_mut().find(|evicted| evicted.is_none()) {
            *free = Some(held);
        }
    }
}

/// These tallies and their origins take about 1 MiB. [`crate::history`] gets their counts every few seconds.
const MAX_DEPARTED: usize = 4096;
