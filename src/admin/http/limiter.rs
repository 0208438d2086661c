//! How many connections of those who ask there are at once. Who comes when all seats are taken gets that of whoever has
//! been idle for the longest time, or does not take its answer; and one address has no more than half of them.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The seats, and who has one.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    taken: Arc<Mutex<Vec<Arc<State>>>>,
    free: Arc<Semaphore>,
    /// Those that may wait for a seat.
    waiting: Semaphore,
}

/// A seat that is had, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    state: Arc<State>,
    taken: Arc<Mutex<Vec<Arc<State>>>>,
    _slot: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct State {
    /// Where its client comes from; `None` for the socket beside the copies.
    address: Option<IpAddr>,
    doing: Mutex<Doing>,
    /// Asks whoever is here to leave.
    leave: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
struct Doing {
    /// When the last answer was begun.
    last: Instant,
    /// Whether an answer is being made.
    answering: bool,
    /// Since when some of an answer waits for the client to take it.
    sending: Option<Instant>,
}

/// Held while an answer is made.
pub(super) struct ResponseGuard<'a>(&'a ConnectionPermit);

// === impl ConnectionLimiter ===

impl ConnectionLimiter {
    /// A seat for a client at `address`, perhaps after a moment. `None` where nobody gets up for it, or who comes from there
    /// has as many as one place may.
    pub(super) async fn take(&self, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        tokio::time::timeout(MAX_WAIT, self.make_room_for(address)).await.ok()?;
        let slot = match self.free.clone().try_acquire_owned() {
            Ok(slot) => slot,
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
            doing: Mutex::new(Doing {
                last: Instant::now(),
                answering: false,
                sending: None,
            }),
            leave: CancellationToken::new(),
        });
        lock(&self.taken).push(state.clone());
        Some(ConnectionPermit {
            state,
            taken: self.taken.clone(),
            _slot: slot,
        })
    }

    /// Waits until somebody gets up who comes from there, where that is as many as may.
    async fn make_room_for(&self, address: Option<IpAddr>) {
        let from_there = |state: &&Arc<State>| state.address == address;
        let is_full = || lock(&self.taken).iter().filter(from_there).count() >= MAX_OF_ONE;
        while is_full() && !self.ask_somebody_to_leave(from_there) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// `false` where everybody is busy.
    fn ask_somebody_to_leave(&self, who: impl Fn(&&Arc<State>) -> bool) -> bool {
        let taken = lock(&self.taken);
        let staying = taken.iter().filter(who).filter(|state| !state.leave.is_cancelled());
        let idle = staying.filter_map(|state| Some((lock(&state.doing).idle_since()?, state)));
        let longest = idle.min_by_key(|(since, _)| *since);
        longest.map(|(_, state)| state.leave.cancel()).is_some()
    }
}

impl Default for ConnectionLimiter {
    fn default() -> Self {
        Self {
            taken: Arc::default(),
            free: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            waiting: Semaphore::new(MAX_CONNECTIONS),
        }
    }
}

// === impl ConnectionPermit ===

impl ConnectionPermit {
    /// Notes that an answer is being made.
    pub(super) fn answer(&self) -> ResponseGuard<'_> {
        let mut now = lock(&self.state.doing);
        (now.last, now.answering) = (Instant::now(), true);
        ResponseGuard(self)
    }

    /// Notes whether some of an answer waits to be taken.
    pub(super) fn set_sending(&self, sending: bool) {
        lock(&self.state.doing).sending = sending.then(Instant::now);
    }

    /// Waits until somebody else needs the seat, which is asked for only while it is idle.
    pub(super) async fn wanted(&self) {
        self.state.leave.cancelled().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        lock(&self.taken).retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

impl Drop for ResponseGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.state.doing).answering = false;
    }
}

// === impl Doing ===

impl Doing {
    /// When it was last used, where somebody else may have the seat: nothing is asked, or the client does not take the
    /// answer.
    fn idle_since(&self) -> Option<Instant> {
        let waits = self.sending.is_some_and(|since| since.elapsed() <= TO_TAKE);
        (!self.answering && !waits).then_some(self.last)
    }
}

fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in it changes whole.
    locked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connections at once, and as many that wait.
const MAX_CONNECTIONS: usize = 64;
/// Of which so many may be of one address.
const MAX_OF_ONE: usize = MAX_CONNECTIONS / 2;
/// In which a client takes what is sent to it, where others wait for its seat.
const TO_TAKE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How long somebody waits for a seat.
const MAX_WAIT: Duration = Duration::from_secs(5);
