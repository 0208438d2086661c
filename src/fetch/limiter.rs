//! How many fetches run at once, and whose turn it is. It never looks at what a fetch does, only at
//! how long it takes.

mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::{
    sync::{Semaphore, SetOnce},
    time::{Duration, sleep, timeout},
};

use self::queue::Queue;
pub use self::queue::{Name, Requester};
use crate::copy::FetchError;
use crate::fetch::LookupError;

/// Bounds how many fetches run at once. Slow fetches may take half of the permits, so that sites that never answer leave
/// the rest to others; a slow fetch beyond that is ended early if others wait.
#[derive(Debug)]
pub struct FetchLimiter {
    queue: Mutex<Queue<Arc<SetOnce<()>>>>,
    /// The permits of slow fetches.
    slow: Semaphore,
}

/// Counts a fetch, first among those that wait and then among those that run, until it is dropped.
#[derive(Debug)]
pub struct FetchPermit {
    limiter: Arc<FetchLimiter>,
    name: Name,
    number: u64,
    /// Set when the fetch may run.
    turn: Arc<SetOnce<()>>,
}

// === impl FetchLimiter ===

impl FetchLimiter {
    /// Allows `max_fetches` at once, at least one.
    pub fn new(max_fetches: usize) -> Self {
        Self {
            queue: Mutex::new(Queue::new(max_fetches.max(1))),
            slow: Semaphore::new(max_fetches / 2),
        }
    }

    /// Queues a fetch.
    ///
    /// # Errors
    /// The requester has as many fetches as it may have.
    pub fn enter(self: &Arc<Self>, requester: Requester) -> Result<FetchPermit, LookupError> {
        let turn = Arc::new(SetOnce::new());
        let mut queue = self.queue();
        let number = queue.enter(requester, turn.clone())?;
        start(&mut queue);
        Ok(FetchPermit {
            limiter: self.clone(),
            name: requester.name,
            number,
            turn,
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Arc<SetOnce<()>>>> {
        // Nothing that changes it can panic half way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts what may start.
fn start(queue: &mut Queue<Arc<SetOnce<()>>>) {
    while let Some(turn) = queue.start() {
        // Each is started once.
        let _ = turn.set(());
    }
}

// === impl FetchPermit ===

impl FetchPermit {
    /// Waits until the fetch may run.
    pub async fn turn(&self) {
        self.turn.wait().await;
    }

    /// Sees `fetch` through, whose turn it is.
    ///
    /// # Errors
    /// It was slow and in the way of others.
    pub(super) async fn run<F: Future>(&self, fetch: F) -> Result<F::Output, FetchError> {
        tokio::pin!(fetch);
        if let Ok(done) = timeout(SLOW_AFTER, &mut fetch).await {
            return Ok(done);
        }
        tokio::select! {
            biased;
            done = &mut fetch => Ok(done),
            Ok(_slow) = self.limiter.slow.acquire() => Ok(fetch.await),
            () = self.is_wanted() => Err(FetchError::GaveWay),
        }
    }

    /// Ends when a slow fetch without a place among the slow ones has to give way. Nobody waits for it as long.
    async fn is_wanted(&self) {
        sleep(GIVE_WAY_AFTER - SLOW_AFTER).await;
        while !self.limiter.queue().is_in_need(self.name) {
            sleep(SLOW_AFTER).await;
        }
    }
}

impl Drop for FetchPermit {
    fn drop(&mut self) {
        let mut queue = self.limiter.queue();
        queue.leave(self.name, self.number);
        start(&mut queue);
    }
}

/// How long a fetch may take before it counts as slow. Most take a fraction of it.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long one that is slow may keep a place that others wait for.
const GIVE_WAY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
