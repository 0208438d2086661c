//! The circuit breaker for the fleet's server, as a state machine. The client tells it which calls succeed and fail,
//! and asks it whether to call the server. It reads no clock.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaker {
    /// The client calls the fleet's server. A failed call that began before the `last` counted failure does not count,
    /// so that a single stall of the server does not open the breaker.
    Closed { failures: u32, last: Option<Instant> },
    /// The client makes no calls. At `until`, a probe tests whether the server can be used.
    Open { until: Instant, pause: Duration },
    /// A probe is running, and the client makes no other calls.
    HalfOpen { pause: Duration },
}

// === impl Breaker ===

impl Breaker {
    /// Returns an open breaker whose first probe, which opens the first connection, is due immediately.
    pub(super) fn new(now: Instant) -> Self {
        Self::Open {
            until: now,
            pause: FIRST_PAUSE,
        }
    }

    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Resets the count of failures. Only a probe can close an open breaker.
    pub(super) fn call_succeeded(&mut self) {
        if self.is_closed() {
            *self = CLOSED;
        }
    }

    /// Returns whether this failure opened the breaker.
    pub(super) fn call_failed(&mut self, began: Instant, now: Instant) -> bool {
        let Self::Closed { failures, last } = *self else {
            return false;
        };
        if last.is_some_and(|last| began < last) {
            return false;
        }
        if failures + 1 < MAX_FAILURES {
            *self = Self::Closed {
                failures: failures + 1,
                last: Some(now),
            };
            return false;
        }
        *self = Self::Open {
            until: now + FIRST_PAUSE,
            pause: FIRST_PAUSE,
        };
        true
    }

    /// Opens the breaker if it is closed, and returns whether it was.
    pub(super) fn call_refused(&mut self, now: Instant) -> bool {
        let was_closed = self.is_closed();
        if was_closed {
            *self = Self::Open {
                until: now + FIRST_PAUSE,
                pause: FIRST_PAUSE,
            };
        }
        was_closed
    }

    /// Returns whether a counted failure came after `time` and no call has succeeded since. Also returns `true` if the
    /// breaker is not closed.
    pub(super) fn has_failed_since(self, time: Instant) -> bool {
        match self {
            Self::Closed { last, .. } => last.is_some_and(|last| last > time),
            Self::Open { .. } | Self::HalfOpen { .. } => true,
        }
    }

    /// Returns how long to wait for the next probe: zero if it begins now, `None` if it is running or not needed.
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

    pub(super) fn probed(&mut self, succeeded: bool, now: Instant) {
        let Self::HalfOpen { pause } = *self else { return };
        let pause = (pause * 2).min(LONGEST_PAUSE);
        *self = match succeeded {
            true => CLOSED,
            false => Self::Open {
                until: now + pause,
                pause,
            },
        };
    }
}

const CLOSED: Breaker = Breaker::Closed {
    failures: 0,
    last: None,
};
/// After this many consecutive failures, the breaker opens.
const MAX_FAILURES: u32 = 3;
/// The pause before the first probe. After each failed probe, it doubles, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &mut Breaker, now: Instant) -> bool {
        breaker.call_failed(now, now)
    }

    #[test]
    fn a_new_breaker_is_open_until_a_probe_succeeds() {
        let now = Instant::now();
        let mut breaker = Breaker::new(now);
        assert!(!breaker.is_closed());
        assert_eq!(breaker.begin_probe(now), Some(Duration::ZERO));
        assert_eq!(breaker.begin_probe(now), None, "one probe at a time");
        breaker.probed(true, now);
        assert!(breaker.is_closed());
    }

    #[test]
    fn only_three_failures_in_a_row_open_the_breaker() {
        let now = Instant::now();
        let mut breaker = CLOSED;
        for _ in 0..10 {
            assert!(!fail(&mut breaker, now) && !fail(&mut breaker, now));
            breaker.call_succeeded();
        }
        assert!(!fail(&mut breaker, now) && !fail(&mut breaker, now));
        assert!(fail(&mut breaker, now), "the third opens it");
        assert!(!breaker.is_closed());
        assert!(!fail(&mut breaker, now), "it opens once");
    }

    #[test]
    fn concurrent_calls_that_fail_count_as_one_failure() {
        let began = Instant::now();
        let late = Duration::from_millis(50);
        let mut breaker = CLOSED;
        for call in 0..100 {
            let began = began + call * Duration::from_micros(100);
            assert!(!breaker.call_failed(began, began + late), "call {call}");
        }
        let second = began + late;
        assert!(!breaker.call_failed(second, second + late));
        let third = second + late;
        assert!(!breaker.call_failed(third - Duration::from_millis(1), third + late));
        assert!(breaker.call_failed(third, third + late), "the third in a row");
    }

    #[test]
    fn a_refused_call_opens_the_breaker_even_if_other_calls_succeed() {
        let now = Instant::now();
        let mut breaker = CLOSED;
        breaker.call_succeeded();
        assert!(breaker.call_refused(now), "the first opens it");
        breaker.call_succeeded();
        assert!(
            !breaker.is_closed(),
            "a call that only reads is no sign that writes work"
        );
        assert!(!breaker.call_refused(now), "it opens once");
        assert_eq!(breaker.begin_probe(now + FIRST_PAUSE), Some(Duration::ZERO));
    }

    #[test]
    fn has_failed_since_reports_a_later_failure_until_a_call_succeeds() {
        let now = Instant::now();
        let mut breaker = CLOSED;
        assert!(!breaker.has_failed_since(now));
        fail(&mut breaker, now + FIRST_PAUSE);
        assert!(breaker.has_failed_since(now));
        assert!(!breaker.has_failed_since(now + FIRST_PAUSE), "that was before");
        breaker.call_succeeded();
        assert!(!breaker.has_failed_since(now));
    }

    #[test]
    fn a_late_success_does_not_close_the_breaker() {
        let now = Instant::now();
        let mut breaker = CLOSED;
        while !fail(&mut breaker, now) {}
        breaker.call_succeeded();
        assert!(!breaker.is_closed());
        assert_eq!(breaker.begin_probe(now + FIRST_PAUSE), Some(Duration::ZERO));
        breaker.call_succeeded();
        assert!(!breaker.is_closed(), "the probe decides");
    }

    #[test]
    fn pauses_between_probes_grow_and_one_success_closes_the_breaker() {
        let mut now = Instant::now();
        let mut breaker = CLOSED;
        while !fail(&mut breaker, now) {}
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
        assert_eq!(breaker, CLOSED);
    }
}
