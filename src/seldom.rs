//! Lines of the operational log that clients, or sites, can cause as often as they like. Each such place writes one line
//! a second at most, with how often it came to that, so that nobody can fill the log.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Counts events, and says when the next may be told.
#[derive(Debug)]
pub(crate) struct Count {
    total: AtomicU64,
    /// When one was last told, in milliseconds since the counting began, and one more; 0 before the first time.
    told: AtomicU64,
}

/// As `tracing`'s macro of that level, but at most once a second from this place in the source. `total` in the line says
/// how often the event has happened since the start.
macro_rules! seldom {
    ($level:ident, $($line:tt)+) => {{
        static COUNT: $crate::seldom::Count = $crate::seldom::Count::new();
        if let Some(total) = COUNT.note($crate::seldom::since_start()) {
            tracing::$level!(total, $($line)+);
        }
    }};
}
pub(crate) use seldom;

// === impl Count ===

impl Count {
    pub(crate) const fn new() -> Self {
        Self {
            total: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }
    }

    /// Counts an event. How many there were, where none was told within the last second; then this one counts as told.
    pub(crate) fn note(&self, now: Duration) -> Option<u64> {
        let total = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let told = self.told.load(Ordering::Relaxed);
        let is_due = told == 0 || now.saturating_sub(told) >= TOLD_EVERY_MS;
        // Of several at the same time one is told.
        let tells = || {
            self.told
                .compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed)
        };
        (is_due && tells().is_ok()).then_some(total)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// The time by which [`seldom!`] goes.
pub(crate) fn since_start() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

const TOLD_EVERY_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_whole_and_told_once_a_second() {
        let count = Count::new();
        let told = |milliseconds| count.note(Duration::from_millis(milliseconds));
        assert_eq!(
            [0, 1, 500, 999, 1000, 1001, 2500].map(told),
            [Some(1), None, None, None, Some(5), None, Some(7)]
        );
        assert_eq!(count.total(), 7);
    }
}
