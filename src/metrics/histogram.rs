//! Histograms of durations with fixed buckets.

use std::time::Duration;

use super::sharded::ShardedCounters;

#[derive(Debug)]
pub(super) struct Histogram {
    /// Upper bounds of the buckets in nanoseconds, in ascending order.
    bounds: &'static [u64],
    /// One counter for each bucket, one for longer durations, and one for the sum in nanoseconds.
    counters: ShardedCounters,
}

#[derive(Debug)]
pub(super) struct Counted {
    /// In seconds.
    pub(super) sum: f64,
    pub(super) count: u64,
    /// For each bucket, its upper bound in seconds and its count. The last bound is infinite.
    pub(super) buckets: Vec<(f64, u64)>,
}

// === impl Histogram ===

impl Histogram {
    pub(super) fn new(bounds: &'static [u64]) -> Self {
        Self {
            bounds,
            counters: ShardedCounters::new(bounds.len() + 2),
        }
    }

    pub(super) fn observe(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds.partition_point(|bound| *bound < nanos);
        self.counters.add(bucket, 1);
        self.counters.add(self.sum(), nanos);
    }

    pub(super) fn counted(&self) -> Counted {
        let bounds = self.bounds.iter().map(|bound| *bound as f64 / 1e9);
        let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(self.counters.iter()).collect();
        Counted {
            sum: self.counters.get(self.sum()) as f64 / 1e9,
            // A separate counter could differ from the buckets while other threads add durations.
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }

    fn sum(&self) -> usize {
        self.bounds.len() + 1
    }
}

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;

/// Bucket bounds in nanoseconds, for work on a CPU.
pub(super) const OF_WORK: [u64; 13] = [
    US,
    2_500,
    5 * US,
    10 * US,
    25 * US,
    50 * US,
    100 * US,
    250 * US,
    500 * US,
    MS,
    10 * MS,
    100 * MS,
    S,
];
/// Bucket bounds in nanoseconds, for times that depend on a disk.
pub(super) const OF_DISK: [u64; 12] = [
    50 * US,
    100 * US,
    250 * US,
    500 * US,
    MS,
    5 * MS,
    25 * MS,
    100 * MS,
    500 * MS,
    S,
    5 * S,
    10 * S,
];
/// Bucket bounds in nanoseconds, for times that depend on the network.
pub(super) const OF_NETWORK: [u64; 15] = [
    MS,
    2_500 * US,
    5 * MS,
    10 * MS,
    25 * MS,
    50 * MS,
    100 * MS,
    250 * MS,
    500 * MS,
    S,
    2_500 * MS,
    5 * S,
    10 * S,
    30 * S,
    60 * S,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_in_the_first_bucket_that_it_fits() {
        let histogram = Histogram::new(&OF_WORK);
        for nanos in [0, US, US + 1, 2 * S, u64::MAX / 4] {
            histogram.observe(Duration::from_nanos(nanos));
        }
        let counted = histogram.counted();
        assert_eq!(counted.buckets[0], (0.000_001, 2));
        assert_eq!(counted.buckets[1], (0.000_002_5, 1));
        assert_eq!(counted.buckets.last(), Some(&(f64::INFINITY, 2)));
        assert_eq!(counted.count, 5);
    }

    #[test]
    fn the_bucket_bounds_increase() {
        for bounds in [&OF_WORK[..], &OF_DISK, &OF_NETWORK] {
            assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
        }
    }
}
