//! The cache of robots.txt copies. It looks up the state of an origin, and fetches the origin's robots.txt if
//! necessary. Requests for the same origin share one fetch. Copies that were evicted from memory are read back from
//! disk.
//!
//! Each running fetch has its own task, so a client that disconnects does not cancel it. A queued fetch is dropped when
//! no request waits for it any longer; this does not change the origin's state. This module decides nothing; the state
//! machine in [`crate::copy`] decides.

mod clocks;
mod disk;
mod fetching;
mod in_flight;
mod slot;
mod verdicts;

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
    clocks::Clocks,
    in_flight::InFlightFetches,
    slot::{Held, HeldWeight, Slot},
};
pub use self::{
    disk::{Contents, CopyFile, Disk, DiskError, DiskOptions, FileError, Record},
    verdicts::VerdictCounts,
};
use crate::{
    copy::{Due, Lookup, OriginState, Policy, Tallied},
    fetch::{Fetch, LookupError, Requester},
    origin::Origin,
    text::micros_since_1970,
};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, sync::Cache, sync::DefaultLifecycle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The copies of all origins.
#[derive(Debug)]
pub struct Store {
    slots: Cache<Origin, Held, HeldWeight>,
    in_flight: Arc<InFlightFetches>,
    /// Tracks the running fetches. `stopping` cancels them.
    running: TaskTracker,
    stopping: CancellationToken,
    disk: Option<Disk>,
    /// Why there is no `disk` although the configuration asks for copies on disk.
    without_disk: Option<String>,
    /// Failures before this time are retried at the next request. Microseconds since 1970.
    retry_from: AtomicU64,
    clocks: Clocks,
    spread: RandomState,
}

/// The input of a lookup: an origin, and everything that is needed to fetch its robots.txt.
#[derive(Debug)]
pub struct Query<'a, F> {
    pub origin: &'a Origin,
    pub fetcher: &'a Arc<F>,
    pub policy: &'a Policy,
    /// The requester whose limit applies if the lookup needs a fetch.
    pub requester: Requester,
}

