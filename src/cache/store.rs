//! The copies of all origins, in memory: looks up what holds and sees to it that one fetch per
//! origin runs at a time, which the other requests wait for.
//!
//! A fetch runs in a task of its own, so a client that goes away cancels nothing. This module
//! decides nothing: the state machine does.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use arc_swap::ArcSwap;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter, sync::Cache, sync::DefaultLifecycle};
use tokio::sync::watch;

use super::{Answer, Due, Failure, Fetch, FetchError, Fetched, OriginState, Policy};
use crate::origin::Origin;

/// How a request came by the copy that it was decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheStatus {
    /// It was there.
    Hit,
    /// This request fetched it.
    Miss,
    /// It was there and too old, and the fetch that should have replaced it failed or was waited
    /// for in vain.
    Stale,
    /// Another request was fetching it already.
    Collapsed,
}

/// What a lookup found.
#[derive(Debug)]
pub struct Lookup {
    pub state: Arc<OriginState>,
    pub status: CacheStatus,
    /// How long the request waited for a fetch.
    pub waited: Duration,
    /// When the answer was looked up; it holds at this time.
    pub at: SystemTime,
    /// Whether a fetch was still running when the wait was over. What is known is too old then.
    pub pending: bool,
}

/// The copies of all origins.
#[derive(Debug)]
pub struct Store {
    slots: Cache<Origin, Held, HeldWeight>,
    spread: RandomState,
}

/// A slot as the cache holds it. The weight is that of the time when it was put there: the
/// cache's books would not balance if it changed by itself.
#[derive(Debug, Clone)]
struct Held {
    slot: Arc<Slot>,
    weight: u64,
}

#[derive(Debug)]
struct Slot {
    state: ArcSwap<OriginState>,
    /// Of the fetch that runs, if one does. It closes when the state is in place.
    flight: Mutex<Option<watch::Receiver<()>>>,
    /// Held by the lookup that reads the state anew.
    rereading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct HeldWeight;

// === impl CacheStatus ===

impl CacheStatus {
    /// The status as the log names it.
    pub fn as_str(self) -> &'static str {
        match self {
            CacheStatus::Hit => "hit",
            CacheStatus::Miss => "miss",
            CacheStatus::Stale => "stale",
            CacheStatus::Collapsed => "collapsed",
        }
    }
}

// === impl Lookup ===

impl Lookup {
    /// What holds. A copy past its time is never used: a fetch that is late is a failure.
    pub fn answer(&self, policy: &Policy) -> Answer<'_> {
        if self.pending {
            return self.state.answer_while_pending(PENDING, policy);
        }
        self.state.answer(self.at, policy)
    }
}

// === impl Store ===

