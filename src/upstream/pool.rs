//! Idle connections to origins. A connection is checked before it is used, and a periodic sweep drops those that are
//! closed or were idle for too long.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    net::SocketAddr,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Waker},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use pingora::protocols::Stream;
use tokio::io::{AsyncRead as _, ReadBuf};

use crate::origin::{Host, Origin, Scheme};

/// Requests with equal keys can use the same connection. Over TLS, the key has the host for which the certificate was
/// verified.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    address: SocketAddr,
    tls: Option<Host>,
}

/// A map in several parts (shards), each with its own lock.
#[derive(Debug)]
pub struct Shards<V> {
    shards: [Mutex<HashMap<PoolKey, V>>; SHARDS],
    hasher: RandomState,
}

/// Idle connections. Of those with the same key, the newest is taken first.
#[derive(Debug)]
pub struct Pool<T> {
    kept: Shards<Vec<Idle<T>>>,
    count: AtomicUsize,
    max: usize,
}

#[derive(Debug)]
struct Idle<T> {
    connection: T,
    until: Instant,
}

pub trait Keep {
    /// Returns whether another request can use the connection.
    fn is_open(&mut self) -> bool;
}

// === impl PoolKey ===

impl PoolKey {
    pub fn new(origin: &Origin, address: SocketAddr) -> Self {
        Self {
            address,
            tls: (origin.scheme == Scheme::Https).then(|| origin.host.clone()),
        }
    }
}

// === impl Shards ===

impl<V> Shards<V> {
    pub fn new() -> Self {
        Self {
            shards: Default::default(),
            hasher: RandomState::new(),
        }
    }

    /// Locks the shard that contains `key`.
    pub fn of(&self, key: &PoolKey) -> MutexGuard<'_, HashMap<PoolKey, V>> {
        // The cast loses nothing: the remainder is below `SHARDS`.
        self.shards[(self.hasher.hash_one(key) % SHARDS as u64) as usize].lock()
    }

    /// Locks the shards, one after the other.
    pub fn each(&self) -> impl Iterator<Item = MutexGuard<'_, HashMap<PoolKey, V>>> {
        self.shards.iter().map(Mutex::lock)
    }
}

// === impl Pool ===

impl<T: Keep> Pool<T> {
    /// Keeps at most about `max` connections, and never more than `max` + [`SHARDS`].
    pub fn new(max: usize) -> Self {
        Self {
            kept: Shards::new(),
            count: AtomicUsize::new(0),
            max,
        }
    }

    pub fn take(&self, key: &PoolKey, now: Instant) -> Option<T> {
        loop {
            let mut shard = self.kept.of(key);
            let Some(mut idle) = shard.get_mut(key)?.pop() else {
                shard.remove(key);
                return None;
            };
            drop(shard);
            self.count.fetch_sub(1, Ordering::Relaxed);
            if idle.until > now && idle.connection.is_open() {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps `connection` for up to `time`. If the pool is full, drops the half of the shard that would expire first.
    pub fn keep(&self, key: PoolKey, connection: T, time: Duration, now: Instant) {
        let is_full = self.count.fetch_add(1, Ordering::Relaxed) >= self.max;
        let mut shard = self.kept.of(&key);
        let surplus = match is_full {
            true => older_half(&mut shard),
            false => Vec::new(),
        };
        let until = now + time;
        shard.entry(key).or_default().push(Idle { connection, until });
        drop(shard);
        self.count.fetch_sub(surplus.len(), Ordering::Relaxed);
    }

    /// Drops expired and closed connections. Returns how many are left.
    pub fn sweep(&self, now: Instant) -> usize {
        for mut shard in self.kept.each() {
            let gone = take_out(&mut shard, |idle| idle.until <= now || !idle.connection.is_open());
            drop(shard);
            self.count.fetch_sub(gone.len(), Ordering::Relaxed);
        }
        self.count.load(Ordering::Relaxed)
    }
}

/// Removes the half of the shard's connections that would expire first. Removing many at a time makes the search for
/// them rare.
fn older_half<T>(shard: &mut HashMap<PoolKey, Vec<Idle<T>>>) -> Vec<Idle<T>> {
    let mut ends: Vec<Instant> = shard.values().flatten().map(|idle| idle.until).collect();
    if ends.is_empty() {
        return Vec::new();
    }
    let half = ends.len() / 2;
    let median = *ends.select_nth_unstable(half).1;
    take_out(shard, |idle| idle.until <= median)
}

fn take_out<T>(shard: &mut HashMap<PoolKey, Vec<Idle<T>>>, mut goes: impl FnMut(&mut Idle<T>) -> bool) -> Vec<Idle<T>> {
    let mut gone = Vec::new();
    shard.retain(|_, same| {
        gone.extend(same.extract_if(.., &mut goes));
        !same.is_empty()
    });
    gone
}

impl Keep for Stream {
    /// Also returns false if the origin has sent bytes although no request was open.
    fn is_open(&mut self) -> bool {
        let mut space = [0; 1];
        let mut read = ReadBuf::new(&mut space);
        let mut nobody = Context::from_waker(Waker::noop());
        Pin::new(self).poll_read(&mut nobody, &mut read).is_pending()
    }
}

/// Most machines have fewer worker threads than this, so a thread seldom waits for a lock.
pub const SHARDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fake {
        is_open: bool,
        number: u32,
    }

    impl Keep for Fake {
        fn is_open(&mut self) -> bool {
            self.is_open
        }
    }

    fn key(number: u8) -> PoolKey {
        let origin: Origin = "http://shop.example".parse().expect("an origin");
        PoolKey::new(&origin, ([192, 0, 2, number], 80).into())
    }

    fn open(number: u32) -> Fake {
        Fake { is_open: true, number }
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_pool_returns_the_newest_usable_connection() {
        let (pool, now) = (Pool::new(10), Instant::now());
        pool.keep(key(1), open(1), MINUTE, now);
        pool.keep(key(1), open(2), MINUTE, now);
        pool.keep(
            key(1),
            Fake {
                is_open: false,
                number: 3,
            },
            MINUTE,
            now,
        );
        pool.keep(key(1), open(4), Duration::from_secs(1), now);
        let later = now + Duration::from_secs(2);
        let taken = pool.take(&key(1), later).expect("one is open");
        assert_eq!(taken.number, 2, "the third is closed, and the fourth too old");
        assert_eq!(pool.sweep(later), 1);
        assert!(pool.take(&key(2), later).is_none(), "it is of another address");
        assert_eq!(pool.sweep(later + MINUTE), 0);
    }

    #[test]
    fn a_full_pool_drops_the_connections_that_expire_first() {
        let (pool, now) = (Pool::new(4), Instant::now());
        for number in 0..100 {
            let time = MINUTE + Duration::from_millis(number.into());
            pool.keep(key(1), open(number), time, now);
            assert!(pool.sweep(now) <= 4 + SHARDS, "at {number}");
        }
        assert_eq!(pool.take(&key(1), now).map(|taken| taken.number), Some(99));
        // The worst case for the limit: each connection has its own key, and a full pool drops connections only from
        // the shard that gets the new one.
        for number in 0..=255 {
            pool.keep(key(number), open(0), MINUTE, now);
            assert!(pool.sweep(now) <= 4 + SHARDS, "with {number} keys");
        }
    }
}
