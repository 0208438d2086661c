//! Counters that many threads increment at the same time.

use std::{
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Counters in several sets (shards), so that CPU cores do not wait for each other when they count. Reading a counter
/// sums up the shards.
#[derive(Debug)]
pub(super) struct ShardedCounters {
    len: usize,
    shards: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

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
    pub(super) fn new(len: usize) -> Self {
        Self {
            len,
            shards: (0..*SHARDS).map(|_| OnceLock::new()).collect(),
        }
    }

    pub(super) fn add(&self, index: usize, amount: u64) {
        // While the thread ends, `SHARD` may no longer exist.
        let shard = &self.shards[SHARD.try_with(|shard| *shard).unwrap_or(0)];
        let counters = shard.get_or_init(|| (0..self.len).map(|_| AtomicU64::new(0)).collect());
        counters[index].fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn get(&self, index: usize) -> u64 {
        let shards = self.shards.iter().filter_map(OnceLock::get);
        shards.map(|counters| counters[index].load(Ordering::Relaxed)).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_of_all_threads_are_counted() {
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
    fn an_unused_shard_takes_no_memory() {
        let counters = ShardedCounters::new(3);
        counters.add(1, 1);
        counters.add(2, 1);
        assert_eq!(counters.shards.iter().filter(|shard| shard.get().is_some()).count(), 1);
    }
}
