//! The cache of robots.txt copies. It looks up the state of an origin, and fetches the origin's robots.txt if
//! necessary. Requests for the same origin share one fetch. Copies that were evicted from memory are read back from
//! disk.
//!
//! Each running fetch has its own task, so a client that disconnects does not cancel the fetch. A queued fetch is
//! dropped as soon as no request waits for it. This module does not decide what a response means or when to fetch: the
//! state machine in [`crate::copy`] does.

mod cached_origin;
mod clocks;
mod disk;
mod fetching;
mod in_flight;
mod tally;

use std::{
    collections::BTreeMap,
    hash::RandomState,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use self::{
    cached_origin::{CachedOrigin, Held, HeldWeight},
    clocks::Clocks,
    in_flight::InFlightFetches,
};
pub use self::{
    disk::{Contents, CopyFile, Disk, DiskError, DiskOptions, FileError, Record},
    tally::{Tallied, Tally, VerdictCounts},
};
use crate::{
    copy::{Due, Lookup, OriginState, Policy, SiteDocument},
    fetch::{Fetch, LookupError, Requester},
    origin::Origin,
    text::micros_since_1970,
};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, sync::Cache, sync::DefaultLifecycle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The copies of one document of all origins: their robots.txt files, or their `tdmrep.json` files.
#[derive(Debug)]
pub struct Store {
    document: &'static SiteDocument,
    cache: Cache<Origin, Held, HeldWeight>,
    in_flight: Arc<InFlightFetches>,
    /// Tracks the running fetches. `stopping` cancels them.
    running: TaskTracker,
    stopping: CancellationToken,
    disk: Option<Arc<Disk>>,
    /// Why copies are not stored on disk although the configuration asks for it.
    without_disk: Option<String>,
    /// When a reload last made failed fetches due, in microseconds since 1970. A fetch that failed before this time is
    /// retried at the next request for its origin.
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
    /// The client or operator who asks. If the lookup needs a fetch, it counts towards the limit on this requester's
    /// fetches.
    pub requester: Requester,
}

/// Statistics of the robots.txt copies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub origins: usize,
    pub bytes: u64,
    pub max_bytes: u64,
    /// Number of fetches that run or are queued.
    pub fetches: usize,
}

// === impl Store ===

