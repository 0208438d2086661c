//! Limits how many fetches run at the same time, and decides which starts next. A fetch that runs for long is slow.

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

/// Limits how many fetches run at the same time. Slow fetches can have half of the permits, which leaves the rest for
/// others if many sites do not answer. A slow fetch beyond that half is ended early if others wait.
#[derive(Debug)]
pub struct FetchLimiter {
    queue: Mutex<Queue<Arc<SetOnce<()>>>>,
    /// The permits of slow fetches.
    slow: Semaphore,
}

/// The place of a fetch in the limiter. The fetch counts as waiting and then as running until this is dropped.
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
    /// Allows `max_fetches` simultaneous fetches, at least one.
    pub fn new(max_fetches: usize) -> Self {
        Self {
            queue: Mutex::new(Queue::new(max_fetches.max(1))),
            slow: Semaphore::new(max_fetches / 2),
        }
    }

    /// Queues a fetch.
    ///
    /// # Errors
    /// Fails if the requester has reached its limit of fetches.
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
        // Code under this lock cannot panic halfway through a change.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts all fetches that may start.
fn start(queue: &mut Queue<Arc<SetOnce<()>>>) {
    while let Some(turn) = queue.start() {
        // Each fetch is started once, so this cannot fail.
        let _ = turn.set(());
    }
}

// === impl FetchPermit ===

impl FetchPermit {
    /// Waits until the fetch may run.
    pub async fn turn(&self) {
        self.turn.wait().await;
    }

    /// Runs `fetch`, whose turn has come, to its end.
    ///
    /// # Errors
    /// Fails if the fetch is slow and keeps others from starting.
    pub(super) async fn run<F: Future>(&self, fetch: F) -> Result<F::Output, FetchError> {
        tokio::pin!(fetch);
        if let Ok(done) = timeout(SLOW_AFTER, &mut fetch).await {
            return Ok(done);
        }
        tokio::select! {
            biased;
            done = &mut fetch => Ok(done),
            Ok(_slow) = self.limiter.slow.acquire() => Ok(fetch.await),
            () = self.until_needed() => Err(FetchError::GaveWay),
        }
    }

    /// Waits until a slow fetch without a slow permit has to make way for others. With the default of `robots.wait`, no
    /// request waits for the fetch by then.
    async fn until_needed(&self) {
        sleep(GIVE_WAY_AFTER - SLOW_AFTER).await;
        while !self.limiter.queue().should_give_way(self.name) {
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

/// How long a fetch can take before it is considered slow. Most take a fraction of this.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long a slow fetch can keep a permit that others wait for.
const GIVE_WAY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
