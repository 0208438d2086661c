//! Limits how many fetches run at the same time, and decides which one starts next. A fetch that has run for more than
//! a second is called slow.

use std::{net::IpAddr, sync::Arc};

use tokio::{
    sync::Semaphore,
    time::{Duration, sleep, timeout},
};

use crate::{
    copy::FetchError,
    fair_semaphore::{FairPermit, FairSemaphore},
    fetch::LookupError,
};

/// Who requests a fetch, and the limit for that requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    pub name: Name,
    /// How many fetches of this requester can run or wait at the same time.
    pub max_fetches: usize,
}

/// Who requests a fetch. The fetch counts towards this requester's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// A client of the proxy, by its IPv4 address or the `/64` of its IPv6 address.
    Client(IpAddr),
    /// All operators together.
    Operators,
}

/// Limits how many fetches run at the same time. Slow fetches can keep half of the permits. Any further slow fetch ends
/// early if a fetch of the same requester waits, or a fetch of a requester with fewer running fetches.
#[derive(Debug)]
pub struct FetchLimiter {
    permits: Arc<FairSemaphore<Name>>,
    slow: Semaphore,
}

/// The place of a fetch in the limiter. The fetch counts as waiting or running until this is dropped.
#[derive(Debug)]
pub struct FetchPermit {
    limiter: Arc<FetchLimiter>,
    permit: FairPermit<Name>,
}

// === impl FetchLimiter ===

impl FetchLimiter {
    /// Creates a limiter for `max_fetches` concurrent fetches, but at least one.
    pub fn new(max_fetches: usize) -> Self {
        Self {
            permits: FairSemaphore::new(max_fetches.max(1)),
            slow: Semaphore::new(max_fetches / 2),
        }
    }

    /// Queues a fetch.
    ///
    /// # Errors
    /// Fails if the requester has reached its limit of fetches.
    pub fn enter(self: &Arc<Self>, requester: Requester) -> Result<FetchPermit, LookupError> {
        let permit = self.permits.enter(requester.name, requester.max_fetches);
        Ok(FetchPermit {
            limiter: self.clone(),
            permit: permit.ok_or(LookupError::TooManyFetches)?,
        })
    }
}

// === impl FetchPermit ===

impl FetchPermit {
    /// Waits until the fetch may start.
    pub async fn turn(&self) {
        self.permit.turn().await;
    }

    /// Runs `fetch` to its end. Call it only after [`turn`](Self::turn) has returned.
    ///
    /// # Errors
    /// Fails if the fetch is slow, has no permit for slow fetches, and has to end because other fetches wait.
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

    /// Waits until a slow fetch has to end because other fetches wait for a permit.
    async fn until_needed(&self) {
        sleep(GIVE_WAY_AFTER - SLOW_AFTER).await;
        while !self.permit.should_give_way() {
            sleep(SLOW_AFTER).await;
        }
    }
}

/// A fetch that takes longer than this is slow. Most take a fraction of this time.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// Other fetches cannot end a slow fetch before it has run for this time, which is the default of `robots.wait`.
const GIVE_WAY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
