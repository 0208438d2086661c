//! Detects that the machine's clock was set. The store checks at each lookup, so the check is fast.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;

use rustix::time::{ClockId, clock_gettime};

use crate::copy::{ClockReadings, Jump};

/// The last clock readings, and the jumps that were detected.
#[derive(Debug)]
pub(super) struct Clocks {
    /// The readings of the last check.
    last: ArcSwap<ClockReadings>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    watch: ClockReadings,
    jumps: Vec<Jump>,
}

// === impl Clocks ===

impl Clocks {
    pub(super) fn new() -> Self {
        let watch = ClockReadings::new(SystemTime::now(), running());
        Self {
            last: ArcSwap::from_pointee(watch),
            seen: Mutex::new(Seen {
                watch,
                jumps: Vec::new(),
            }),
        }
    }

    /// Returns the jump if the wall clock was set since the last check. `now` is its current time.
    pub(super) fn look(&self, now: SystemTime) -> Option<Jump> {
        if self.last.load().can_skip_check(now, running()) {
            return None;
        }
        let mut seen = self.lock();
        // Check again under the lock, because another thread might have detected the same jump.
        let jump = seen.watch.detect_jump(SystemTime::now(), running());
        self.last.store(Arc::new(seen.watch));
        let jump = jump?;
        // Every state that is read from disk is corrected by each of these jumps. Only the last ones are kept, because
        // the times of a clock that is set more often are meaningless anyway.
        seen.jumps.truncate(MAX_JUMPS - 1);
        seen.jumps.push(jump);
        drop(seen);
        match jump {
            Jump::Forward { by, .. } => tracing::warn!(
                seconds = by.as_secs(),
                "the machine's clock was set forward; robotgate does not count the jump as time that sites have been \
                 failing"
            ),
            Jump::Back { .. } => tracing::warn!(
                "the machine's clock was set back; robotgate fetches each robots.txt again before its next use"
            ),
        }
        Some(jump)
    }

    /// Returns the remembered jumps, oldest first.
    pub(super) fn jumps(&self) -> Vec<Jump> {
        self.lock().jumps.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // Each change under this lock is complete before code that could panic, so a poisoned lock still has valid
        // data.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time since boot. No one can set this clock, and it includes the time while the machine is suspended.
fn running() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// Maximum number of jumps to remember.
const MAX_JUMPS: usize = 16;
