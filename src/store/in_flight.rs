//! The robots.txt fetches that are queued or running. Requests for the same origin share one fetch. When no request
//! waits any longer, a queued fetch is cancelled, but a running one continues.

use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::Ordering},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::cached_origin::CachedOrigin;
use crate::{
    fetch::{FetchPermit, LookupError, Name},
    origin::Origin,
};

#[derive(Debug, Default)]
pub(super) struct InFlightFetches(Mutex<HashMap<Origin, InFlightEntry>>);

#[derive(Debug)]
struct InFlightEntry {
    fetch: Arc<InFlightFetch>,
    /// Requests that wait for the fetch to begin.
    waiting: usize,
    /// The place of each waiting requester in the queue of the fetch limiter. The first one that gets its turn fetches.
    permits: Vec<(Name, Weak<FetchPermit>)>,
}

#[derive(Debug)]
struct InFlightFetch {
    cached: Arc<CachedOrigin>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queued,
    Running,
    Finished,
}

pub(super) enum FetchHandle {
    /// The fetch runs or has ended, or no fetch is needed.
    Running(RunningFetch),
    Queued(QueuedFetch),
}

pub(super) struct RunningFetch {
    pub(super) cached: Arc<CachedOrigin>,
    stage: watch::Receiver<Stage>,
}

/// A handle on a queued fetch. If the last handle is dropped before the fetch has begun, the fetch is cancelled.
pub(super) struct QueuedFetch {
    in_flight: Arc<InFlightFetches>,
    pub(super) origin: Origin,
    fetch: Arc<InFlightFetch>,
    permit: Arc<FetchPermit>,
}

/// Dropping this value ends the fetch: removes it from [`InFlightFetches`] and wakes the requests that wait for it. The
/// running fetch owns it, so this also happens if the fetch panics or the runtime stops.
pub(super) struct FetchGuard {
    in_flight: Arc<InFlightFetches>,
    pub(super) origin: Origin,
    fetch: Arc<InFlightFetch>,
}

// === impl InFlightFetches ===

impl InFlightFetches {
    /// Joins the fetch of `origin`. If there is none and `is_due` says that one is needed, queues a fetch that updates
    /// `cached`.
    ///
    /// `enter` puts the requester called `name` into the queue of the fetch limiter. It is not called if the requester
    /// is already in the queue for this fetch.
    pub(super) fn join_or_queue(
        self: &Arc<Self>,
        origin: &Origin,
        cached: &Arc<CachedOrigin>,
        is_due: impl FnOnce() -> bool,
        name: Name,
        enter: impl FnOnce() -> Result<FetchPermit, LookupError>,
    ) -> Result<FetchHandle, LookupError> {
        let mut in_flight = self.0.lock();
        let wait = |entry: &mut InFlightEntry, permit| {
            entry.waiting += 1;
            FetchHandle::Queued(QueuedFetch {
                in_flight: self.clone(),
                origin: origin.clone(),
                fetch: entry.fetch.clone(),
                permit,
            })
        };
        if let Some(entry) = in_flight.get_mut(origin) {
            if entry.fetch.stage() != Stage::Queued {
                return Ok(FetchHandle::Running(entry.fetch.join()));
            }
            let existing = entry.permits.iter().find(|(other, _)| *other == name);
            if let Some(permit) = existing.and_then(|(_, permit)| permit.upgrade()) {
                return Ok(wait(entry, permit));
            }
            let permit = Arc::new(enter()?);
            entry.permits.retain(|(_, permit)| permit.strong_count() > 0);
            entry.permits.push((name, Arc::downgrade(&permit)));
            return Ok(wait(entry, permit));
        }
        let fetch = Arc::new(InFlightFetch {
            cached: cached.clone(),
            stage: watch::Sender::new(Stage::Queued),
        });
        if !is_due() {
            fetch.stage.send_replace(Stage::Finished);
            return Ok(FetchHandle::Running(fetch.join()));
        }
        let permit = Arc::new(enter()?);
        let mut entry = InFlightEntry {
            fetch,
            waiting: 0,
            permits: vec![(name, Arc::downgrade(&permit))],
        };
        let handle = wait(&mut entry, permit);
        in_flight.insert(origin.clone(), entry);
        Ok(handle)
    }

    /// Returns the cached origin that the queued or running fetch of `origin` will update.
    pub(super) fn of(&self, origin: &Origin) -> Option<Arc<CachedOrigin>> {
        self.0.lock().get(origin).map(|entry| entry.fetch.cached.clone())
    }

