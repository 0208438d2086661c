//! Counts requests over time in a limited number of intervals. The more time the log covers, the longer they are.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use super::OutcomeCounts;

#[derive(Debug)]
pub(super) struct Timeline {
    /// Length of an interval in seconds.
    width: u64,
    /// The counts of each interval, by its number. The intervals are counted from 1970.
    counts: BTreeMap<u64, OutcomeCounts>,
}

// === impl Timeline ===

impl Timeline {
    pub(super) fn add(&mut self, time: SystemTime, counts: OutcomeCounts) {
        let seconds = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        self.counts.entry(seconds / self.width).or_default().add(counts);
        self.fit(MAX_INTERVALS);
    }

    /// Returns the length of an interval, and at most `most` intervals from the first to the last one with requests.
    pub(super) fn intervals(&self, most: u64) -> (Duration, Vec<(SystemTime, OutcomeCounts)>) {
        let mut fitted = Self {
            width: self.width,
            counts: self.counts.clone(),
        };
        fitted.fit(most);
        let numbers = fitted.counts.first_key_value().zip(fitted.counts.last_key_value());
        let all = numbers.into_iter().flat_map(|((first, _), (last, _))| *first..=*last);
        let width = fitted.width;
        let intervals = all.map(|number| {
            let start = SystemTime::UNIX_EPOCH + Duration::from_secs(number * width);
            (start, fitted.counts.get(&number).copied().unwrap_or_default())
        });
        (Duration::from_secs(width), intervals.collect())
    }

    fn fit(&mut self, most: u64) {
        let span = |counts: &BTreeMap<u64, OutcomeCounts>| {
            let ends = counts.first_key_value().zip(counts.last_key_value());
            ends.map_or(0, |((first, _), (last, _))| last - first + 1)
        };
        while span(&self.counts) > most {
            let longer = WIDTHS.into_iter().find(|width| *width > self.width);
            let width = longer.unwrap_or(self.width * 2);
            let mut fewer: BTreeMap<u64, OutcomeCounts> = BTreeMap::new();
            for (number, counts) in &self.counts {
                fewer.entry(number * self.width / width).or_default().add(*counts);
            }
            (self.width, self.counts) = (width, fewer);
        }
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            width: WIDTHS[0],
            counts: BTreeMap::new(),
        }
    }
}

/// The lengths of an interval in seconds. Each is a multiple of the one before, so joining intervals splits no count.
const WIDTHS: [u64; 7] = [60, 600, 3600, 6 * 3600, 24 * 3600, 2 * 24 * 3600, 14 * 24 * 3600];
const MAX_INTERVALS: u64 = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn intervals_grow_with_the_time_and_no_request_is_lost() {
        for (last, most, width, intervals) in [
            (0, 48, 60, 1),
            (47 * 60, 48, 60, 48),
            (48 * 60, 48, 600, 5),
            (86_399, 48, 3600, 24),
            (400 * 86_400, 48, 14 * 86_400, 29),
            (200_000_000_000, 48, (14 * 86_400) << 12, 41),
        ] {
            let mut timeline = Timeline::default();
            for time in [0, last / 2, last] {
                timeline.add(at(time), OutcomeCounts::one());
            }
            let (found, rows) = timeline.intervals(most);
            assert_eq!((found.as_secs(), rows.len()), (width, intervals), "{last}");
            assert_eq!(rows.iter().map(|(_, counts)| counts.requests).sum::<u64>(), 3, "{last}");
            assert!(timeline.counts.len() <= 3 && rows.iter().all(|(start, _)| *start <= at(last)));
        }
        assert!(Timeline::default().intervals(48).1.is_empty());
    }
}
