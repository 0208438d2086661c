//! Keeps a [`Limiter`](crate::pace::Limiter) for each origin, and wakes requests when they may be sent.
//!
//! In a fleet, a request that gets its turn also reserves a slot (a time) on the fleet's server ([`SharedPacer`]).

mod fleet_pace;
mod fleet_slot;
mod origin_pacer;

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use self::origin_pacer::{OriginPacer, State, Waiting, WaitingRequest};
pub(crate) use self::{
    fleet_pace::FleetPace,
    origin_pacer::{TooEarly, Turn},
};
use crate::{
    origin::Origin,
    pace::{Later, MAX_GAP, PaceLimits, Policy},
};

pub(crate) struct Pacer {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    waiting: Arc<Waiting>,
    /// Whether requests are sent without waiting, because a reload removed the limits.
    is_lifted: AtomicBool,
    /// The limits after the last reload. `None` if there was no reload, or if it removed the limits.
    reloaded: watch::Sender<Option<Policy>>,
}

/// The pacer of this robotgate and, in a fleet, the fleet's pace. Requests wait for both.
#[derive(Debug, Clone)]
pub(crate) struct SharedPacer {
    pub(crate) local: Arc<Pacer>,
    pub(crate) fleet: Option<FleetPace>,
}

#[derive(Default)]
struct Shard {
    pacers: HashMap<Origin, Arc<OriginPacer>>,
    /// From this many origins on, [`make_room`](Self::make_room) looks for origins that can be removed.
    sweep_at: usize,
}

// === impl Pacer ===

impl Pacer {
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

    /// Applies new limits after a reload, also to requests that already wait.
    pub(crate) fn reconfigure(&self, policy: &Policy) {
        self.waiting.most.store(policy.max_waiting, Ordering::Relaxed);
        self.each(|pacer| pacer.reconfigure(policy));
        self.reloaded.send_replace(Some(*policy));
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.now.load(Ordering::Relaxed)
    }

    /// Waits until a request of `bot` may be sent. If the future is dropped before that, the next request gets the
    /// turn.
    pub(crate) async fn turn(&self, origin: &Origin, bot: &str, limits: PaceLimits) -> Result<Turn, TooEarly> {
        let pacer = self.pacer(origin);
        if self.is_lifted() {
            return Ok(pacer.begin());
        }
        WaitingRequest::enter(pacer, bot, limits, &self.waiting)?.turn().await
    }

    /// Returns when a request of `bot` could be sent, or `None` if it could be sent now. Reserves nothing.
    pub(crate) fn not_before(&self, origin: &Origin, bot: &str, limits: &PaceLimits) -> Option<Later> {
        let pacer = self.shard(origin).pacers.get(origin)?.clone();
        pacer.state.lock().limiter.not_before(now(), &bot.into(), limits)
    }

    /// Records a request that was sent without a turn. A gap follows it too.
    pub(crate) fn note_request(&self, origin: &Origin) {
        let pacer = self.pacer(origin);
        pacer.note_request();
    }

    /// Records a 429 or 503 to a request that began at `began`. Returns the random number (0 to 1) that set the jitter
    /// of the pause.
    pub(crate) fn note_busy(&self, origin: &Origin, began: Instant, asked: Option<Duration>) -> f64 {
        self.pacer(origin).note_busy(began, asked)
    }

    /// Pauses requests to the origin for `left`, because the fleet reported this pause. Does nothing if this robotgate
    /// sent the origin no requests lately: the next request then learns of the pause when it asks the fleet's server
    /// for a slot.
    pub(crate) fn pause(&self, origin: &Origin, left: Duration) {
        let pacer = self.shard(origin).pacers.get(origin).cloned();
        if let Some(pacer) = pacer {
            pacer.pause(left);
        }
    }

    fn is_lifted(&self) -> bool {
        self.is_lifted.load(Ordering::Relaxed)
    }

    /// Returns the time of tokio's clock, which tests can advance.
    pub(crate) fn now() -> Instant {
        now()
    }

    /// Sends all waiting requests immediately, and later requests without a wait, because a reload has removed
    /// `[pace]`.
    pub(crate) fn lift(&self) {
        self.is_lifted.store(true, Ordering::Relaxed);
        self.each(OriginPacer::release);
        self.reloaded.send_replace(None);
    }

    fn each(&self, act: impl Fn(&Arc<OriginPacer>)) {
        for shard in &self.shards {
            let pacers: Vec<_> = shard.lock().pacers.values().cloned().collect();
            pacers.iter().for_each(&act);
        }
    }

    #[cfg(test)]
    fn origins(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().pacers.len()).sum()
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
        self.shards[hash % self.shards.len()].lock()
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
    /// If the shard has at least `sweep_at` origins, removes origins that no request uses: first those whose limiters
    /// can no longer delay a request. If [`MAX_SHARD`] or more are left, also removes those without a pause. If this is
    /// not enough, removes all that no request uses.
    fn make_room(&mut self) {
        if self.pacers.len() < self.sweep_at.max(MIN_SWEEP) {
            return;
        }
        let now = now();
        // Only the map refers to a pacer that no request uses. The shard is locked, so no reference can be added.
        let forget = |pacers: &mut HashMap<Origin, Arc<OriginPacer>>, is_dispensable: fn(&State, Instant) -> bool| {
            pacers.retain(|_, pacer| Arc::strong_count(pacer) > 1 || !is_dispensable(&pacer.state.lock(), now));
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

// === impl SharedPacer ===

impl SharedPacer {
    /// Waits like [`Pacer::turn`] and, in a fleet, for a slot from the fleet's server.
    pub(crate) async fn turn(&self, origin: &Origin, bot: &str, limits: PaceLimits) -> Result<Turn, TooEarly> {
        match &self.fleet {
            Some(fleet) => fleet.turn(&self.local, origin, bot, limits).await,
            None => self.local.turn(origin, bot, limits).await,
        }
    }

    /// Does the same as [`Pacer::not_before`] and, in a fleet, also asks the fleet's server.
    pub(crate) async fn not_before(&self, origin: &Origin, bot: &str, limits: &PaceLimits) -> Option<Later> {
        match &self.fleet {
            Some(fleet) => fleet.not_before(&self.local, origin, bot, limits).await,
            None => self.local.not_before(origin, bot, limits),
        }
    }

    pub(crate) fn note_request(&self, origin: &Origin) {
        self.local.note_request(origin);
        if let Some(FleetPace { fleet, .. }) = &self.fleet {
            fleet.note_request(origin);
        }
    }

    /// Records a 429 or 503 here and on the fleet's server; see [`Pacer::note_busy`].
    pub(crate) fn note_busy(&self, origin: &Origin, began: Instant, asked: Option<Duration>) {
        let spread = self.local.note_busy(origin, began, asked);
        if let Some(FleetPace { fleet, .. }) = &self.fleet {
            fleet.note_busy(origin, now().saturating_duration_since(began), asked, spread);
        }
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

const SHARDS: usize = 16;
/// A shard with fewer than `MIN_SWEEP` origins removes none. A shard grows beyond `MAX_SHARD` origins only while
/// requests use all of them.
const MIN_SWEEP: usize = 64;
const MAX_SHARD: usize = 16 * 1024;

#[cfg(test)]
mod tests;
