//! The cache of robots.txt copies, in memory and on disk. A lookup fetches a robots.txt if necessary, and requests for
//! the same origin share one fetch. The state machine in [`crate::copy`] decides when to fetch and what a response
//! means.

mod cached_origin;
mod clocks;
mod departed;
mod disk;
mod fetching;
mod in_flight;
mod lookup;
mod tally;

use std::{
    collections::BTreeMap,
    hash::RandomState,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use self::{
    cached_origin::{Held, HeldWeight},
    clocks::Clocks,
    departed::Departed,
    in_flight::InFlightFetches,
};
pub use self::{
    disk::{Contents, CopyFile, Disk, DiskError, DiskOptions, FileError, OriginRecord},
    tally::{Tallied, Tally, VerdictCounts},
};
use crate::{
    copy::{OriginState, Policy, SiteDocument},
    fetch::Requester,
    origin::Origin,
    text::micros_since_1970,
};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, sync::Cache};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The copies of the robots.txt files of all origins, or of their `tdmrep.json` files.
#[derive(Debug)]
pub struct Store {
    document: &'static SiteDocument,
    cache: Cache<Origin, Held, HeldWeight, DefaultHashBuilder, Departed>,
    departed: Departed,
    in_flight: Arc<InFlightFetches>,
    /// Tasks that fetch, which `stopping` cancels, and tasks that send the results of fetches to the fleet's server.
    running: TaskTracker,
    stopping: CancellationToken,
    disk: Option<Arc<Disk>>,
    /// Why copies are not stored on disk although the configuration asks for it.
    without_disk: Option<String>,
    /// When [`retry_failures`](Self::retry_failures) was last called, in microseconds since 1970.
    retry_from: AtomicU64,
    clocks: Clocks,
    spread: RandomState,
}

/// What a lookup needs: an origin, and everything to fetch its robots.txt.
#[derive(Debug)]
pub struct Query<'a, F> {
    pub origin: &'a Origin,
    pub fetcher: &'a Arc<F>,
    pub policy: &'a Policy,
    /// The client or operator who asks. The fetch counts towards this requester's limit.
    pub requester: Requester,
}

/// Statistics of the robots.txt copies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub origins: usize,
    pub bytes: u64,
    pub max_bytes: u64,
    /// Number of running and queued fetches.
    pub fetches: usize,
}

// === impl Store ===

impl Store {
    /// Creates a store that keeps about `max_bytes` in memory, including redb's page cache for the file of `disk`. With
    /// a `disk`, the store also writes the copies to this file.
    pub fn new(max_bytes: u64, disk: Option<Disk>) -> Self {
        let max_bytes = max_bytes - disk.as_ref().map_or(0, |_| Self::disk_share(max_bytes) as u64);
        let expected = usize::try_from(max_bytes / TYPICAL_WEIGHT).unwrap_or(usize::MAX);
        let shards = usize::try_from(max_bytes / MIN_SHARD).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(expected.clamp(16, 1 << 16))
            .weight_capacity(max_bytes)
            .shards(shards.clamp(1, 64))
            .build();
        let departed = Departed::default();
        let (hasher, lifecycle) = (DefaultHashBuilder::default(), departed.clone());
        let cache = match options {
            Ok(options) => Cache::with_options(options, HeldWeight, hasher, lifecycle),
            // The builder fails only if one of the two capacities is missing.
            Err(_) => Cache::with(expected.clamp(16, 1 << 16), max_bytes, HeldWeight, hasher, lifecycle),
        };
        Self {
            document: &SiteDocument::ROBOTS_TXT,
            cache,
            departed,
            in_flight: Arc::default(),
            running: TaskTracker::new(),
            stopping: CancellationToken::new(),
            disk: disk.map(Arc::new),
            without_disk: None,
            retry_from: AtomicU64::new(0),
            clocks: Clocks::new(),
            spread: RandomState::new(),
        }
    }

    /// Creates a store for `document`. The new store shares the file on disk with the store `robots`.
    /// [`end_fetches`](Self::end_fetches) of either store ends the fetches of both.
    pub fn beside(robots: &Self, document: &'static SiteDocument, max_bytes: u64) -> Self {
        Self {
            document,
            disk: robots.disk.clone(),
            retry_from: AtomicU64::new(robots.retry_from.load(Ordering::Relaxed)),
            clocks: robots.clocks.copy(),
            ..Self::new(max_bytes, None).replacing(robots)
        }
    }

