//! The fetches that are queued or running. An origin has at most one fetch, and later requests join it.
//!
//! A queued fetch exists as long as a request waits for it. It starts when any requester that waits for it gets a turn.
//! A running fetch continues even if all requests leave.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::Ordering},
};

use tokio::sync::watch;

use super::slot::Slot;
use crate::{
    fetch::{FetchPermit, LookupError, Name},
    origin::Origin,
};

/// The queued and running fetches, keyed by origin.
#[derive(Debug, Default)]
pub(super) struct InFlightFetches(Mutex<HashMap<Origin, Entry>>);

#[derive(Debug)]
struct Entry {
    fetch: Arc<InFlightFetch>,
    /// Number of requests that wait for the fetch to begin.
    waiting: usize,
    /// The permits of the requesters that wait for the fetch.
    permits: Vec<(Name, Weak<FetchPermit>)>,
}

#[derive(Debug)]
struct InFlightFetch {
    /// The slot that receives the result.
    slot: Arc<Slot>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queued,
    Running,
    Finished,
}

/// A request's handle on a fetch.
pub(super) enum FetchHandle {
    /// The fetch runs, or is no longer due.
    Running(RunningFetch),
    /// The fetch waits for its turn.
    Queued(QueuedFetch),
}

/// A handle on a running fetch.
pub(super) struct RunningFetch {
    pub(super) slot: Arc<Slot>,
    stage: watch::Receiver<Stage>,
}

/// A handle on a queued fetch. Dropping the last one cancels the fetch.
pub(super) struct QueuedFetch {
    in_flight: Arc<InFlightFetches>,
    pub(super) origin: Origin,
    fetch: Arc<InFlightFetch>,
    permit: Arc<FetchPermit>,
}

/// The handle of the running fetch itself. Dropping it ends the fetch and wakes the waiting requests, regardless of
/// whether the fetch succeeded, panicked or ended with the runtime.
pub(super) struct FetchGuard {
    in_flight: Arc<InFlightFetches>,
    pub(super) origin: Origin,
    fetch: Arc<InFlightFetch>,
}

// === impl InFlightFetches ===

impl InFlightFetches {
    /// Joins the fetch in flight for `origin`. If no fetch is in flight and one is still due, queues a fetch for
    /// `slot`. Calls `enter` for a permit if the request has to wait and its requester has no permit for this fetch
    /// yet.
    ///
    /// # Errors
    /// Fails if `enter` fails.
    pub(super) fn join_or_queue(
        self: &Arc<Self>,
        origin: &Origin,
        slot: &Arc<Slot>,
        is_due: impl FnOnce() -> bool,
        name: Name,
        enter: impl FnOnce() -> Result<FetchPermit, LookupError>,
    ) -> Result<FetchHandle, LookupError> {
        let mut in_flight = self.lock();
        let wait = |entry: &mut Entry, permit| {
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
            slot: slot.clone(),
            stage: watch::Sender::new(Stage::Queued),
        });
        if !is_due() {
            fetch.stage.send_replace(Stage::Finished);
            return Ok(FetchHandle::Running(fetch.join()));
        }
        let permit = Arc::new(enter()?);
        let mut entry = Entry {
            fetch,
            waiting: 0,
            permits: vec![(name, Arc::downgrade(&permit))],
        };
        let handle = wait(&mut entry, permit);
        in_flight.insert(origin.clone(), entry);
        Ok(handle)
    }

    /// Returns the slot of the fetch in flight for `origin`.
    pub(super) fn of(&self, origin: &Origin) -> Option<Arc<Slot>> {
        self.lock().get(origin).map(|entry| entry.fetch.slot.clone())
    }

    /// Returns the slots of all fetches in flight.
    pub(super) fn slots(&self) -> Vec<(Origin, Arc<Slot>)> {
        let in_flight = self.lock();
        let slots = in_flight
            .iter()
            .map(|(origin, entry)| (origin.clone(), entry.fetch.slot.clone()));
        slots.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, Entry>> {
        // Entries are inserted and removed as a whole, so a panic cannot leave an incomplete one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl InFlightFetch ===

impl InFlightFetch {
    fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    fn join(&self) -> RunningFetch {
        RunningFetch {
            slot: self.slot.clone(),
            stage: self.stage.subscribe(),
        }
    }
}

// === impl RunningFetch ===

impl RunningFetch {
    /// Returns whether the fetch has begun. It might also have ended.
    pub(super) fn has_begun(&self) -> bool {
        *self.stage.borrow() != Stage::Queued
    }

    /// Waits until the fetch has ended and its result is in the slot. Returns `false` if the fetch was dropped while
    /// it was queued.
    pub(super) async fn finished(&mut self) -> bool {
        self.stage.wait_for(|stage| *stage == Stage::Finished).await.is_ok()
    }
}

// === impl QueuedFetch ===

impl QueuedFetch {
    /// Waits for the requester's turn. Returns `false` if the fetch has started in another requester's turn.
    pub(super) async fn turn(&self) -> bool {
        let mut stage = self.fetch.stage.subscribe();
        tokio::select! {
            biased;
            _ = stage.wait_for(|stage| *stage != Stage::Queued) => false,
            () = self.permit.turn() => true,
        }
    }

    /// Starts the fetch in the requester's turn. Returns `None` if the fetch has already started.
    pub(super) fn begin(&self) -> Option<(FetchGuard, Arc<FetchPermit>)> {
        let is_first = self.fetch.stage.send_if_modified(|stage| {
            let is_first = *stage == Stage::Queued;
            if is_first {
                *stage = Stage::Running;
            }
            is_first
        });
        is_first.then(|| {
            self.fetch.slot.fetching.store(true, Ordering::Relaxed);
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
        let mut in_flight = self.in_flight.lock();
        let Some(entry) = in_flight.get_mut(&self.origin) else {
            return;
        };
        // If the fetch has ended, the entry can belong to the next fetch of the origin.
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
    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.fetch.slot
    }
}

impl Drop for FetchGuard {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.origin);
        self.fetch.slot.fetching.store(false, Ordering::Relaxed);
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

    /// Queues a request for `origin` from a client that gets its own permit.
    fn queued(
        in_flight: &Arc<InFlightFetches>,
        limiter: &Arc<FetchLimiter>,
        origin: &Origin,
        client: u8,
    ) -> QueuedFetch {
        let name = Name::Client([192, 0, 2, client].into());
        let requester = Requester { name, max_fetches: 9 };
        let slot = Arc::new(Slot::new(true));
        match in_flight.join_or_queue(origin, &slot, || true, name, || limiter.enter(requester)) {
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
        // A `QueuedFetch` drops its reference to the fetch only after it has checked the entry, so a second one can
        // check while the first one still has its reference.
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
