//! Decides whether requests write to the output themselves, and whether a batch waits a moment for more lines. Both
//! depend on earlier writes. Reads no clock.

use std::time::{Duration, Instant};

/// Whether the output is fast enough that requests write to it themselves. After a slow write, the log's own thread
/// writes instead, for ten times as long as that write took, at most for [`MAX_SLOW`].
#[derive(Debug, Default)]
pub(super) struct Pace {
    slow_until: Option<Instant>,
}

/// Whether a batch waits a moment for the lines of other requests. If many requests run, waiting saves writes. It
/// delays a lone request by one pass of the runtime's scheduler.
#[derive(Debug, Default)]
pub(super) struct Coalescing {
    /// Number of consecutive batches with at most one line that a request waited for.
    lonely: u32,
}

// === impl Pace ===

impl Pace {
    pub(super) fn is_fast(&self) -> bool {
        self.slow_until.is_none()
    }

    pub(super) fn wrote(&mut self, began: Instant, ended: Instant) {
        let took = ended.saturating_duration_since(began);
        if took >= SLOW {
            self.slow_until = Some(ended + (took * SLOW_FOR).min(MAX_SLOW));
        } else if self.slow_until.is_some_and(|until| until <= ended) {
            self.slow_until = None;
        }
    }
}

// === impl Coalescing ===

impl Coalescing {
    pub(super) fn is_likely(&self) -> bool {
        // After `LONELY` batches of lone requests, one batch in `PROBE` still waits, to notice when many requests run
        // again.
        self.lonely < LONELY || self.lonely.is_multiple_of(PROBE)
    }

    /// `lines` says for how many lines of the batch a request waited.
    pub(super) fn wrote(&mut self, lines: usize) {
        self.lonely = match lines {
            0 | 1 => self.lonely.wrapping_add(1).max(1),
            _ => 0,
        };
    }
}

/// A write that takes this long counts as slow. Shorter delays can happen to any write on a busy machine.
const SLOW: Duration = Duration::from_millis(10);
/// After a slow write, the output counts as slow for this many times its duration.
const SLOW_FOR: u32 = 10;
/// Maximum time that the output counts as slow after one slow write.
const MAX_SLOW: Duration = Duration::from_secs(5 * 60);
/// After this many consecutive batches with at most one awaited line, most batches do not wait for more lines.
const LONELY: u32 = 4;
/// After `LONELY` such batches, one batch in this many waits for more lines.
const PROBE: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the output counts as fast after each write, given as its start and duration in ms.
    fn after(writes: &[(u64, u64)]) -> Vec<bool> {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let after = |(began, took)| {
            let began = start + Duration::from_millis(began);
            pace.wrote(began, began + Duration::from_millis(took));
            pace.is_fast()
        };
        writes.iter().copied().map(after).collect()
    }

    #[test]
    fn an_output_counts_as_fast_until_a_write_is_slow() {
        assert!(Pace::default().is_fast());
        assert_eq!(after(&[(0, 0), (1, 9), (20, 10)]), [true, true, false]);
    }

    #[test]
    fn an_output_counts_as_slow_for_ten_times_the_slow_write() {
        // The slow write ended at 100 ms, so the output counts as slow until 1,100 ms.
        let writes = [(0, 100), (101, 0), (1099, 0), (1100, 0), (1101, 0)];
        assert_eq!(after(&writes), [false, false, false, true, true]);
    }

    #[test]
    fn another_slow_write_starts_the_slow_time_again() {
        let writes = [(0, 100), (1000, 10), (1101, 0), (1110, 0)];
        assert_eq!(after(&writes), [false, false, false, true]);
    }

    #[test]
    fn the_slow_time_is_limited_after_a_very_long_write() {
        let hour = 3_600_000;
        let fast = after(&[(0, hour), (hour + 299_999, 0), (hour + 300_000, 0)]);
        assert_eq!(fast, [false, false, true]);
    }

    #[test]
    fn batches_seldom_wait_for_more_lines_if_none_arrived_before() {
        let mut crowd = Coalescing::default();
        let waits: Vec<_> = (0..40)
            .filter(|_| {
                let waits = crowd.is_likely();
                crowd.wrote(1);
                waits
            })
            .collect();
        assert_eq!(waits, [0, 1, 2, 3, 16, 32]);
        crowd.wrote(2);
        assert!(crowd.is_likely());
    }

    #[test]
    fn lines_without_a_waiting_writer_do_not_make_batches_wait() {
        let mut crowd = Coalescing::default();
        for _ in 0..LONELY {
            crowd.wrote(0);
        }
        assert!(!crowd.is_likely());
    }
}
