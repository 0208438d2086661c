//! Counters that many threads add to at once.

use std::{
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// A list of counters. Each thread adds to a shard of its own, so that two processor cores do not fight for one cache
/// line; reading adds the shards up. A shard takes memory once a thread has used it.
#[derive(Debug)]
pub(super) struct ShardedCounters {
    len: usize,
    shards: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

/// As many as there are cores: more threads than that seldom count.
static SHARDS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, |cores| cores.get().min(16)));

thread_local! {
    static SHARD: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % *SHARDS
    };
}

// === impl ShardedCounters ===

impl ShardedCounters {
    /// `len` counters, all 0.
    pub(super) fn new(len: usize) -> Self {
        Self {
            len,
            shards: (0..*SHARDS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Adds `amount` to the counter at `index`, which is less than their number.
    pub(super) fn add(&self, index: usize, amount: u64) {
        // A thread that ends has no number any more.
        let shard = &self.shards[SHARD.try_with(|shard| *shard).unwrap_or(0)];
        let counters = shard.get_or_init(|| (0..self.len).map(|_| AtomicU64::new(0)).collect());
        counters[index].fetch_add(amount, Ordering::Relaxed);
    }

    /// The counter at `index`, which is less than their number.
    pub(super) fn get(&self, index: usize) -> u64 {
        let shards = self.shards.iter().filter_map(OnceLock::get);
        shards.map(|counters| counters[index].load(Ordering::Relaxed)).sum()
    }

    /// All counters, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_threads_add_is_counted() {
        let counters = ShardedCounters::new(3);
        thread::scope(|scope| {
            for _ in 0..2 * *SHARDS + 1 {
                scope.spawn(|| {
                    counters.add(0, 1);
                    counters.add(2, 5);
                });
            }
        });
        let threads = 2 * *SHARDS as u64 + 1;
        assert_eq!(counters.iter().collect::<Vec<_>>(), [threads, 0, 5 * threads]);
    }

    #[test]
    fn a_shard_that_nobody_used_takes_no_memory() {
        let counters = ShardedCounters::new(3);
        counters.add(1, 1);
        counters.add(2, 1);
        assert_eq!(counters.shards.iter().filter(|shard| shard.get().is_some()).count(), 1);
    }
}
