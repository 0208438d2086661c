//! Measures how long work takes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the result of `work` and its processor time, which other load on the machine does not affect.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let started = now();
    let made = work();
    (made, now().saturating_sub(started))
}