impl Store {
    /// A store that holds about `max_bytes` of copies.
    pub fn new(max_bytes: u64) -> Self {
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
            spread: RandomState::new(),
        }
    }

    /// Changes how much is held. What is over the new bound goes as new copies come.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        self.slots.set_capacity(max_bytes);
    }

    /// Has every origin that fails asked again when it is next needed, whenever that would have
    /// been.
    pub fn retry_failures(&self) {
        for (_, held) in self.slots.iter() {
            held.slot.state.rcu(|state| state.retrying_now());
        }
    }

    /// How many origins are known.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// What is known of `origin`, fetched by `fetcher` where that is due. Waits for a fetch at
    /// most `wait`.
    pub async fn lookup<F: Fetch>(
        self: &Arc<Self>,
        origin: &Origin,
        fetcher: &Arc<F>,
        policy: &Policy,
        wait: Duration,
    ) -> Lookup {
        let slot = self.slot(origin);
        let mut state = slot.state.load_full();
        if !state.is_under(policy) {
            state = self.reread(&slot, origin, policy).await;
        }
        let now = SystemTime::now();
        match state.due(now, policy) {
            Due::No => Lookup::at_once(state, now, policy),
            Due::Background => {
                self.fly(&slot, origin, fetcher, policy);
                Lookup::at_once(state, now, policy)
            }
            Due::Now => self.wait_for(&slot, &state, origin, fetcher, policy, wait).await,
        }
    }

    async fn wait_for<F: Fetch>(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        state: &OriginState,
        origin: &Origin,
        fetcher: &Arc<F>,
        policy: &Policy,
        wait: Duration,
    ) -> Lookup {
        let started = Instant::now();
        let (mut landed, status) = self.fly(slot, origin, fetcher, policy);
        // `changed` fails when the sender is gone, which is the sign that is waited for.
        let pending = tokio::time::timeout(wait, async { while landed.changed().await.is_ok() {} })
            .await
            .is_err();
        let mut found = slot.state.load_full();
        if !found.is_under(policy) {
            // The fetch was begun before a reload.
            found = self.reread(slot, origin, policy).await;
        }
        Lookup {
            state: found,
            status: match pending && state.is_known() {
                true => CacheStatus::Stale,
                false => status,
            },
            waited: started.elapsed(),
            at: SystemTime::now(),
            pending,
        }
    }

    /// What is known, in the reading of `policy`, where a reload has changed whose reading holds: the
    /// first lookup after it reads the copies anew, and the others wait for that. Nothing is fetched.
    async fn reread(self: &Arc<Self>, slot: &Arc<Slot>, origin: &Origin, policy: &Policy) -> Arc<OriginState> {
        let _turn = slot.rereading.lock().await;
        loop {
            let state = slot.state.load_full();
            if state.is_under(policy) {
                return state;
            }
            let reread = if state.is_large() {
                let (state, policy) = (state.clone(), *policy);
                let reread = tokio::task::spawn_blocking(move || state.under(&policy)).await;
                // A panic has been reported; what cannot be read allows nothing.
                reread.unwrap_or_else(|_| OriginState::unknown())
            } else {
                state.under(policy)
            };
            let reread = Arc::new(reread);
            let before = slot.state.compare_and_swap(&state, reread.clone());
            // Else a fetch has landed meanwhile, and what it brought counts.
            if Arc::ptr_eq(&before, &state) {
                self.weigh_anew(origin.clone(), slot);
                return reread;
            }
        }
    }

    /// Joins the fetch that runs for `slot`, or starts one.
    fn fly<F: Fetch>(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        origin: &Origin,
        fetcher: &Arc<F>,
        policy: &Policy,
    ) -> (watch::Receiver<()>, CacheStatus) {
        let mut flight = slot.lock_flight();
        if let Some(landed) = flight.as_ref() {
            return (landed.clone(), CacheStatus::Collapsed);
        }
        // Between the caller's look and this lock a fetch may have landed.
        let (landing, landed) = watch::channel(());
        if slot.state.load().due(SystemTime::now(), policy) == Due::No {
            return (landed, CacheStatus::Collapsed);
        }
        *flight = Some(landed.clone());
        let landing = Landing {
            slot: slot.clone(),
            _open: landing,
        };
        let (store, fetcher) = (self.clone(), fetcher.clone());
        let (origin, policy) = (origin.clone(), *policy);
        tokio::spawn(async move {
            let fetched = fetcher.fetch(&origin).await;
            if fetched.is_large() {
                // Parsing takes long enough to keep other requests waiting.
                let land = move || store.land(origin, &landing.slot, fetched, &policy);
                // A panic has been reported; whoever waits goes on without a copy.
                let _ = tokio::task::spawn_blocking(land).await;
            } else {
                store.land(origin, &landing.slot, fetched, &policy);
            }
        });
        (landed, CacheStatus::Miss)
    }

    fn land(&self, origin: Origin, slot: &Arc<Slot>, fetched: Fetched, policy: &Policy) {
        let now = SystemTime::now();
        let spread = self.spread.hash_one((&origin, now)) as f64 / u64::MAX as f64;
        let state = slot.state.load().after(
            fetched.meaning(policy, now),
            fetched.status(),
            fetched.freshness(),
            now,
            spread,
            policy,
        );
        slot.state.store(Arc::new(state));
        self.weigh_anew(origin, slot);
    }

    /// Puts a slot in again, because its weight is another one now.
    fn weigh_anew(&self, origin: Origin, slot: &Arc<Slot>) {
        let held = Held::new(&origin, slot.clone());
        self.slots.insert(origin, held);
    }

    fn slot(&self, origin: &Origin) -> Arc<Slot> {
        let made = self.slots.get_or_insert_with(origin, || {
            Ok::<_, std::convert::Infallible>(Held::new(origin, Arc::default()))
        });
        match made {
            Ok(held) => held.slot,
            Err(never) => match never {},
        }
    }
}

impl Lookup {
    fn at_once(state: Arc<OriginState>, at: SystemTime, policy: &Policy) -> Self {
        let status = match state.answer(at, policy) {
            Answer::LastCopy(_) => CacheStatus::Stale,
            _ => CacheStatus::Hit,
        };
        Self {
            state,
            status,
            waited: Duration::ZERO,
            at,
            pending: false,
        }
    }
}

// === impl Slot ===

impl Default for Slot {
    fn default() -> Self {
        Self {
            state: ArcSwap::from_pointee(OriginState::unknown()),
            flight: Mutex::new(None),
            rereading: tokio::sync::Mutex::new(()),
        }
    }
}

impl Slot {
    fn lock_flight(&self) -> std::sync::MutexGuard<'_, Option<watch::Receiver<()>>> {
        // What the lock guards is replaced whole, so a panic cannot leave it half done.
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a flight when it is dropped, however its task ended: with a state, by a panic, or with
/// the runtime. The requests that wait go on then.
struct Landing {
    slot: Arc<Slot>,
    _open: watch::Sender<()>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        *self.slot.lock_flight() = None;
    }
}

// === impl Held ===

impl Held {
    fn new(origin: &Origin, slot: Arc<Slot>) -> Self {
        let name = match &origin.host {
            crate::origin::Host::Name(name) => name.len(),
            crate::origin::Host::Ip(_) => 0,
        };
        let bytes = name + size_of::<Origin>() + size_of::<Slot>() + slot.state.load().weight() + ENTRY_OVERHEAD;
        Self {
            slot,
            weight: bytes as u64,
        }
    }
}

// === impl HeldWeight ===

impl Weighter<Origin, Held> for HeldWeight {
    fn weight(&self, _origin: &Origin, held: &Held) -> u64 {
        held.weight
    }
}

/// What a fetch that is still running amounts to.
static PENDING: &Failure = &Failure {
    error: FetchError::Pending,
    retry_after: None,
};

/// What an origin with a file of common size weighs, to size the cache's tables by.
const TYPICAL_WEIGHT: u64 = 4096;
/// A part of the cache has room for several files of the largest kind: a file that fits into
/// none would be fetched anew for each request.
const MIN_SHARD: u64 = 8 * 1024 * 1024;
/// The cache's own bytes for an entry, about.
const ENTRY_OVERHEAD: usize = 96;

#[cfg(test)]
mod tests;
