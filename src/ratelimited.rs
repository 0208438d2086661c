//! Limits the lines of the operational log about events that clients or sites can cause as often as they like, so that
//! nobody can flood this log.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

#[derive(Debug)]
pub(crate) struct EventCounter {
    total: AtomicU64,
    /// When an event was last logged: milliseconds of the caller's clock, plus one. 0 means never.
    last_logged: AtomicU64,
}

/// Logs like the `tracing` macro for `$level`, but at most once a second for each place in the source. Adds the field
/// `such_events_since_start`, the number of such events.
macro_rules! ratelimited {
    ($level:ident, $($line:tt)+) => {{
        static COUNT: $crate::ratelimited::EventCounter = $crate::ratelimited::EventCounter::new();
        if let Some(total) = COUNT.note($crate::ratelimited::since_start()) {
            tracing::$level!(such_events_since_start = total, $($line)+);
        }
    }};
}
pub(crate) use ratelimited;

// === impl EventCounter ===

impl EventCounter {
    pub(crate) const fn new() -> Self {
        Self {
            total: AtomicU64::new(0),
            last_logged: AtomicU64::new(0),
        }
    }

    /// Counts an event. If the caller should log the event, returns the number of events so far.
    pub(crate) fn note(&self, now: Duration) -> Option<u64> {
        let total = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let last_logged = self.last_logged.load(Ordering::Relaxed);
        let is_due = last_logged == 0 || now.saturating_sub(last_logged) >= LOG_INTERVAL_MS;
        // Of several events at the same moment, only the one that changes `last_logged` is logged.
        let claim = || {
            self.last_logged
                .compare_exchange(last_logged, now, Ordering::Relaxed, Ordering::Relaxed)
        };
        (is_due && claim().is_ok()).then_some(total)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// Returns the time since the first call. [`ratelimited!`] uses it as its clock.
pub(crate) fn since_start() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

const LOG_INTERVAL_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_events_is_counted_and_logged_once_a_second() {
        let count = EventCounter::new();
        let last_logged = |milliseconds| count.note(Duration::from_millis(milliseconds));
        assert_eq!(
            [0, 1, 500, 999, 1000, 1001, 2500].map(last_logged),
            [Some(1), None, None, None, Some(5), None, Some(7)]
        );
        assert_eq!(count.total(), 7);
    }
}
