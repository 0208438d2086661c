//! Limits the connections of operators. A new connection beyond the limit replaces the one that has been idle for the
//! longest time.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    taken: Arc<Mutex<Vec<Arc<State>>>>,
    free: Arc<Semaphore>,
    /// Limits how many connections wait for a permit of `free`.
    waiting: Semaphore,
}

#[derive(Debug)]
pub(super) struct ConnectionPermit {
    state: Arc<State>,
    taken: Arc<Mutex<Vec<Arc<State>>>>,
    _slot: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct State {
    /// `None` for the socket next to the cache file.
    address: Option<IpAddr>,
    activity: Mutex<Activity>,
    /// Cancelled when this connection has to make room for another one.
    closing: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
struct Activity {
    /// When work on the last response began. If there was no response yet: when the connection began.
    last: Instant,
    responding: bool,
    /// Since when bytes of a response wait for the client.
    sending: Option<Instant>,
}

pub(super) struct ResponseGuard<'a>(&'a ConnectionPermit);

// === impl ConnectionLimiter ===

impl ConnectionLimiter {
    /// Waits for a permit: up to [`MAX_WAIT`] if `address` has too many connections, and up to [`MAX_WAIT`] more if all
    /// permits are taken. Returns `None` if this time is not enough, or if too many connections already wait.
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
        self.taken.lock().push(state.clone());
        Some(ConnectionPermit {
            state,
            taken: self.taken.clone(),
            _slot: slot,
        })
    }

    /// If `address` has too many connections, closes the longest idle one. If none is idle, waits until one is idle or
    /// ends.
    async fn make_room_for(&self, address: Option<IpAddr>) {
        let same_address = |state: &&Arc<State>| state.address == address;
        let is_full = || self.taken.lock().iter().filter(same_address).count() >= MAX_OF_ONE;
        while is_full() && !self.close_longest_idle(same_address) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Looks only at connections for which `who` returns true. Returns false if none of these connections is idle.
    fn close_longest_idle(&self, who: impl Fn(&&Arc<State>) -> bool) -> bool {
        let taken = self.taken.lock();
        let open = taken.iter().filter(who).filter(|state| !state.closing.is_cancelled());
        let idle = open.filter_map(|state| Some((state.activity.lock().idle_since()?, state)));
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
    pub(super) fn begin_response(&self) -> ResponseGuard<'_> {
        let mut now = self.state.activity.lock();
        (now.last, now.responding) = (Instant::now(), true);
        ResponseGuard(self)
    }

    pub(super) fn set_sending(&self, sending: bool) {
        self.state.activity.lock().sending = sending.then(Instant::now);
    }

    /// Waits until this connection has to make room. The limiter chooses only idle connections.
    pub(super) async fn wanted(&self) {
        self.state.closing.cancelled().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.taken.lock().retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

impl Drop for ResponseGuard<'_> {
    fn drop(&mut self) {
        self.0.state.activity.lock().responding = false;
    }
}

// === impl Activity ===

impl Activity {
    /// Returns `last` if the connection is idle; `None` while a handler works on a response, and for [`MAX_SENDING`]
    /// after bytes have begun to wait for the client.
    fn idle_since(&self) -> Option<Instant> {
        let waits = self.sending.is_some_and(|since| since.elapsed() <= MAX_SENDING);
        (!self.responding && !waits).then_some(self.last)
    }
}

/// Maximum number of open connections, for the listener and the socket each. Also the maximum number of connections
/// that wait for a permit of `free`.
const MAX_CONNECTIONS: usize = 64;
/// Maximum number of connections from one address, or to the socket.
const MAX_OF_ONE: usize = MAX_CONNECTIONS / 2;
/// A client that has not read a response for this long counts as idle.
const MAX_SENDING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
const MAX_WAIT: Duration = Duration::from_secs(5);