impl Store {
    /// Creates a store that keeps about `max_bytes` in memory. With a `disk`, it also stores all copies there, and the
    /// page cache of that file is part of `max_bytes`.
    pub fn new(max_bytes: u64, disk: Option<Disk>) -> Self {
        let max_bytes = max_bytes - disk.as_ref().map_or(0, |_| Self::disk_share(max_bytes) as u64);
        let expected = usize::try_from(max_bytes / TYPICAL_WEIGHT).unwrap_or(usize::MAX);
        let shards = usize::try_from(max_bytes / MIN_SHARD).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(expected.clamp(16, 1 << 16))
            .weight_capacity(max_bytes)
            .shards(shards.clamp(1, 64))
            .build();
        let cache = match options {
            Ok(options) => Cache::with_options(
                options,
                HeldWeight,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // This cannot happen: the builder fails only if a capacity is missing, and all are given.
            Err(_) => Cache::with_weighter(expected.clamp(16, 1 << 16), max_bytes, HeldWeight),
        };
        Self {
            document: &SiteDocument::ROBOTS_TXT,
            cache,
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

    /// Creates a store of another document. It keeps about `max_bytes` in memory, and uses the same file on disk as
    /// `robots`. The page cache of that file counts as memory of `robots`. [`end_fetches`](Self::end_fetches) of
    /// `robots` ends the fetches of both. What `robots` has learned since the start to correct states from disk counts
    /// for both, too.
    pub fn beside(robots: &Self, document: &'static SiteDocument, max_bytes: u64) -> Self {
        Self {
            document,
            disk: robots.disk.clone(),
            retry_from: AtomicU64::new(robots.retry_from.load(Ordering::Relaxed)),
            clocks: robots.clocks.copy(),
            ..Self::new(max_bytes, None).replacing(robots)
        }
    }

    /// Changes how many bytes to keep in memory. If more are in use, they are evicted as new copies are added.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        let share = match self.disk {
            Some(_) if *self.document == SiteDocument::ROBOTS_TXT => Self::disk_share(max_bytes) as u64,
            _ => 0,
        };
        self.cache.set_capacity(max_bytes - share);
    }

    /// Returns which part of `max_bytes` of memory is the page cache of the file on disk.
    pub fn disk_share(max_bytes: u64) -> usize {
        let share = (max_bytes / 16).clamp(MIN_PAGES.min(max_bytes / 2), MAX_PAGES);
        // `share` is at most `MAX_PAGES`, so the conversion cannot fail.
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    /// Makes every failed fetch due: the next request for the origin fetches its robots.txt again.
    pub fn retry_failures(&self) {
        self.retry_from
            .store(micros_since_1970(SystemTime::now()), Ordering::Relaxed);
        for (_, held) in self.cache.iter() {
            held.cached.state.rcu(|state| state.retrying_now());
        }
    }

    /// Records why copies are not stored on disk although the configuration asks for it, and what people can do about
    /// it.
    #[must_use]
    pub fn without_disk(mut self, why: String) -> Self {
        self.without_disk = Some(why);
        self
    }

    /// Takes over the fetches of `earlier`, the store that this one replaces, so that
    /// [`end_fetches`](Self::end_fetches) ends them too.
    #[must_use]
    pub fn replacing(mut self, earlier: &Self) -> Self {
        self.running = earlier.running.clone();
        self.stopping = earlier.stopping.clone();
        self
    }

    /// Ends the running fetches and starts no new ones. When this returns, the audit log has the records of all of
    /// them.
    pub async fn end_fetches(&self) {
        self.stopping.cancel();
        self.running.close();
        self.running.wait().await;
    }

    pub fn disk(&self) -> Option<&Disk> {
        self.disk.as_deref()
    }

    /// Returns why robots.txt copies are not stored on disk although they should be, and what to do. The text names no
    /// path.
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

    /// Returns how often the decisions about an origin had each verdict since the origin came into memory.
    pub fn verdicts(&self, origin: &Origin) -> VerdictCounts {
        let held = self.cache.peek(origin);
        held.map_or_else(VerdictCounts::default, |held| held.cached.tally.verdicts())
    }

    /// Returns the state of an origin if it is in memory. Reads nothing from disk.
    pub fn held(&self, origin: &Origin) -> Option<Arc<OriginState>> {
        Some(self.cache.peek(origin)?.cached.state.load_full())
    }

    /// Returns up to `limit` origins in memory whose names contain `filter`, sorted by name, from the name `start` on.
    /// Slow if there are many origins.
    pub fn list_held(&self, start: &str, filter: &str, limit: usize) -> Vec<(Origin, Arc<OriginState>)> {
        let mut first = BTreeMap::new();
        for (origin, held) in self.cache.iter() {
            let name = origin.to_string();
            if *name < *start || !name.contains(filter) {
                continue;
            }
            first.insert(name, (origin, held.cached.state.load_full()));
            if first.len() > limit {
                first.pop_last();
            }
        }
        first.into_values().collect()
    }

    /// Calls `each` with the state of every origin in memory. Slow if there are many origins.
    pub fn each_state(&self, mut each: impl FnMut(&OriginState)) {
        for (_, held) in self.cache.iter() {
            each(&held.cached.state.load());
        }
    }

    /// Calls `each` with what was counted for each origin in memory since the last call. Slow if there are many origins.
    pub fn take_tallies(&self, mut each: impl FnMut(&Origin, Tallied)) {
        for (origin, held) in self.cache.iter() {
            if let Some(tallied) = held.cached.tally.take() {
                each(&origin, tallied);
            }
        }
    }

    /// Forgets an origin in memory and on disk. The next request for the origin fetches its robots.txt again.
    pub fn forget(&self, origin: &Origin) {
        // Forget on disk first. Otherwise, a lookup could read the origin back from there.
        if let Some(disk) = &self.disk {
            disk.forget(self.document.name(origin));
            if *self.document == SiteDocument::ROBOTS_TXT {
                // No other store does this if the configuration needs no `tdmrep.json` at the moment.
                disk.forget(SiteDocument::TDMREP.name(origin));
            }
        }
        // A lookup or a fetch may still use this object, so clear its contents before it is removed from the cache.
        let held = self.cache.get(origin).map(|held| held.cached);
        for cached in self.in_flight.of(origin).into_iter().chain(held) {
            cached.forget();
        }
        self.cache.remove(origin);
    }

    /// Returns the state of an origin, and the counts to which the decision and its outcome are to be added. If its
    /// robots.txt has expired or is unknown, fetches it first, and waits for that at most `wait`.
    ///
    /// # Errors
    /// Fails if a fetch was needed but could not start, for example because the requester has reached its limit of
    /// fetches or the audit log cannot be written.
    pub async fn lookup<F: Fetch>(
        self: &Arc<Self>,
        query: &Query<'_, F>,
        wait: Duration,
    ) -> Result<(Lookup, Arc<Tally>), LookupError> {
        let Query { origin, policy, .. } = *query;
        let cached = self.cached(origin);
        let mut waited = Duration::ZERO;
        // If the site fails, or the copy in memory has expired, the disk can still have a copy that is usable.
        let is_lacking = || {
            let state = cached.state.load();
            state.failing_since().is_some() || state.due(SystemTime::now(), policy) == Due::Now
        };
        if !cached.is_recalled() && is_lacking() {
            let started = Instant::now();
            // Wait for the disk only briefly, so that time is left to fetch from the site if the disk hangs.
            let patience = wait.min(MAX_DISK_WAIT);
            let _ = tokio::time::timeout(patience, self.recall(&cached, query)).await;
            waited = started.elapsed();
        }
        let now = SystemTime::now();
        self.watch_clock(now);
        let mut state = cached.state.load_full();
        if !state.is_under(policy) {
            state = self.reread(&cached, origin, policy).await;
        }
        let due = state.due(now, policy);
        if due == Due::Background {
            self.refresh(&cached, query);
        }
        let (mut lookup, tally) = match due {
            Due::No | Due::Background => (Lookup::at_once(state, now, policy), cached.tally.clone()),
            Due::Now => {
                let left = wait.saturating_sub(waited);
                self.wait_for(&cached, &state, query, left).await?
            }
        };
        lookup.waited += waited;
        Ok((lookup, tally))
    }

    /// Reads an origin's state back from disk. If that fails, the state in memory stays as it is, and the next lookup
    /// tries again.
    async fn recall<F: Fetch>(&self, cached: &Arc<CachedOrigin>, query: &Query<'_, F>) {
        let Query { origin, policy, .. } = *query;
        let _turn = cached.turn.lock().await;
        let Some(disk) = self.disk.as_ref().filter(|_| !cached.is_recalled()) else {
            return;
        };
        let forgotten = cached.forgotten();
        match disk.recall(self.document.name(origin)).await {
            Ok(None) => cached.set_recalled(),
            Ok(Some(earlier)) => {
                let earlier = self.brought_up_to_date(earlier, policy).await;
                if let Some(copy) = earlier.last_copy()
                    && query.fetcher.store_evidence(copy).await.is_err()
                {
                    return;
                }
                cached.state.rcu(|state| match state.is_known() {
                    // While the disk was read, an operator made robotgate forget the origin. So do not use what was
                    // read.
                    _ if cached.forgotten() != forgotten => state.clone(),
                    true => Arc::new(state.resuming(&earlier)),
                    false => earlier.clone(),
                });
                cached.set_recalled();
                self.weigh_anew(origin, cached);
            }
            Err(error) => tracing::debug!(%origin, %error, "cannot read what is stored of an origin"),
        }
    }

    /// Corrects a state from disk for what has happened since it was written: the clock was set, a reload made failed
    /// fetches due again, or the profile changed.
    async fn brought_up_to_date(&self, earlier: Arc<OriginState>, policy: &Policy) -> Arc<OriginState> {
        let retry_from = Duration::from_micros(self.retry_from.load(Ordering::Relaxed));
        let jumps = self.clocks.jumps();
        let earlier = jumps
            .iter()
            .fold(earlier, |earlier, jump| Arc::new(earlier.after_jump(jump)));
        let is_mended = earlier
            .last_fetch()
            .is_some_and(|last| last < SystemTime::UNIX_EPOCH + retry_from);
        let earlier = match is_mended {
            true => Arc::new(earlier.retrying_now()),
            false => earlier,
        };
        if earlier.is_under(policy) {
            return earlier;
        }
        let policy = *policy;
        let reread = at_leisure(earlier.is_large(), move || earlier.under(&policy)).await;
        Arc::new(reread.unwrap_or_else(OriginState::unknown))
    }

    /// Returns the state of an origin under `policy`. If a reload has changed the profile, the first lookup parses the
    /// robots.txt again, and others wait for it. Fetches nothing.
    async fn reread(&self, cached: &Arc<CachedOrigin>, origin: &Origin, policy: &Policy) -> Arc<OriginState> {
        let _turn = cached.turn.lock().await;
        loop {
            let state = cached.state.load_full();
            if state.is_under(policy) {
                return state;
            }
            let (earlier, policy) = (state.clone(), *policy);
            let reread = at_leisure(state.is_large(), move || earlier.under(&policy)).await;
            // Parsing panicked, which has been printed already. Use an unknown state, which allows nothing.
            let reread = Arc::new(reread.unwrap_or_else(OriginState::unknown));
            let before = cached.state.compare_and_swap(&state, reread.clone());
            // If the state was replaced in the meantime, a fetch has ended. Its result stays.
            if Arc::ptr_eq(&before, &state) {
                self.weigh_anew(origin, cached);
                return reread;
            }
        }
    }

    /// Corrects the recorded times if the machine's clock was set since the last call.
    fn watch_clock(&self, now: SystemTime) {
        let Some(jump) = self.clocks.look(now) else {
            return;
        };
        let held = self.cache.iter().map(|(origin, held)| (origin, held.cached));
        for (origin, cached) in held.chain(self.in_flight.cache()) {
            let before = cached.state.rcu(|state| state.after_jump(&jump));
            let state = cached.state.load_full();
            // Correct the state on disk too. Otherwise, the next start would read uncorrected times.
            if let Some(disk) = self
                .disk
                .as_ref()
                .filter(|_| before.failing_since() != state.failing_since())
            {
                disk.keep(self.document.name(&origin), state, cached.is_recalled());
            }
        }
    }

    /// Inserts a cached origin again after its size in memory has changed, because the cache weighs it only when it is
    /// inserted.
    fn weigh_anew(&self, origin: &Origin, cached: &Arc<CachedOrigin>) {
        // The cache may have evicted `cached`, and may already hold a newer object for the same origin. Then keep the
        // newer one.
        let is_another = |held: Held| !Arc::ptr_eq(&held.cached, cached);
        if !self.cache.peek(origin).is_some_and(is_another) {
            self.cache.insert(origin.clone(), Held::new(origin, cached.clone()));
        }
    }

    fn cached(&self, origin: &Origin) -> Arc<CachedOrigin> {
        if let Some(held) = self.cache.get(origin) {
            return held.cached;
        }
        // An origin can be evicted from the cache while its robots.txt is fetched. Then use the object that the fetch
        // will update, so that its result is not lost.
        let fetching = self.in_flight.of(origin);
        let cached = fetching.unwrap_or_else(|| Arc::new(CachedOrigin::new(self.disk.is_none())));
        let made = self
            .cache
            .get_or_insert_with(origin, || Ok::<_, std::convert::Infallible>(Held::new(origin, cached)));
        match made {
            Ok(held) => held.cached,
            Err(never) => match never {},
        }
    }
}

/// Runs `work`, on a blocking thread if it takes long. Returns `None` if it panics there.
async fn at_leisure<T: Send + 'static>(takes_long: bool, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match takes_long {
        true => tokio::task::spawn_blocking(work).await.ok(),
        false => Some(work()),
    }
}

/// Maximum time that a lookup waits for the disk.
const MAX_DISK_WAIT: Duration = Duration::from_secs(1);
/// Minimum memory for the pages of the file on disk, in bytes.
const MIN_PAGES: u64 = 64 * 1024;
/// Maximum memory for the pages of the file on disk, in bytes.
const MAX_PAGES: u64 = 32 * 1024 * 1024;
/// Memory of an origin with a typical robots.txt, in bytes. It serves to estimate how many origins the cache will hold.
const TYPICAL_WEIGHT: u64 = 4096;
/// Minimum size of a part (shard) of the cache, in bytes. Each must have room for several of the largest copies: a copy
/// that does not fit would be fetched again for each request.
const MIN_SHARD: u64 = 8 * 1024 * 1024;

#[cfg(test)]
mod tests;
