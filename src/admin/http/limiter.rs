//! Bounds the connections of operators. When the limit is reached, a new connection closes the one that has been idle
//! for the longest time, or whose client does not read its response. One address can have at most half of the
//! connections.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The open connections, and permits for more.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    taken: Arc<Mutex<Vec<Arc<State>>>>,
    free: Arc<Semaphore>,
    /// Bounds the connections that wait for a permit.
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
    /// The client's address; `None` for the socket next to the cache file.
    address: Option<IpAddr>,
    activity: Mutex<Activity>,
    /// Cancelled when the connection has to close to make room for another connection.
    closing: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
struct Activity {
    /// When the last response began, or when the connection opened.
    last: Instant,
    /// Whether a response is being made.
    responding: bool,
    /// Since when part of a response waits for the client to read it.
    sending: Option<Instant>,
}

/// Marks the connection as busy until it is dropped.
pub(super) struct ResponseGuard<'a>(&'a ConnectionPermit);

// === impl ConnectionLimiter ===

impl ConnectionLimiter {
    /// Returns a permit for a client at `address`, after a wait if necessary. `None` if no other connection can be
    /// closed, or this address has its maximum of connections.
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

    /// Waits until `address` has fewer connections than its maximum. Meanwhile closes its longest idle connection.
    async fn make_room_for(&self, address: Option<IpAddr>) {
        let same_address = |state: &&Arc<State>| state.address == address;
        let is_full = || lock(&self.taken).iter().filter(same_address).count() >= MAX_OF_ONE;
        while is_full() && !self.close_longest_idle(same_address) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Closes the longest idle connection among those for which `who` returns true. Returns `false` if all of them are
    /// busy.
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
    /// Marks the connection as busy until the guard is dropped.
    pub(super) fn begin_response(&self) -> ResponseGuard<'_> {
        let mut now = lock(&self.state.activity);
        (now.last, now.responding) = (Instant::now(), true);
        ResponseGuard(self)
    }

    /// Records whether part of a response waits for the client to read it.
    pub(super) fn set_sending(&self, sending: bool) {
        lock(&self.state.activity).sending = sending.then(Instant::now);
    }

    /// Waits until the connection must close to make room for another one. This happens only while it is idle.
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
    /// Returns since when the connection can be closed to make room for another one: since then, no response is being
    /// made, or the client does not read it. `None` while the connection is busy.
    fn idle_since(&self) -> Option<Instant> {
        let waits = self.sending.is_some_and(|since| since.elapsed() <= MAX_SENDING);
        (!self.responding && !waits).then_some(self.last)
    }
}

fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is complete before the lock is released, so a panic leaves no half-made state.
    locked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of connections. As many more can wait for a permit.
const MAX_CONNECTIONS: usize = 64;
/// Maximum number of connections from one address.
const MAX_OF_ONE: usize = MAX_CONNECTIONS / 2;
/// A client that reads nothing for this long is considered idle.
const MAX_SENDING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection waits for a permit.
const MAX_WAIT: Duration = Duration::from_secs(5);
