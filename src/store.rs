//! The copies of all origins: looks up what holds and sees to it that one fetch per origin runs at a
//! time, which the other requests wait for. What memory has no room for comes back from disk.
//!
//! A fetch that has begun runs in a task of its own, so a client that goes away cancels nothing. One that still waits
//! for its turn is given up when nobody waits for it any more, and nothing is noted of its origin. This module decides
//! nothing: the state machine does.

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
    copy::{Due, Lookup, OriginState, Policy},
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
    /// The fetches that run, and what ends them.
    running: TaskTracker,
    stopping: CancellationToken,
    disk: Option<Disk>,
    /// Why there is none though there should be.
    without_disk: Option<String>,
    /// Failures of before this, in microseconds since 1970, are tried again at once.
    retry_from: AtomicU64,
    clocks: Clocks,
    spread: RandomState,
}

/// What is looked up, and what it is fetched by.
#[derive(Debug)]
pub struct Query<'a, F> {
    pub origin: &'a Origin,
    pub fetcher: &'a Arc<F>,
    pub policy: &'a Policy,
    /// Whom a fetch counts for.
    pub requester: Requester,
}

/// What of the copies is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub origins: usize,
    /// Bytes that they hold, and may hold.
    pub bytes: u64,
    pub max_bytes: u64,
    /// Fetches that run or wait for their turn.
    pub fetches: usize,
}

// === impl Store ===

impl Store {
    /// A store that holds about `max_bytes` of copies in memory, and all of them on `disk` where there
    /// is one; its pages are among those bytes.
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
            // The builder errs only where a capacity is missing.
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

