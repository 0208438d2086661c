//! Limits how many fetches run at the same time, and decides which one starts next. A fetch that has run for more than
//! a second is called slow.

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

/// Limits how many fetches run at the same time. Slow fetches can keep half of the permits. So even if many sites do
/// not respond, the other half is free for other fetches. If more fetches are slow and others wait, the additional slow
/// ones end early.
#[derive(Debug)]
pub struct FetchLimiter {
    queue: Mutex<Queue<Arc<SetOnce<()>>>>,
    /// The permits that slow fetches can keep.
    slow: Semaphore,
}

/// The place of a fetch in the limiter. The fetch counts as waiting or running until this is dropped.
#[derive(Debug)]
pub struct FetchPermit {
    limiter: Arc<FetchLimiter>,
    name: Name,
    number: u64,
    /// Set when the fetch may start.
    turn: Arc<SetOnce<()>>,
}

// === impl FetchLimiter ===

impl FetchLimiter {
    /// Creates a limiter for at most `max_fetches` fetches at the same time, but at least one.
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
        // The queue is valid even after a panic, because changes under this lock are never left half made.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts all waiting fetches for which there are permits.
fn start(queue: &mut Queue<Arc<SetOnce<()>>>) {
    while let Some(turn) = queue.start() {
        // This cannot fail, because each fetch is started only once.
        let _ = turn.set(());
    }
}

// === impl FetchPermit ===

impl FetchPermit {
    /// Waits until the fetch may start.
    pub async fn turn(&self) {
        self.turn.wait().await;
    }

    /// Runs `fetch` to its end. Call it only after [`turn`](Self::turn) has returned.
    ///
    /// # Errors
    /// Fails if the fetch is slow, gets none of the permits for slow fetches, and others wait.
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

    /// Waits until a slow fetch has to end because others wait. By then, no request waits for the slow fetch any
    /// longer, unless `robots.wait` is longer than its default.
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

/// A fetch that takes longer than this is slow. Most fetches take a fraction of this time.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long a slow fetch can go on while others wait for its permit.
const GIVE_WAY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
