//! How long something takes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long the processor is at it, whatever else runs on the machine.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let started = now();
    let made = work();
    (made, now().saturating_sub(started))
}
