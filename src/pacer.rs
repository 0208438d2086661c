//! Keeps a [`Limiter`] for each origin, and wakes requests when they have their turn.
//!
//! [`Limiter::next`] decides who goes, and only [`Lane::advance`] asks it. To share the pace with other gates, ask them
//! there.

mod lane;

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use self::lane::{Lane, Place, State, Waiting};
pub(crate) use self::lane::{TooEarly, Turn};
use crate::{
    origin::Origin,
    pace::{Limits, MAX_GAP},
};

/// The limiters of all origins.
pub(crate) struct Pacer {
    shards: Box<[Mutex<Shard>]>,
    /// Spreads origins over the shards.
    hasher: RandomState,
    waiting: Arc<Waiting>,
    /// Whether requests go without waiting, because the limits were removed.
    is_lifted: AtomicBool,
}

#[derive(Default)]
struct Shard {
    lanes: HashMap<Origin, Arc<Lane>>,
    /// Number of lanes at which the idle ones are removed.
    sweep_at: usize,
}

// === impl Pacer ===

impl Pacer {
    /// Creates a pacer for at most `max_waiting` waiting requests.
    pub(crate) fn new(max_waiting: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            waiting: Arc::new(Waiting {
                now: AtomicUsize::new(0),
                most: AtomicUsize::new(max_waiting),
            }),
            is_lifted: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_max_waiting(&self, max_waiting: usize) {
        self.waiting.most.store(max_waiting, Ordering::Relaxed);
    }

    /// Returns the number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.now.load(Ordering::Relaxed)
    }

    /// Waits for the turn of a request of `bot`. Cancel safe: if the caller stops waiting, the turn goes to the next.
    ///
    /// # Errors
    /// The wait would be too long, or too many requests wait.
    pub(crate) async fn turn(&self, origin: &Origin, bot: &str, limits: Limits) -> Result<Turn, TooEarly> {
        let lane = self.lane(origin);
        if self.is_lifted.load(Ordering::Relaxed) {
            return Ok(lane.begin());
        }
        Place::enter(lane, bot, limits, &self.waiting)?.turn().await
    }

    /// Returns when a request of `bot` could be sent; `None` for at once. It reserves nothing.
    pub(crate) fn not_before(&self, origin: &Origin, bot: &str, limits: &Limits) -> Option<Instant> {
        let lane = self.shard(origin).lanes.get(origin)?.clone();
        lane.state().limiter.not_before(now(), &bot.into(), limits)
    }

    /// Records a request that is sent without a turn.
    pub(crate) fn note_request(&self, origin: &Origin) {
        let lane = self.lane(origin);
        lane.note_request();
    }

    /// Records a response 429 or 503 to a request that began at `began`. `asked` is the value of its `Retry-After`.
    pub(crate) fn note_busy(&self, origin: &Origin, began: Instant, asked: Option<Duration>) {
        self.lane(origin).note_busy(began, asked);
    }

    /// Returns the time of tokio's clock, which tests can step.
    pub(crate) fn now() -> Instant {
        now()
    }

    /// Releases all waiting requests, and lets all later ones go at once.
    pub(crate) fn lift(&self) {
        self.is_lifted.store(true, Ordering::Relaxed);
        for shard in &self.shards {
            let lanes: Vec<_> = lock(shard).lanes.values().cloned().collect();
            lanes.iter().for_each(Lane::release);
        }
    }

    /// Returns the number of origins that are kept.
    #[cfg(test)]
    fn origins(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).lanes.len()).sum()
    }

    fn lane(&self, origin: &Origin) -> Arc<Lane> {
        let mut shard = self.shard(origin);
        if let Some(lane) = shard.lanes.get(origin) {
            return lane.clone();
        }
        shard.make_room();
        let lane = Arc::<Lane>::default();
        shard.lanes.insert(origin.clone(), lane.clone());
        lane
    }

    fn shard(&self, origin: &Origin) -> MutexGuard<'_, Shard> {
        let hash = self.hasher.hash_one(origin) as usize;
        lock(&self.shards[hash % self.shards.len()])
    }
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer")
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

// === impl Shard ===

impl Shard {
    /// Removes idle origins. If the shard is full, it also removes unused ones, and at last all that nobody holds.
    fn make_room(&mut self) {
        if self.lanes.len() < self.sweep_at.max(MIN_SWEEP) {
            return;
        }
        let now = now();
        // The shard is locked, so a lane with one reference cannot get another.
        let forget = |lanes: &mut HashMap<Origin, Arc<Lane>>, is_dispensable: fn(&State, Instant) -> bool| {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1 || !is_dispensable(&lane.state(), now));
        };
        forget(&mut self.lanes, |state, now| state.limiter.is_idle(now, MAX_GAP));
        if self.lanes.len() >= MAX_SHARD {
            forget(&mut self.lanes, |state, now| state.limiter.is_unused(now));
        }
        if self.lanes.len() >= MAX_SHARD {
            forget(&mut self.lanes, |_, _| true);
        }
        self.sweep_at = (2 * self.lanes.len()).min(MAX_SHARD);
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds a lock in the middle of a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SHARDS: usize = 16;
/// A shard with fewer origins keeps all of them; no shard keeps more than `MAX_SHARD`.
const MIN_SWEEP: usize = 64;
const MAX_SHARD: usize = 16 * 1024;

#[cfg(test)]
mod tests;