    /// Changes how many bytes to keep in memory, and evicts the copies that no longer fit.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        let share = match self.disk {
            Some(_) if *self.document == SiteDocument::ROBOTS_TXT => Self::disk_share(max_bytes) as u64,
            _ => 0,
        };
        self.cache.set_capacity(max_bytes - share);
    }

    /// Returns how many bytes of memory, out of `max_bytes`, are for redb's page cache for the file on disk.
    pub fn disk_share(max_bytes: u64) -> usize {
        let share = (max_bytes / 16).clamp(MIN_PAGES.min(max_bytes / 2), MAX_PAGES);
        // `share` is at most `MAX_PAGES`.
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    /// Ends the waits after failed fetches. If an origin's last fetch failed, the next request for the origin starts
    /// another fetch.
    pub fn retry_failures(&self) {
        self.retry_from
            .store(micros_since_1970(SystemTime::now()), Ordering::Relaxed);
        for (_, held) in self.cache.iter() {
            held.cached.state.rcu(|state| state.retrying_now());
        }
    }

    /// Records why copies are not stored on disk although the configuration asks for it.
    #[must_use]
    pub fn without_disk(mut self, why: String) -> Self {
        self.without_disk = Some(why);
        self
    }

    /// Takes over the fetches of `earlier`, so that [`end_fetches`](Self::end_fetches) ends them too.
    #[must_use]
    pub fn replacing(mut self, earlier: &Self) -> Self {
        self.running = earlier.running.clone();
        self.stopping = earlier.stopping.clone();
        self
    }

    /// Ends the running fetches, waits until the audit log has their records, and starts no new ones.
    pub async fn end_fetches(&self) {
        self.stopping.cancel();
        self.running.close();
        self.running.wait().await;
    }

    pub fn disk(&self) -> Option<&Disk> {
        self.disk.as_deref()
    }

    /// Returns why robots.txt copies are not stored on disk although they should be. The text names no path.
    pub fn disk_trouble(&self) -> Option<String> {
        match &self.disk {
            Some(disk) => disk.trouble(),
            None => self.without_disk.clone(),
        }
    }

    pub fn memory(&self) -> Memory {
        Memory {
            origins: self.cache.len(),
            bytes: self.cache.weight(),
            max_bytes: self.cache.capacity(),
            fetches: self.in_flight.len(),
        }
    }

    /// Returns how many decisions about an origin had each verdict since the origin came into memory.
    pub fn verdicts(&self, origin: &Origin) -> VerdictCounts {
        let held = self.cache.peek(origin);
        held.map_or_else(VerdictCounts::default, |held| held.cached.tally.verdicts())
    }

    /// Returns the state of an origin if it is in memory. Reads nothing from disk.
    pub fn held(&self, origin: &Origin) -> Option<Arc<OriginState>> {
        Some(self.cache.peek(origin)?.cached.state.load_full())
    }

    /// Returns up to `limit` known origins in memory whose names contain `filter`, sorted by name, from the name
    /// `start` on.
    pub fn list_held(&self, start: &str, filter: &str, limit: usize) -> Vec<(Origin, Arc<OriginState>)> {
        let mut first = BTreeMap::new();
        for (origin, held) in self.cache.iter() {
            let name = origin.to_string();
            let state = held.cached.state.load_full();
            if *name < *start || !name.contains(filter) || !state.is_known() {
                continue;
            }
            first.insert(name, (origin, state));
            if first.len() > limit {
                first.pop_last();
            }
        }
        first.into_values().collect()
    }

    /// Calls `each` with the state of every origin in memory.
    pub fn each_state(&self, mut each: impl FnMut(&OriginState)) {
        for (_, held) in self.cache.iter() {
            each(&held.cached.state.load());
        }
    }

    /// Calls `each` with what was counted for each origin since the last call, also for evicted origins, and for some
    /// origins several times. Two threads must not call this method at the same time.
    pub fn take_tallies(&self, mut each: impl FnMut(&Origin, Tallied)) {
        self.departed.retain(|origin, tally| {
            // Check this before taking the counts: if no request holds the tally now, none can add to it later.
            let is_in_use = Arc::get_mut(tally).is_none();
            if let Some(tallied) = tally.take() {
                each(origin, tallied);
            }
            let is_back = |held: Held| Arc::ptr_eq(&held.cached.tally, tally);
            is_in_use && !self.cache.peek(origin).is_some_and(is_back)
        });
        for (origin, held) in self.cache.iter() {
            if let Some(tallied) = held.cached.tally.take() {
                each(&origin, tallied);
            }
        }
    }

    /// Forgets an origin in memory and on disk.
    pub fn forget(&self, origin: &Origin) {
        // Forget on disk first. Otherwise, a lookup could read the origin back from there.
        if let Some(disk) = &self.disk {
            disk.forget(self.document.name(origin));
            if *self.document == SiteDocument::ROBOTS_TXT {
                // The file can have the origin's `tdmrep.json` even if no store for these documents exists now.
                disk.forget(SiteDocument::TDMREP.name(origin));
            }
        }
        // A lookup or a fetch may still use the cached origin, so clear it before removing it from the cache.
        let held = self.cache.get(origin).map(|held| held.cached);
        for cached in self.in_flight.of(origin).into_iter().chain(held) {
            cached.forget();
        }
        if let Some((origin, held)) = self.cache.remove(origin) {
            self.departed.add(origin, &held.cached);
        }
    }
}

/// Minimum memory for redb's page cache, in bytes.
const MIN_PAGES: u64 = 64 * 1024;
/// Maximum memory for redb's page cache, in bytes.
const MAX_PAGES: u64 = 32 * 1024 * 1024;
/// Memory for an origin with a typical robots.txt, in bytes. The store estimates from this how many origins the cache
/// will hold.
const TYPICAL_WEIGHT: u64 = 4096;
/// Minimum size of a shard of the cache, in bytes, unless the whole cache is smaller. A copy that does not fit into its
/// shard would be fetched or read from disk for each request.
const MIN_SHARD: u64 = 8 * 1024 * 1024;

#[cfg(test)]
mod tests;
