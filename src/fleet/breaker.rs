//! The circuit breaker for the shared server, as a state machine: results of calls and times go in, and whether calls may
//! be made comes out.
//!
//! It reads no clock. While it is open, requests do not wait for the server at all. A probe in the background finds out
//! when the server is back.

use std::time::{Duration, Instant};

/// The state of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaker {
    /// Calls are made. Counts failures in a row.
    Closed { failures: u32 },
    /// No calls are made. At `until`, a probe is due.
    Open { until: Instant, pause: Duration },
    /// A probe is under way. No other calls are made.
    HalfOpen { pause: Duration },
}

// === impl Breaker ===

impl Breaker {
    /// Returns a breaker whose first probe is due at once, because there is no connection yet.
    pub(super) fn new(now: Instant) -> Self {
        Self::Open {
            until: now,
            pause: FIRST_PAUSE,
        }
    }

    /// Returns whether calls are made.
    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Notes a success. A late success of an earlier call does not close the breaker.
    pub(super) fn call_succeeded(&mut self) {
        if self.is_closed() {
            *self = Self::Closed { failures: 0 };
        }
    }

    /// Notes a failure. Returns whether it opened the breaker.
    pub(super) fn call_failed(&mut self, now: Instant) -> bool {
        let Self::Closed { failures } = *self else {
            return false;
        };
        if failures + 1 < MAX_FAILURES {
            *self = Self::Closed { failures: failures + 1 };
            return false;
        }
        *self = Self::Open {
            until: now + FIRST_PAUSE,
            pause: FIRST_PAUSE,
        };
        true
    }

    /// Begins a probe if one is due, else returns how long to wait. `None` if the breaker is closed or a probe runs.
    pub(super) fn begin_probe(&mut self, now: Instant) -> Option<Duration> {
        let Self::Open { until, pause } = *self else {
            return None;
        };
        let left = until.saturating_duration_since(now);
        if left.is_zero() {
            *self = Self::HalfOpen { pause };
        }
        Some(left)
    }

    /// Notes the end of the probe.
    pub(super) fn probed(&mut self, succeeded: bool, now: Instant) {
        let Self::HalfOpen { pause } = *self else { return };
        let pause = (pause * 2).min(LONGEST_PAUSE);
        *self = match succeeded {
            true => Self::Closed { failures: 0 },
            false => Self::Open {
                until: now + pause,
                pause,
            },
        };
    }
}

/// Failures in a row that open the breaker.
const MAX_FAILURES: u32 = 3;
/// The pause before the first probe. It doubles with each failed probe.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn closed() -> Breaker {
        Breaker::Closed { failures: 0 }
    }

    #[test]
    fn it_begins_with_a_probe() {
        let now = Instant::now();
        let mut breaker = Breaker::new(now);
        assert!(!breaker.is_closed());
        assert_eq!(breaker.begin_probe(now), Some(Duration::ZERO));
        assert_eq!(breaker.begin_probe(now), None, "one probe at a time");
        breaker.probed(true, now);
        assert!(breaker.is_closed());
    }

    #[test]
    fn only_failures_in_a_row_open_it() {
        let now = Instant::now();
        let mut breaker = closed();
        for _ in 0..10 {
            assert!(!breaker.call_failed(now) && !breaker.call_failed(now));
            breaker.call_succeeded();
        }
        assert!(!breaker.call_failed(now) && !breaker.call_failed(now));
        assert!(breaker.call_failed(now), "the third opens it");
        assert!(!breaker.is_closed());
        assert!(!breaker.call_failed(now), "it opens once");
    }

    #[test]
    fn a_late_success_does_not_close_it() {
        let now = Instant::now();
        let mut breaker = closed();
        while !breaker.call_failed(now) {}
        breaker.call_succeeded();
        assert!(!breaker.is_closed());
        assert_eq!(breaker.begin_probe(now + FIRST_PAUSE), Some(Duration::ZERO));
        breaker.call_succeeded();
        assert!(!breaker.is_closed(), "the probe decides");
    }

    #[test]
    fn probes_come_more_and_more_rarely_and_one_success_closes_it() {
        let mut now = Instant::now();
        let mut breaker = closed();
        while !breaker.call_failed(now) {}
        let mut pauses = Vec::new();
        for _ in 0..7 {
            let pause = breaker.begin_probe(now).expect("it is open");
            pauses.push(pause.as_millis());
            now += pause;
            assert_eq!(breaker.begin_probe(now), Some(Duration::ZERO));
            breaker.probed(false, now);
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 5000, 5000]);
        now += LONGEST_PAUSE;
        assert_eq!(breaker.begin_probe(now), Some(Duration::ZERO));
        breaker.probed(true, now);
        assert_eq!(breaker, closed());
    }
}
