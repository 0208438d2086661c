//! How many connections of those who ask there are at once. Who comes when all seats are taken gets that of whoever has
//! been idle for the longest time, or does not take its answer; and one address has no more than half of them.

use std::{
    collections::BTreeMap,
    net::IpAddr,
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
    /// Where its client comes from; `None` for the socket beside the copies.
    address: Option<IpAddr>,
    /// Whether an answer is being made.
    answering: AtomicBool,
    /// Since when some of an answer waits for the client to take it, as in `used`, and one more; 0 where none does.
    sending: AtomicU64,
    /// Milliseconds from the beginning to when the last answer was begun.
    used: AtomicU64,
    /// Asks whoever is here to leave.
    leave: CancellationToken,
}

/// Held while an answer is made.
pub(super) struct Answering<'a>(&'a Seat);

// === impl Seats ===

impl Seats {
    /// A seat for a client at `address`, perhaps after a moment. `None` where nobody gets up for it, or who comes from there
    /// has as many as one place may.
    pub(super) async fn take(&self, address: Option<IpAddr>) -> Option<Seat> {
        tokio::time::timeout(MAX_WAIT, self.make_room_for(address)).await.ok()?;
        let place = match self.free.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                let _turn = self.waiting.try_acquire().ok()?;
                self.ask_somebody_to_leave(|_| true);
                let wait = tokio::time::timeout(MAX_WAIT, self.free.clone().acquire_owned());
                // The semaphore is never closed.
                wait.await.ok()?.ok()?
            }
        };
        let state = Arc::new(State {
            address,
            ..State::default()
        });
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

    /// Waits until somebody gets up who comes from there, where that is as many as may.
    async fn make_room_for(&self, address: Option<IpAddr>) {
        let from_there = |state: &&Arc<State>| state.address == address;
        let is_full = || lock(&self.taken).values().filter(from_there).count() >= MAX_OF_ONE;
        while is_full() && !self.ask_somebody_to_leave(from_there) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// `false` where everybody is busy.
    fn ask_somebody_to_leave(&self, who: impl Fn(&&Arc<State>) -> bool) -> bool {
        let now = millis_since(self.begun);
        let taken = lock(&self.taken);
        let idle = taken
            .values()
            .filter(who)
            .filter(|state| state.is_idle(now) && !state.leave.is_cancelled());
        match idle.min_by_key(|state| state.used.load(Ordering::Relaxed)) {
            Some(longest) => {
                longest.leave.cancel();
                true
            }
            None => false,
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
        let since = if sending { millis_since(self.begun) + 1 } else { 0 };
        self.state.sending.store(since, Ordering::Relaxed);
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
    /// Whether somebody else may have the seat: nothing is asked, or the client does not take the answer.
    fn is_idle(&self, now: u64) -> bool {
        let sending = self.sending.load(Ordering::Relaxed);
        !self.answering.load(Ordering::Relaxed) && (sending == 0 || now.saturating_sub(sending) > TO_TAKE)
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
/// Of which so many may be of one address.
const MAX_OF_ONE: usize = SEATS / 2;
/// Milliseconds in which a client takes what is sent to it, where others wait for its seat.
const TO_TAKE: u64 = 1000;
const PAUSE: Duration = Duration::from_millis(50);
/// How long somebody waits for a seat.
const MAX_WAIT: Duration = Duration::from_secs(5);
