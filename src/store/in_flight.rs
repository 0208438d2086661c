//! The fetches that are queued or run: one per origin, which later requests join.
//!
//! A fetch waits for its turn as long as somebody waits for it, and nothing has begun until then. It may come in the
//! turn of any requester that waits for it. Once it runs, it goes on whoever leaves.

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

/// The fetches that are queued or run, by origin.
#[derive(Debug, Default)]
pub(super) struct InFlightFetches(Mutex<HashMap<Origin, Entry>>);

#[derive(Debug)]
struct Entry {
    fetch: Arc<InFlightFetch>,
    /// How many wait for its turn.
    waiting: usize,
    /// The permits of the requesters that wait for it.
    permits: Vec<(Name, Weak<FetchPermit>)>,
}

#[derive(Debug)]
struct InFlightFetch {
    /// Where it brings its state.
    slot: Arc<Slot>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Queued,
    Running,
    Finished,
}

/// A fetch, as a request that waits for it holds it.
pub(super) enum FetchHandle {
    /// It runs; or none is due any more.
    Running(RunningFetch),
    /// It waits for its turn.
    Queued(QueuedFetch),
}

/// Held by those who wait for a fetch that runs.
pub(super) struct RunningFetch {
    pub(super) slot: Arc<Slot>,
    stage: watch::Receiver<Stage>,
}

/// Held by those who wait for a fetch to begin. When the last of them goes, the fetch is not wanted any more.
pub(super) struct QueuedFetch {
    in_flight: Arc<InFlightFetches>,
    pub(super) origin: Origin,
    fetch: Arc<InFlightFetch>,
    permit: Arc<FetchPermit>,
}

/// Held by whoever makes a fetch. It ends when this is dropped, however that comes about: with a
/// state, by a panic, or with the runtime. Those who wait go on then.
pub(super) struct FetchGuard {
    in_flight: Arc<InFlightFetches>,
    pub(super) origin: Origin,
    fetch: Arc<InFlightFetch>,
}

// === impl InFlightFetches ===

impl InFlightFetches {
    /// Joins the fetch that is wanted for `origin`; else wants one into `slot`, if it is still due. Where it waits, `enter`
    /// takes a permit for it, unless the requester has one already.
    ///
    /// # Errors
    /// Those of `enter`.
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

    /// Where the fetch that is wanted for `origin` brings its state to.
    pub(super) fn of(&self, origin: &Origin) -> Option<Arc<Slot>> {
        self.lock().get(origin).map(|entry| entry.fetch.slot.clone())
    }

    /// Where all of them bring their states to.
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
        // Entries come and go whole, so a panic cannot leave one half done.
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
    /// Whether the fetch has begun, and perhaps ended.
    pub(super) fn has_begun(&self) -> bool {
        *self.stage.borrow() != Stage::Queued
    }

    /// Waits until the fetch has ended and its state is in place; `false` where nobody waits for its turn any more.
    pub(super) async fn finished(&mut self) -> bool {
        self.stage.wait_for(|stage| *stage == Stage::Finished).await.is_ok()
    }
}

// === impl QueuedFetch ===

impl QueuedFetch {
    /// Waits for a turn of the requester; `false` where the fetch has begun in another's.
    pub(super) async fn turn(&self) -> bool {
        let mut stage = self.fetch.stage.subscribe();
        tokio::select! {
            biased;
            _ = stage.wait_for(|stage| *stage != Stage::Queued) => false,
            () = self.permit.turn() => true,
        }
    }

    /// Begins the fetch in this turn, unless it has begun.
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
        // Once a fetch has ended, the entry may be that of the next one.
        if !Arc::ptr_eq(&entry.fetch, &self.fetch) {
            return;
        }
        entry.waiting -= 1;
        // One that runs is removed when it ends.
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

    /// Someone who waits for the fetch for `origin`, each with a permit of its own.
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
    fn a_fetch_that_nobody_waits_for_leaves_no_entry_even_when_all_go_at_once() {
        let (in_flight, limiter) = (Arc::<InFlightFetches>::default(), Arc::new(FetchLimiter::new(1)));
        let origin = Origin::new(Scheme::Https, HostPort::parse(b"a.example").expect("a host"));
        let [first, second] = [1, 2].map(|client| queued(&in_flight, &limiter, &origin, client));
        // A `QueuedFetch` gives its hold on the fetch back only after it has looked at the entry, so the second may look
        // while the first holds it still.
        let held_by_first = first.fetch.clone();
        drop(first);
        assert_eq!(in_flight.len(), 1, "one waits still");
        drop(second);
        assert_eq!(in_flight.len(), 0);
        drop(held_by_first);
    }

    #[test]
    fn who_waited_for_a_fetch_that_has_ended_does_not_touch_the_next_one() {
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
