//! How many connections the admin listener has at once. Who comes when all seats are taken gets that of whoever has
//! been idle for the longest time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The seats, and who has one.
#[derive(Debug)]
pub(super) struct Seats {
    taken: Arc<Mutex<BTreeMap<u64, Arc<State>>>>,
    free: Arc<Semaphore>,
    /// Those that may wait for a seat.
    waiting: Semaphore,
    next: AtomicU64,
    begun: Instant,
}

/// A seat that is had, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    number: u64,
    state: Arc<State>,
    taken: Arc<Mutex<BTreeMap<u64, Arc<State>>>>,
    begun: Instant,
    _place: OwnedSemaphorePermit,
}

#[derive(Debug, Default)]
struct State {
    /// Whether an answer is being made.
    answering: AtomicBool,
    /// Whether some of an answer waits for the client to take it.
    sending: AtomicBool,
    /// Milliseconds from the beginning to when the last answer was begun.
    used: AtomicU64,
    /// Asks whoever is here to leave.
    leave: CancellationToken,
}

/// Held while an answer is made.
pub(super) struct Answering<'a>(&'a Seat);

// === impl Seats ===

impl Seats {
    /// A seat, perhaps after a moment. `None` where nobody gets up for it.
    pub(super) async fn take(&self) -> Option<Seat> {
        let place = match self.free.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                let _turn = self.waiting.try_acquire().ok()?;
                self.ask_somebody_to_leave();
                let wait = tokio::time::timeout(MAX_WAIT, self.free.clone().acquire_owned());
                // The semaphore is never closed.
                wait.await.ok()?.ok()?
            }
        };
        let state = Arc::new(State::default());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        state.used.store(millis_since(self.begun), Ordering::Relaxed);
        lock(&self.taken).insert(number, state.clone());
        Some(Seat {
            number,
            state,
            taken: self.taken.clone(),
            begun: self.begun,
            _place: place,
        })
    }

    fn ask_somebody_to_leave(&self) {
        let taken = lock(&self.taken);
        let idle = taken
            .values()
            .filter(|state| state.is_idle() && !state.leave.is_cancelled());
        if let Some(longest) = idle.min_by_key(|state| state.used.load(Ordering::Relaxed)) {
            longest.leave.cancel();
        }
    }
}

impl Default for Seats {
    fn default() -> Self {
        Self {
            taken: Arc::default(),
            free: Arc::new(Semaphore::new(SEATS)),
            waiting: Semaphore::new(SEATS),
            next: AtomicU64::new(0),
            begun: Instant::now(),
        }
    }
}

// === impl Seat ===

impl Seat {
    /// Notes that an answer is being made.
    pub(super) fn answer(&self) -> Answering<'_> {
        self.state.used.store(millis_since(self.begun), Ordering::Relaxed);
        self.state.answering.store(true, Ordering::Relaxed);
        Answering(self)
    }

    /// Notes whether some of an answer waits to be taken.
    pub(super) fn set_sending(&self, sending: bool) {
        self.state.sending.store(sending, Ordering::Relaxed);
    }

    /// Waits until somebody else needs the seat, which is asked for only while it is idle.
    pub(super) async fn wanted(&self) {
        self.state.leave.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.taken).remove(&self.number);
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.state.answering.store(false, Ordering::Relaxed);
    }
}

// === impl State ===

impl State {
    fn is_idle(&self) -> bool {
        !self.answering.load(Ordering::Relaxed) && !self.sending.load(Ordering::Relaxed)
    }
}

fn lock<T>(taken: &Mutex<T>) -> MutexGuard<'_, T> {
    // Entries come and go whole.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Connections at once, and as many that wait.
const SEATS: usize = 64;
/// How long somebody waits for a seat.
const MAX_WAIT: Duration = Duration::from_secs(5);
