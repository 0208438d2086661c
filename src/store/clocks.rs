//! Shares the [`ClockReadings`] among all lookups, and remembers the last jumps of the clock. Every lookup checks the
//! clock, so the check must be fast.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use rustix::time::{ClockId, clock_gettime};

use crate::copy::{ClockReadings, Jump};

#[derive(Debug)]
pub(super) struct Clocks {
    /// A copy of [`Seen::watch`] that can be read without a lock.
    last: ArcSwap<ClockReadings>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// What the clocks showed at the last check.
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

    /// Returns a copy with the same jumps. The original and the copy each detect later jumps themselves.
    pub(super) fn copy(&self) -> Self {
        let seen = self.seen.lock();
        Self {
            last: ArcSwap::from_pointee(seen.watch),
            seen: Mutex::new(Seen {
                watch: seen.watch,
                jumps: seen.jumps.clone(),
            }),
        }
    }

    /// Returns how the wall clock was set since the last check, or `None` if it was not set.
    pub(super) fn look(&self, now: SystemTime) -> Option<Jump> {
        if self.last.load().can_skip_check(now, running()) {
            return None;
        }
        let mut seen = self.seen.lock();
        // Check again under the lock, because another thread might have detected the same jump.
        let jump = seen.watch.detect_jump(SystemTime::now(), running());
        self.last.store(Arc::new(seen.watch));
        let jump = jump?;
        seen.remember(jump);
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

    /// Returns the remembered jumps, the oldest first.
    pub(super) fn jumps(&self) -> Vec<Jump> {
        self.seen.lock().jumps.clone()
    }

    #[cfg(test)]
    pub(super) fn remember(&self, jump: Jump) {
        self.seen.lock().remember(jump);
    }
}

// === impl Seen ===

impl Seen {
    fn remember(&mut self, jump: Jump) {
        // Each state that is read from disk is corrected by each of these jumps, so keep only the last few.
        if self.jumps.len() == MAX_JUMPS {
            self.jumps.remove(0);
        }
        self.jumps.push(jump);
    }
}

/// Returns the time since boot, including suspension. Nobody can set this clock.
fn running() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

const MAX_JUMPS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_jumps_are_remembered() {
        let clocks = Clocks::new();
        let jumps: Vec<Jump> = (0..20)
            .map(|second| Jump::Back {
                ahead: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
            })
            .collect();

        jumps.iter().for_each(|jump| clocks.remember(*jump));

        assert_eq!(clocks.jumps(), jumps[4..]);
    }
}
