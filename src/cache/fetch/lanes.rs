//! How many fetches run at once, and whose turn it is. It never looks at what a fetch does, only at
//! how long it takes.
//!
//! Turns come in the order in which they were asked for. As one fetch an origin runs at a time, no
//! origin gets more of them than another.

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Duration, sleep, timeout},
};

use crate::{cache::FetchError, upstream::Fault};

/// Room for so many fetches at once. Those that take long may have most of it, and no more: origins that
/// never answer keep nobody waiting as long as there are fewer of them. Where there are more, those in
/// the way of others are ended early.
#[derive(Debug)]
pub struct Lanes {
    /// Places to run.
    places: Semaphore,
    /// Of these, those for fetches that are slow.
    slow: Semaphore,
    /// Places to wait for a turn.
    waiting: Semaphore,
}

// === impl Lanes ===

impl Lanes {
    /// Room for `max_fetches` at once, one at the least. Three quarters of it may be taken by slow ones.
    pub fn new(max_fetches: usize) -> Self {
        let places = max_fetches.max(1);
        Self::of(places, places - places.div_ceil(4))
    }

    fn of(places: usize, slow: usize) -> Self {
        Self {
            places: Semaphore::new(places),
            slow: Semaphore::new(slow),
            waiting: Semaphore::new(MAX_WAITING),
        }
    }

    /// Begins `fetch` in its turn and sees it through.
    ///
    /// # Errors
    /// Too many wait already, and nothing was begun; or it was slow and in the way of others.
    pub(super) async fn run<F: Future>(&self, fetch: impl FnOnce() -> F) -> Result<F::Output, FetchError> {
        let _place = self.turn().await?;
        // On the heap, and not before its turn: those who wait are many, and should be small.
        let mut fetch = Box::pin(fetch());
        if let Ok(done) = timeout(SLOW_AFTER, &mut fetch).await {
            return Ok(done);
        }
        tokio::select! {
            biased;
            done = &mut fetch => Ok(done),
            Ok(_slow) = self.slow.acquire() => Ok(fetch.await),
            () = self.is_wanted() => Err(FetchError::GaveWay),
        }
    }

    /// Ends when one that is slow, and has no place among the slow ones, has to give its place to others.
    /// Nobody waits for it as long.
    async fn is_wanted(&self) {
        sleep(GIVE_WAY_AFTER - SLOW_AFTER).await;
        while self.waiting.available_permits() == MAX_WAITING {
            sleep(SLOW_AFTER).await;
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, Fault> {
        // Where somebody waits this fails, so nobody is overtaken.
        if let Ok(turn) = self.places.try_acquire() {
            return Ok(turn);
        }
        let _place = self
            .waiting
            .try_acquire()
            .map_err(|_| Fault::Internal("too many robots.txt fetches wait already".to_owned()))?;
        // It fails only where the semaphore is closed, which nobody does.
        self.places
            .acquire()
            .await
            .map_err(|closed| Fault::Internal(closed.to_string()))
    }
}

/// How long a fetch may take before it counts as slow. Most take a fraction of it.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long one that is slow may keep a place that others wait for.
const GIVE_WAY_AFTER: Duration = Duration::from_secs(5);
/// Each holds some kilobytes, and the first of so many has long been refused when the last begins.
const MAX_WAITING: usize = 65_536;

#[cfg(test)]
mod tests;
