//! Connections to origins that wait for their next request. Nothing watches them: one is looked at before it is used, and
//! those that the origin closed or that waited too long are dropped from time to time.

use std::{
    collections::HashMap,
    net::SocketAddr,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::{Duration, Instant},
};

use pingora::protocols::Stream;
use tokio::io::{AsyncRead as _, ReadBuf};

use crate::origin::{Host, Origin, Scheme};

/// What a connection is good for: requests to this address and, over TLS, to the host whose certificate was checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    address: SocketAddr,
    tls: Option<Host>,
}

/// Kept connections, of which the latest is used first.
#[derive(Debug)]
pub struct Pool<T> {
    kept: Mutex<Kept<T>>,
    max: usize,
}

#[derive(Debug)]
struct Kept<T> {
    by_key: HashMap<Key, Vec<Idle<T>>>,
    count: usize,
}

#[derive(Debug)]
struct Idle<T> {
    connection: T,
    until: Instant,
}

/// What can be kept.
pub trait Keep {
    /// Whether the connection can still be used.
    fn is_open(&mut self) -> bool;
}

// === impl Key ===

impl Key {
    pub fn new(origin: &Origin, address: SocketAddr) -> Self {
        Self {
            address,
            tls: (origin.scheme == Scheme::Https).then(|| origin.host.clone()),
        }
    }
}

// === impl Pool ===

impl<T: Keep> Pool<T> {
    /// One that keeps at most `max` connections.
    pub fn new(max: usize) -> Self {
        Self {
            kept: Mutex::new(Kept {
                by_key: HashMap::new(),
                count: 0,
            }),
            max,
        }
    }

    /// Takes a connection out, one that is open at `now`.
    pub fn take(&self, key: &Key, now: Instant) -> Option<T> {
        let mut kept = self.lock();
        loop {
            let idle = kept.by_key.get_mut(key)?.pop();
            let Some(mut idle) = idle else {
                kept.by_key.remove(key);
                return None;
            };
            kept.count -= 1;
            if idle.until > now && idle.connection.is_open() {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection for at most `time` from `now`. Where there are too many, the one that would end first makes room.
    pub fn keep(&self, key: Key, connection: T, time: Duration, now: Instant) {
        let mut kept = self.lock();
        if kept.count >= self.max {
            // In halves, so that it is not looked for the oldest each time.
            let mut ends: Vec<Instant> = kept.by_key.values().flatten().map(|idle| idle.until).collect();
            let half = ends.len() / 2;
            let (_, median, _) = ends.select_nth_unstable(half);
            let median = *median;
            kept.retain(|idle| idle.until > median);
        }
        kept.count += 1;
        let until = now + time;
        kept.by_key.entry(key).or_default().push(Idle { connection, until });
    }

    /// Drops what cannot be used any more. How many are left.
    pub fn sweep(&self, now: Instant) -> usize {
        let mut kept = self.lock();
        kept.retain(|idle| idle.until > now && idle.connection.is_open());
        kept.count
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Kept ===

impl<T> Kept<T> {
    fn retain(&mut self, mut stays: impl FnMut(&mut Idle<T>) -> bool) {
        let mut count = 0;
        self.by_key.retain(|_, idle| {
            idle.retain_mut(&mut stays);
            count += idle.len();
            !idle.is_empty()
        });
        self.count = count;
    }
}

impl Keep for Stream {
    /// An origin that has closed, or that says something without being asked, gets no further request.
    fn is_open(&mut self) -> bool {
        let mut space = [0; 1];
        let mut read = ReadBuf::new(&mut space);
        let mut nobody = Context::from_waker(Waker::noop());
        Pin::new(self).poll_read(&mut nobody, &mut read).is_pending()
    }
}
