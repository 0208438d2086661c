//! Keeps a [`Limiter`](crate::pace::Limiter) for each origin, and wakes requests when they have their turn.
//!
//! [`Limiter::next`](crate::pace::Limiter::next) decides which request of this gate (one running robotgate, as a member
//! of a fleet) is next. In a fleet, that request then gets its time from the server ([`SharedPacer`]).

mod fleet_pace;
mod origin_pacer;
mod shared_pacer;

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

use tokio::sync::watch;

use self::origin_pacer::{OriginPacer, State, Waiting, WaitingRequest};
pub(crate) use self::{
    fleet_pace::FleetPace,
    origin_pacer::{TooEarly, Turn},
    shared_pacer::SharedPacer,
};
use crate::{
    origin::Origin,
    pace::{Later, Limits, MAX_GAP, Policy},
};

/// The limiters of all origins.
pub(crate) struct Pacer {
    shards: Box<[Mutex<Shard>]>,
    /// Spreads origins over the shards.
    hasher: RandomState,
    waiting: Arc<Waiting>,
    /// Whether requests are sent without waiting, because the limits were removed.
    is_lifted: AtomicBool,
    /// Notifies the requests that wait for a slot of the fleet of new limits: `None` if the limits were removed.
    reloaded: watch::Sender<Option<Policy>>,
}

#[derive(Default)]
struct Shard {
    pacers: HashMap<Origin, Arc<OriginPacer>>,
    /// Number of origins at which the next sweep removes idle origins.
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
            reloaded: watch::Sender::new(None),
        }
    }

    /// Applies the limits of another policy to later requests and to waiting requests.
    pub(crate) fn reconfigure(&self, policy: &Policy) {
        self.waiting.most.store(policy.max_waiting, Ordering::Relaxed);
        self.each(|pacer| pacer.reconfigure(policy));
        self.reloaded.send_replace(Some(*policy));
    }

    /// Returns the number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.now.load(Ordering::Relaxed)
    }

    /// Waits for the turn of a request of `bot`. Cancel safe: if the caller stops waiting, the next request gets the
    /// turn.
    ///
    /// # Errors
    /// Fails if the wait would be too long, or too many requests wait.
    pub(crate) async fn turn(&self, origin: &Origin, bot: &str, limits: Limits) -> Result<Turn, TooEarly> {
        let pacer = self.pacer(origin);
        if self.is_lifted() {
            return Ok(pacer.begin());
        }
        WaitingRequest::enter(pacer, bot, limits, &self.waiting)?.turn().await
    }

    /// Returns when a request of `bot` could be sent, or `None` if it could be sent now. Reserves nothing.
    pub(crate) fn not_before(&self, origin: &Origin, bot: &str, limits: &Limits) -> Option<Later> {
        let pacer = self.shard(origin).pacers.get(origin)?.clone();
        pacer.state().limiter.not_before(now(), &bot.into(), limits)
    }

    /// Records a request that is sent without a turn.
    pub(crate) fn note_request(&self, origin: &Origin) {
        let pacer = self.pacer(origin);
        pacer.note_request();
    }

    /// Records a response 429 or 503 to a request that began at `began`. `asked` is the value of its `Retry-After`.
    /// Returns the spread that sets the jitter.
    pub(crate) fn note_busy(&self, origin: &Origin, began: Instant, asked: Option<Duration>) -> f64 {
        self.pacer(origin).note_busy(began, asked)
    }

    /// Records a pause that another gate reported, if this gate knows the origin. Otherwise, the server reports the
    /// pause with the first request.
    pub(crate) fn pause(&self, origin: &Origin, left: Duration) {
        let pacer = self.shard(origin).pacers.get(origin).cloned();
        if let Some(pacer) = pacer {
            pacer.pause(left);
        }
    }

    /// Returns whether all requests are sent without waiting.
    fn is_lifted(&self) -> bool {
        self.is_lifted.load(Ordering::Relaxed)
    }

    /// Returns the time of tokio's clock, which tests can advance.
    pub(crate) fn now() -> Instant {
        now()
    }

    /// Gives all waiting requests their turn, and lets later requests be sent without waiting.
    pub(crate) fn lift(&self) {
        self.is_lifted.store(true, Ordering::Relaxed);
        self.each(OriginPacer::release);
        self.reloaded.send_replace(None);
    }

    fn each(&self, act: impl Fn(&Arc<OriginPacer>)) {
        for shard in &self.shards {
            let pacers: Vec<_> = lock(shard).pacers.values().cloned().collect();
            pacers.iter().for_each(&act);
        }
    }

    /// Returns the number of origins.
    #[cfg(test)]
    fn origins(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).pacers.len()).sum()
    }

    fn pacer(&self, origin: &Origin) -> Arc<OriginPacer> {
        let mut shard = self.shard(origin);
        if let Some(pacer) = shard.pacers.get(origin) {
            return pacer.clone();
        }
        shard.make_room();
        let pacer = Arc::<OriginPacer>::default();
        shard.pacers.insert(origin.clone(), pacer.clone());
        pacer
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
    /// Removes idle origins. If the shard is still full, removes unused origins, and then all origins that no request
    /// uses.
    fn make_room(&mut self) {
        if self.pacers.len() < self.sweep_at.max(MIN_SWEEP) {
            return;
        }
        let now = now();
        // The shard is locked, so a pacer with a single reference cannot get another.
        let forget = |pacers: &mut HashMap<Origin, Arc<OriginPacer>>, is_dispensable: fn(&State, Instant) -> bool| {
            pacers.retain(|_, pacer| Arc::strong_count(pacer) > 1 || !is_dispensable(&pacer.state(), now));
        };
        forget(&mut self.pacers, |state, now| state.limiter.is_idle(now, MAX_GAP));
        if self.pacers.len() >= MAX_SHARD {
            forget(&mut self.pacers, |state, now| state.limiter.is_unused(now));
        }
        if self.pacers.len() >= MAX_SHARD {
            forget(&mut self.pacers, |_, _| true);
        }
        self.sweep_at = (2 * self.pacers.len()).min(MAX_SHARD);
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Code under these locks cannot panic halfway through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SHARDS: usize = 16;
/// A shard with fewer than `MIN_SWEEP` origins removes none. It has more than `MAX_SHARD` only if more are in use.
const MIN_SWEEP: usize = 64;
const MAX_SHARD: usize = 16 * 1024;

#[cfg(test)]
mod tests;
