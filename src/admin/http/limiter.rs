//! Bounds the connections of operators. A new connection beyond the bound closes the one that has been idle for the
//! longest time, or whose client does not read its response. One address may have half of the connections.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The connections that are open, and how many more may be.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    taken: Arc<Mutex<Vec<Arc<State>>>>,
    free: Arc<Semaphore>,
    /// Connections that may wait for a permit.
    waiting: Semaphore,
}

/// Counts a connection until it is dropped.
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
    activity: Mutex<Activity>,
    /// Cancelled when the connection has to close for another one.
    closing: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
struct Activity {
    /// When the last answer was begun.
    last: Instant,
    /// Whether an answer is being made.
    responding: bool,
    /// Since when some of an answer waits for the client to take it.
    sending: Option<Instant>,
}

/// Marks the connection as busy while a response is made.
pub(super) struct ResponseGuard<'a>(&'a ConnectionPermit);

// === impl ConnectionLimiter ===

impl ConnectionLimiter {
    /// A permit for a client at `address`, after a wait if need be. `None` if no other connection can be closed for it, or
    /// this address has as many connections as it may have.
    pub(super) async fn take(&self, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        tokio::time::timeout(MAX_WAIT, self.make_room_for(address)).await.ok()?;
        let slot = match self.free.clone().try_acquire_owned() {
            Ok(slot) => slot,
            Err(_) => {
                let _turn = self.waiting.try_acquire().ok()?;
                self.close_longest_idle(|_| true);
                let wait = tokio::time::timeout(MAX_WAIT, self.free.clone().acquire_owned());
                // The semaphore is never closed.
                wait.await.ok()?.ok()?
            }
        };
        let state = Arc::new(State {
            address,
            activity: Mutex::new(Activity {
                last: Instant::now(),
                responding: false,
                sending: None,
            }),
            closing: CancellationToken::new(),
        });
        lock(&self.taken).push(state.clone());
        Some(ConnectionPermit {
            state,
            taken: self.taken.clone(),
            _slot: slot,
        })
    }

    /// Waits until `address` has fewer connections than it may have, and closes its longest idle one.
    async fn make_room_for(&self, address: Option<IpAddr>) {
        let same_address = |state: &&Arc<State>| state.address == address;
        let is_full = || lock(&self.taken).iter().filter(same_address).count() >= MAX_OF_ONE;
        while is_full() && !self.close_longest_idle(same_address) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Closes the connection that has been idle for the longest time; `false` if all are busy.
    fn close_longest_idle(&self, who: impl Fn(&&Arc<State>) -> bool) -> bool {
        let taken = lock(&self.taken);
        let open = taken.iter().filter(who).filter(|state| !state.closing.is_cancelled());
        let idle = open.filter_map(|state| Some((lock(&state.activity).idle_since()?, state)));
        let longest = idle.min_by_key(|(since, _)| *since);
        longest.map(|(_, state)| state.closing.cancel()).is_some()
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
    pub(super) fn begin_response(&self) -> ResponseGuard<'_> {
        let mut now = lock(&self.state.activity);
        (now.last, now.responding) = (Instant::now(), true);
        ResponseGuard(self)
    }

    /// Notes whether some of an answer waits to be taken.
    pub(super) fn set_sending(&self, sending: bool) {
        lock(&self.state.activity).sending = sending.then(Instant::now);
    }

    /// Waits until the connection has to close for another one, which only happens while it is idle.
    pub(super) async fn wanted(&self) {
        self.state.closing.cancelled().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        lock(&self.taken).retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

impl Drop for ResponseGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.state.activity).responding = false;
    }
}

// === impl Activity ===

impl Activity {
    /// Since when the connection could be closed for another one: no response is being made, or the client does not
    /// read it. `None` while it is busy.
    fn idle_since(&self) -> Option<Instant> {
        let waits = self.sending.is_some_and(|since| since.elapsed() <= MAX_SENDING);
        (!self.responding && !waits).then_some(self.last)
    }
}

fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is complete before the lock is released.
    locked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connections at once, and as many that wait.
const MAX_CONNECTIONS: usize = 64;
/// Of which so many may be of one address.
const MAX_OF_ONE: usize = MAX_CONNECTIONS / 2;
/// A client that reads nothing for this long counts as idle.
const MAX_SENDING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection waits for a permit.
const MAX_WAIT: Duration = Duration::from_secs(5);