/// Statistics of the copies in memory.
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
    /// Creates a store that keeps about `max_bytes` in memory. With a `disk`, it stores all copies there too, and the
    /// page cache of the file on disk is part of `max_bytes`.
    pub fn new(max_bytes: u64, disk: Option<Disk>) -> Self {
        let max_bytes = max_bytes - disk.as_ref().map_or(0, |_| Self::disk_share(max_bytes) as u64);
        let expected = usize::try_from(max_bytes / TYPICAL_WEIGHT).unwrap_or(usize::MAX);
        let shards = usize::try_from(max_bytes / MIN_SHARD).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(expected.clamp(16, 1 << 16))
            .weight_capacity(max_bytes)
            .shards(shards.clamp(1, 64))
            .build();
        let slots = match options {
            Ok(options) => Cache::with_options(
                options,
                HeldWeight,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // The builder fails only if a capacity is missing.
            Err(_) => Cache::with_weighter(expected.clamp(16, 1 << 16), max_bytes, HeldWeight),
        };
        Self {
            slots,
            in_flight: Arc::default(),
            running: TaskTracker::new(),
            stopping: CancellationToken::new(),
            disk,
            without_disk: None,
            retry_from: AtomicU64::new(0),
            clocks: Clocks::new(),
            spread: RandomState::new(),
        }
    }

    /// Changes how many bytes to keep in memory. If more are in use, they are evicted as new copies are added.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        let share = self.disk.as_ref().map_or(0, |_| Self::disk_share(max_bytes) as u64);
        self.slots.set_capacity(max_bytes - share);
    }

    /// Returns how many of `max_bytes` of memory are for the pages of the file on disk.
    pub fn disk_share(max_bytes: u64) -> usize {
        let share = (max_bytes / 16).clamp(MIN_PAGES.min(max_bytes / 2), MAX_PAGES);
        // `share` is at most `MAX_PAGES`, so the conversion cannot fail.
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    /// Makes the next request for each failing origin retry the fetch.
    pub fn retry_failures(&self) {
        self.retry_from
            .store(micros_since_1970(SystemTime::now()), Ordering::Relaxed);
        for (_, held) in self.slots.iter() {
            held.slot.state.rcu(|state| state.retrying_now());
        }
    }

    /// Stores the reason why there is no disk although the configuration asks for copies on disk, and what to do.
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
        self.disk.as_ref()
    }

    /// Returns why copies are not stored on disk although they should be, and what to do. The text contains no path.
    pub fn disk_trouble(&self) -> Option<String> {
        match &self.disk {
            Some(disk) => disk.trouble(),
            None => self.without_disk.clone(),
        }
    }

    pub fn memory(&self) -> Memory {
        Memory {
            origins: self.slots.len(),
            bytes: self.slots.weight(),
            max_bytes: self.slots.capacity(),
            fetches: self.in_flight.len(),
        }
    }

    /// Returns how often the decisions about an origin had each verdict since the origin came into memory.
    pub fn verdicts(&self, origin: &Origin) -> VerdictCounts {
        let held = self.slots.peek(origin);
        held.map_or_else(VerdictCounts::default, |held| VerdictCounts::from(&*held.slot.tally))
    }

    /// Returns the state of an origin if it is in memory. Reads nothing from disk.
    pub fn held(&self, origin: &Origin) -> Option<Arc<OriginState>> {
        Some(self.slots.peek(origin)?.slot.state.load_full())
    }

    /// Returns the first `limit` origins in memory, sorted by name, from the name `start` on, whose names contain
    /// `filter`. Slow if there are many origins.
    pub fn list_held(&self, start: &str, filter: &str, limit: usize) -> Vec<(Origin, Arc<OriginState>)> {
        let mut first = BTreeMap::new();
        for (origin, held) in self.slots.iter() {
            let name = origin.to_string();
            if *name < *start || !name.contains(filter) {
                continue;
            }
            first.insert(name, (origin, held.slot.state.load_full()));
            if first.len() > limit {
                first.pop_last();
            }
        }
        first.into_values().collect()
    }

    /// Calls `each` with the state of every origin in memory. Slow if there are many origins.
    pub fn each_state(&self, mut each: impl FnMut(&OriginState)) {
        for (_, held) in self.slots.iter() {
            each(&held.slot.state.load());
        }
    }

    /// Calls `each` with what was counted for each origin in memory since the last call. Slow if there are many origins.
    pub fn take_tallies(&self, mut each: impl FnMut(&Origin, Tallied)) {
        for (origin, held) in self.slots.iter() {
            if let Some(tallied) = held.slot.tally.take() {
                each(&origin, tallied);
            }
        }
    }

    /// Forgets an origin in memory and on disk. The next request for the origin fetches its robots.txt again.
    pub fn forget(&self, origin: &Origin) {
        // Forget on disk first. Otherwise, a lookup could read the origin back from there.
        if let Some(disk) = &self.disk {
            disk.forget(origin);
        }
        // A lookup or a fetch can still be using a slot. If that slot is cleared, the fetch starts from an unknown
        // origin.
        let held = self.slots.get(origin).map(|held| held.slot);
        for slot in self.in_flight.of(origin).into_iter().chain(held) {
            slot.forget();
        }
        self.slots.remove(origin);
    }

    /// Returns the state of an origin, and fetches its robots.txt first if a fetch is due. Waits at most `wait`.
    ///
    /// # Errors
    /// Fails if a fetch was due but could not start, for a reason other than the origin.
    pub async fn lookup<F: Fetch>(
        self: &Arc<Self>,
        query: &Query<'_, F>,
        wait: Duration,
    ) -> Result<Lookup, LookupError> {
        let Query { origin, policy, .. } = *query;
        let slot = self.slot(origin);
        let mut waited = Duration::ZERO;
        // If a site fails, or memory has no fresh copy, the disk can still have a usable one.
        let is_lacking = || {
            let state = slot.state.load();
            state.failing_since().is_some() || state.due(SystemTime::now(), policy) == Due::Now
        };
        if !slot.is_recalled() && is_lacking() {
            let started = Instant::now();
            // If the disk hangs, there must be time left to fetch from the site.
            let patience = wait.min(MAX_DISK_WAIT);
            let _ = tokio::time::timeout(patience, self.recall(&slot, query)).await;
            waited = started.elapsed();
        }
        let now = SystemTime::now();
        self.watch_clock(now);
        let mut state = slot.state.load_full();
        if !state.is_under(policy) {
            state = self.reread(&slot, origin, policy).await;
        }
        let mut lookup = match state.due(now, policy) {
            Due::No => Lookup::at_once(state, now, policy, &slot.tally),
            Due::Background => {
                self.refresh(&slot, query);
                Lookup::at_once(state, now, policy, &slot.tally)
            }
            Due::Now => {
                let left = wait.saturating_sub(waited);
                self.wait_for(&slot, &state, query, left).await?
            }
        };
        lookup.waited += waited;
        Ok(lookup)
    }

    /// Reads an origin's state back from disk. If the disk cannot be read, the slot stays unchanged, so that the next
    /// lookup tries again.
    async fn recall<F: Fetch>(&self, slot: &Arc<Slot>, query: &Query<'_, F>) {
        let Query { origin, policy, .. } = *query;
        let _turn = slot.turn.lock().await;
        let Some(disk) = self.disk.as_ref().filter(|_| !slot.is_recalled()) else {
            return;
        };
        let forgotten = slot.forgotten();
        match disk.recall(origin).await {
            Ok(None) => slot.set_recalled(),
            Ok(Some(earlier)) => {
                let earlier = self.brought_up_to_date(earlier, policy).await;
                if let Some(copy) = earlier.last_copy()
                    && query.fetcher.store_evidence(copy).await.is_err()
                {
                    return;
                }
                slot.state.rcu(|state| match state.is_known() {
                    // The origin was forgotten after its state had been read, so that state is ignored.
                    _ if slot.forgotten() != forgotten => state.clone(),
                    true => Arc::new(state.resuming(&earlier)),
                    false => earlier.clone(),
                });
                slot.set_recalled();
                self.weigh_anew(origin, slot);
            }
            Err(error) => tracing::debug!(%origin, %error, "cannot read what is stored of an origin"),
        }
    }

    /// Updates a state from disk with everything that has happened since it was written: clock jumps, a reload that
    /// makes failures due again, and the profile of `policy`.
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
    /// copies again and the others wait for it. Fetches nothing.
    async fn reread(&self, slot: &Arc<Slot>, origin: &Origin, policy: &Policy) -> Arc<OriginState> {
        let _turn = slot.turn.lock().await;
        loop {
            let state = slot.state.load_full();
            if state.is_under(policy) {
                return state;
            }
            let (earlier, policy) = (state.clone(), *policy);
            let reread = at_leisure(state.is_large(), move || earlier.under(&policy)).await;
            // A panic has been printed already. If a state cannot be parsed again, use an unknown one, which allows
            // nothing.
            let reread = Arc::new(reread.unwrap_or_else(OriginState::unknown));
            let before = slot.state.compare_and_swap(&state, reread.clone());
            // If the states differ, a fetch has ended in the meantime, and its result is used instead.
            if Arc::ptr_eq(&before, &state) {
                self.weigh_anew(origin, slot);
                return reread;
            }
        }
    }

    /// Corrects the recorded times if the machine's clock was set.
    fn watch_clock(&self, now: SystemTime) {
        let Some(jump) = self.clocks.look(now) else {
            return;
        };
        let held = self.slots.iter().map(|(origin, held)| (origin, held.slot));
        for (origin, slot) in held.chain(self.in_flight.slots()) {
            let before = slot.state.rcu(|state| state.after_jump(&jump));
            let state = slot.state.load_full();
            // Correct the file too, before it is read at the next start.
            if let Some(disk) = self
                .disk
                .as_ref()
                .filter(|_| before.failing_since() != state.failing_since())
            {
                disk.keep(&origin, state, slot.is_recalled());
            }
        }
    }

    /// Inserts a slot again because its weight has changed.
    fn weigh_anew(&self, origin: &Origin, slot: &Arc<Slot>) {
        // If the slot was evicted in the meantime, it must not replace the origin's new slot.
        let is_another = |held: Held| !Arc::ptr_eq(&held.slot, slot);
        if !self.slots.peek(origin).is_some_and(is_another) {
            self.slots.insert(origin.clone(), Held::new(origin, slot.clone()));
        }
    }

    fn slot(&self, origin: &Origin) -> Arc<Slot> {
        if let Some(held) = self.slots.get(origin) {
            return held.slot;
        }
        // An origin can be evicted while its fetch still runs. Lookups of the origin then use the slot of that fetch.
        let fetching = self.in_flight.of(origin);
        let slot = fetching.unwrap_or_else(|| Arc::new(Slot::new(self.disk.is_none())));
        let made = self
            .slots
            .get_or_insert_with(origin, || Ok::<_, std::convert::Infallible>(Held::new(origin, slot)));
        match made {
            Ok(held) => held.slot,
            Err(never) => match never {},
        }
    }
}

/// Runs `work` on a blocking thread if it takes long. Returns `None` if it panics there.
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
/// Maximum memory for these pages, in bytes.
const MAX_PAGES: u64 = 32 * 1024 * 1024;
/// Assumed weight of an origin with a robots.txt of typical size, to estimate the table sizes of the cache.
const TYPICAL_WEIGHT: u64 = 4096;
/// Minimum size of a cache shard, in bytes. A shard must have room for several of the largest copies, because a copy
/// that does not fit would be fetched again for each request.
const MIN_SHARD: u64 = 8 * 1024 * 1024;

#[cfg(test)]
mod tests;
