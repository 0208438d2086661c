//! How many fetches run at once, and whose turn it is. It never looks at what a fetch does, only at
//! how long it takes.
//!
//! Turns come in the order in which they were asked for. As one fetch an origin runs at a time, no
//! origin gets more of them than another.

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Duration, timeout},
};

use crate::upstream::Fault;

/// Room for so many fetches at once. A fetch that takes long moves to the slow lane, where there is
/// room in it: origins that never answer keep nobody waiting as long as they fit in there.
#[derive(Debug)]
pub struct Lanes {
    quick: Semaphore,
    slow: Semaphore,
    /// Places to wait for a turn.
    waiting: Semaphore,
}

// === impl Lanes ===

impl Lanes {
    /// Room for `max_fetches` at once, one at the least.
    pub fn new(max_fetches: usize) -> Self {
        let slow = max_fetches / 2;
        Self {
            quick: Semaphore::new((max_fetches - slow).max(1)),
            slow: Semaphore::new(slow),
            waiting: Semaphore::new(MAX_WAITING),
        }
    }

    /// Begins `fetch` in its turn and sees it through.
    ///
    /// # Errors
    /// Too many wait already. Nothing was begun then.
    pub(super) async fn run<F: Future>(&self, fetch: impl FnOnce() -> F) -> Result<F::Output, Fault> {
        let quick = self.turn().await?;
        // On the heap, and not before its turn: those who wait are many, and should be small.
        let mut fetch = Box::pin(fetch());
        if let Ok(done) = timeout(SLOW_AFTER, &mut fetch).await {
            return Ok(done);
        }
        tokio::select! {
            biased;
            done = &mut fetch => Ok(done),
            // While there is no room it keeps the place that it has, or more than the bound would run.
            Ok(_slow) = self.slow.acquire() => {
                drop(quick);
                Ok(fetch.await)
            }
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, Fault> {
        // Where somebody waits this fails, so nobody is overtaken.
        if let Ok(turn) = self.quick.try_acquire() {
            return Ok(turn);
        }
        let _place = self
            .waiting
            .try_acquire()
            .map_err(|_| Fault::Internal("too many robots.txt fetches wait already".to_owned()))?;
        // It fails only where the semaphore is closed, which nobody does.
        self.quick
            .acquire()
            .await
            .map_err(|closed| Fault::Internal(closed.to_string()))
    }
}

/// How long a fetch may hold a place among the quick ones. Most take a fraction of it.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// Each holds some kilobytes, and the first of so many has long been refused when the last begins.
const MAX_WAITING: usize = 65_536;

#[cfg(test)]
mod tests;
