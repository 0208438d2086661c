//! The machine's clocks, as the store looks at them: at each lookup, and so quickly.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;

use rustix::time::{ClockId, clock_gettime};

use crate::copy::{Jump, Watch};

/// The watch over the clocks, and what it has seen.
#[derive(Debug)]
pub(super) struct Clocks {
    /// What they said a moment ago.
    last: ArcSwap<Watch>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    watch: Watch,
    jumps: Vec<Jump>,
}

// === impl Clocks ===

impl Clocks {
    pub(super) fn new() -> Self {
        let watch = Watch::new(SystemTime::now(), running());
        Self {
            last: ArcSwap::from_pointee(watch),
            seen: Mutex::new(Seen {
                watch,
                jumps: Vec::new(),
            }),
        }
    }

    /// Whether the wall clock, which says `now`, has been set since the last look.
    pub(super) fn look(&self, now: SystemTime) -> Option<Jump> {
        if self.last.load().is_calm(now, running()) {
            return None;
        }
        let mut seen = self.lock();
        // Anew, since another may have seen to it meanwhile.
        let jump = seen.watch.look(SystemTime::now(), running());
        self.last.store(Arc::new(seen.watch));
        let jump = jump?;
        // Each costs a look at what comes from disk; a clock that is set so often tells nothing.
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

    /// All that were seen, in order.
    pub(super) fn jumps(&self) -> Vec<Jump> {
        self.lock().jumps.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // What it guards is whole at every point where a panic could occur.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time since the machine was started, which nobody sets and which goes on while it sleeps.
fn running() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// Times that the clock was set which are remembered.
const MAX_JUMPS: usize = 16;