    /// Returns all cached origins whose fetch is queued or running.
    pub(super) fn cache(&self) -> Vec<(Origin, Arc<CachedOrigin>)> {
        let in_flight = self.0.lock();
        let cache = in_flight
            .iter()
            .map(|(origin, entry)| (origin.clone(), entry.fetch.cached.clone()));
        cache.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

// === impl InFlightFetch ===

impl InFlightFetch {
    fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    fn join(&self) -> RunningFetch {
        RunningFetch {
            cached: self.cached.clone(),
            stage: self.stage.subscribe(),
        }
    }
}

// === impl RunningFetch ===

impl RunningFetch {
    /// Returns whether the fetch has begun, even if it has ended since.
    pub(super) fn has_begun(&self) -> bool {
        *self.stage.borrow() != Stage::Queued
    }

    /// Waits until the fetch has ended. Returns `false` if it was cancelled while queued.
    pub(super) async fn finished(&mut self) -> bool {
        self.stage.wait_for(|stage| *stage == Stage::Finished).await.is_ok()
    }
}

// === impl QueuedFetch ===

impl QueuedFetch {
    /// Waits until this requester may start the fetch. Returns `false` if another requester starts it first.
    pub(super) async fn turn(&self) -> bool {
        let mut stage = self.fetch.stage.subscribe();
        tokio::select! {
            biased;
            _ = stage.wait_for(|stage| *stage != Stage::Queued) => false,
            () = self.permit.turn() => true,
        }
    }

    /// Starts the fetch for this requester. Returns `None` if the fetch has already started.
    pub(super) fn begin(&self) -> Option<(FetchGuard, Arc<FetchPermit>)> {
        let is_first = self.fetch.stage.send_if_modified(|stage| {
            let is_first = *stage == Stage::Queued;
            if is_first {
                *stage = Stage::Running;
            }
            is_first
        });
        is_first.then(|| {
            self.fetch.cached.fetching.store(true, Ordering::Relaxed);
            let guard = FetchGuard {
                in_flight: self.in_flight.clone(),
                origin: self.origin.clone(),
                fetch: self.fetch.clone(),
            };
            (guard, self.permit.clone())
        })
    }

    pub(super) fn join(&self) -> RunningFetch {
        self.fetch.join()
    }
}

impl Drop for QueuedFetch {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.0.lock();
        let Some(entry) = in_flight.get_mut(&self.origin) else {
            return;
        };
        // The entry can already belong to the origin's next fetch.
        if !Arc::ptr_eq(&entry.fetch, &self.fetch) {
            return;
        }
        entry.waiting -= 1;
        // A running fetch is removed when it ends.
        if entry.waiting == 0 && self.fetch.stage() == Stage::Queued {
            in_flight.remove(&self.origin);
        }
    }
}

// === impl FetchGuard ===

impl FetchGuard {
    pub(super) fn cached(&self) -> &Arc<CachedOrigin> {
        &self.fetch.cached
    }
}

impl Drop for FetchGuard {
    fn drop(&mut self) {
        self.in_flight.0.lock().remove(&self.origin);
        self.fetch.cached.fetching.store(false, Ordering::Relaxed);
        self.fetch.stage.send_replace(Stage::Finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fetch::{FetchLimiter, Requester},
        origin::{HostPort, Scheme},
    };

    fn queued(
        in_flight: &Arc<InFlightFetches>,
        limiter: &Arc<FetchLimiter>,
        origin: &Origin,
        client: u8,
    ) -> QueuedFetch {
        let name = Name::Client([192, 0, 2, client].into());
        let requester = Requester { name, max_fetches: 9 };
        let cached = Arc::new(CachedOrigin::new(true));
        match in_flight.join_or_queue(origin, &cached, || true, name, || limiter.enter(requester)) {
            Ok(FetchHandle::Queued(queued)) => queued,
            Ok(FetchHandle::Running(_)) => panic!("the fetch has begun"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn an_abandoned_fetch_leaves_no_entry() {
        let (in_flight, limiter) = (Arc::<InFlightFetches>::default(), Arc::new(FetchLimiter::new(1)));
        let origin = Origin::new(Scheme::Https, HostPort::parse(b"a.example").expect("a host"));
        let [first, second] = [1, 2].map(|client| queued(&in_flight, &limiter, &origin, client));
        // If two handles are dropped at the same time, each drop can see the other handle's reference to the fetch.
        // This clone has the same effect.
        let held_by_first = first.fetch.clone();
        drop(first);
        assert_eq!(in_flight.len(), 1, "one waits still");
        drop(second);
        assert_eq!(in_flight.len(), 0);
        drop(held_by_first);
    }

    #[test]
    fn a_waiter_of_an_ended_fetch_does_not_remove_the_next_one() {
        let (in_flight, limiter) = (Arc::<InFlightFetches>::default(), Arc::new(FetchLimiter::new(1)));
        let origin = Origin::new(Scheme::Https, HostPort::parse(b"a.example").expect("a host"));
        let earlier = queued(&in_flight, &limiter, &origin, 1);
        drop(earlier.begin().expect("it is the first"));
        assert_eq!(in_flight.len(), 0, "it has ended");
        let next = queued(&in_flight, &limiter, &origin, 2);
        drop(earlier);
        assert_eq!(in_flight.len(), 1, "the next one is wanted");
        drop(next);
        assert_eq!(in_flight.len(), 0);
    }
}