    /// Changes how much is held in memory. What is over the new bound goes as new copies come.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        let share = self.disk.as_ref().map_or(0, |_| Self::disk_share(max_bytes) as u64);
        self.slots.set_capacity(max_bytes - share);
    }

    /// Of `max_bytes` of memory, what the pages of the file on disk get.
    pub fn disk_share(max_bytes: u64) -> usize {
        let share = (max_bytes / 16).clamp(MIN_PAGES.min(max_bytes / 2), MAX_PAGES);
        // It is bounded by one.
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    /// Has every origin that fails asked again when it is next needed, whenever that would have
    /// been.
    pub fn retry_failures(&self) {
        self.retry_from
            .store(micros_since_1970(SystemTime::now()), Ordering::Relaxed);
        for (_, held) in self.slots.iter() {
            held.slot.state.rcu(|state| state.retrying_now());
        }
    }

    /// Notes why the copies are not kept on disk though they should be, and what to do.
    #[must_use]
    pub fn without_disk(mut self, why: String) -> Self {
        self.without_disk = Some(why);
        self
    }

    /// Has [`end_fetches`](Self::end_fetches) end those of `earlier`, too, which this store replaces.
    #[must_use]
    pub fn replacing(mut self, earlier: &Self) -> Self {
        self.running = earlier.running.clone();
        self.stopping = earlier.stopping.clone();
        self
    }

    /// Ends the fetches that run, and begins no more. Each has its record in the log when this returns.
    pub async fn end_fetches(&self) {
        self.stopping.cancel();
        self.running.close();
        self.running.wait().await;
    }

    /// The copies on disk, where they are kept there.
    pub fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Why what is learned now is not kept on disk though it should be, and what to do. It names no path.
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

    /// What was decided by the robots.txt of an origin since it came into memory.
    pub fn verdicts(&self, origin: &Origin) -> VerdictCounts {
        let held = self.slots.peek(origin);
        held.map_or_else(VerdictCounts::default, |held| VerdictCounts::from(&*held.slot.tally))
    }

    /// What memory holds of an origin.
    pub fn held(&self, origin: &Origin) -> Option<Arc<OriginState>> {
        Some(self.slots.peek(origin)?.slot.state.load_full())
    }

    /// The first `limit` of the origins in memory by name, from `start` on, whose names have `filter` in them.
    /// It takes long where there are many.
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

    /// Calls `each` with what is known of each origin in memory. It takes a while where there are many.
    pub fn each_state(&self, mut each: impl FnMut(&OriginState)) {
        for (_, held) in self.slots.iter() {
            each(&held.slot.state.load());
        }
    }

    /// Forgets all that is known of an origin, in memory and on disk: it is fetched when it is next
    /// needed.
    pub fn forget(&self, origin: &Origin) {
        // First, or a lookup could bring it back from there.
        if let Some(disk) = &self.disk {
            disk.forget(origin);
        }
        // A lookup may hold the slot, and a fetch, of which what it brings counts as the first that is known.
        let held = self.slots.get(origin).map(|held| held.slot);
        for slot in self.in_flight.of(origin).into_iter().chain(held) {
            slot.forget();
        }
        self.slots.remove(origin);
    }

    /// What is known of an origin, fetched where that is due. Waits for a fetch at most `wait`.
    ///
    /// # Errors
    /// A fetch was due and could not begin, for no reason of the origin's.
    pub async fn lookup<F: Fetch>(
        self: &Arc<Self>,
        query: &Query<'_, F>,
        wait: Duration,
    ) -> Result<Lookup, LookupError> {
        let Query { origin, policy, .. } = *query;
        let slot = self.slot(origin);
        let mut waited = Duration::ZERO;
        // A site that fails may have a copy there that counts.
        let is_lacking = || {
            let state = slot.state.load();
            state.failing_since().is_some() || state.due(SystemTime::now(), policy) == Due::Now
        };
        if !slot.is_recalled() && is_lacking() {
            let started = Instant::now();
            // A disk that hangs leaves time for the site to be asked.
            let patience = wait.min(MAX_RECALL);
            let _ = tokio::time::timeout(patience, self.recall(&slot, origin, policy)).await;
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

    /// Brings back what is known on disk. Where that cannot be read now, the slot goes on without it,
    /// and the next lookup tries again.
    async fn recall(&self, slot: &Arc<Slot>, origin: &Origin, policy: &Policy) {
        let _turn = slot.turn.lock().await;
        let Some(disk) = self.disk.as_ref().filter(|_| !slot.is_recalled()) else {
            return;
        };
        let forgotten = slot.forgotten();
        match disk.recall(origin).await {
            Ok(None) => slot.set_recalled(),
            Ok(Some(earlier)) => {
                let earlier = self.brought_up_to_date(earlier, policy).await;
                slot.state.rcu(|state| match state.is_known() {
                    // It was read before it was forgotten.
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

    /// What was known, in the reading of `policy`, and with failures due that a reload may have mended.
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

    /// What is known, in the reading of `policy`, where a reload has changed whose reading holds: the
    /// first lookup after it reads the copies anew, and the others wait for that. Nothing is fetched.
    async fn reread(&self, slot: &Arc<Slot>, origin: &Origin, policy: &Policy) -> Arc<OriginState> {
        let _turn = slot.turn.lock().await;
        loop {
            let state = slot.state.load_full();
            if state.is_under(policy) {
                return state;
            }
            let (earlier, policy) = (state.clone(), *policy);
            let reread = at_leisure(state.is_large(), move || earlier.under(&policy)).await;
            // A panic has been reported; what cannot be read allows nothing.
            let reread = Arc::new(reread.unwrap_or_else(OriginState::unknown));
            let before = slot.state.compare_and_swap(&state, reread.clone());
            // Else a fetch has ended meanwhile, and its result counts.
            if Arc::ptr_eq(&before, &state) {
                self.weigh_anew(origin, slot);
                return reread;
            }
        }
    }

    /// Sets right what was noted by a clock that has been set since.
    fn watch_clock(&self, now: SystemTime) {
        let Some(jump) = self.clocks.look(now) else {
            return;
        };
        let held = self.slots.iter().map(|(origin, held)| (origin, held.slot));
        for (origin, slot) in held.chain(self.in_flight.slots()) {
            let before = slot.state.rcu(|state| state.after_jump(&jump));
            let state = slot.state.load_full();
            // The file has to know it, too, by the next start.
            if let Some(disk) = self
                .disk
                .as_ref()
                .filter(|_| before.failing_since() != state.failing_since())
            {
                disk.keep(&origin, state, slot.is_recalled());
            }
        }
    }

    /// Puts a slot in again, because its weight is another one now.
    fn weigh_anew(&self, origin: &Origin, slot: &Arc<Slot>) {
        // One that had to leave the memory meanwhile must not take the place of the one that came.
        let is_another = |held: Held| !Arc::ptr_eq(&held.slot, slot);
        if !self.slots.peek(origin).is_some_and(is_another) {
            self.slots.insert(origin.clone(), Held::new(origin, slot.clone()));
        }
    }

    fn slot(&self, origin: &Origin) -> Arc<Slot> {
        if let Some(held) = self.slots.get(origin) {
            return held.slot;
        }
        // One whose fetch still runs may have had to leave the memory.
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

/// Works off the asynchronous threads where that takes long. `None` after a panic there.
async fn at_leisure<T: Send + 'static>(takes_long: bool, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match takes_long {
        true => tokio::task::spawn_blocking(work).await.ok(),
        false => Some(work()),
    }
}

/// How long a lookup waits for what the disk knows.
const MAX_RECALL: Duration = Duration::from_secs(1);
/// Bytes of memory for the pages of the file on disk.
const MIN_PAGES: u64 = 64 * 1024;
const MAX_PAGES: u64 = 32 * 1024 * 1024;
/// What an origin with a file of common size weighs, to size the cache's tables by.
const TYPICAL_WEIGHT: u64 = 4096;
/// A part of the cache has room for several files of the largest kind: a file that fits into
/// none would be fetched anew for each request.
const MIN_SHARD: u64 = 8 * 1024 * 1024;

#[cfg(test)]
mod tests;
