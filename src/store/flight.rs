//! The fetches that are wanted: one per origin, which the others join.
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
    fetch::{LookupError, Name, Place},
    origin::Origin,
};

/// The fetches that are wanted, by origin.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Origin, Entry>>);

#[derive(Debug)]
struct Entry {
    flight: Arc<Flight>,
    /// How many wait for its turn.
    waiting: usize,
    /// What requesters have in the queue for it.
    places: Vec<(Name, Weak<Place>)>,
}

#[derive(Debug)]
struct Flight {
    /// Where it brings its state.
    slot: Arc<Slot>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waits,
    Runs,
    Landed,
}

/// What becomes of someone who needs a fetch.
pub(super) enum Boarding {
    /// It runs; or none is due any more.
    Joined(Joined),
    /// It waits for its turn.
    Waiting(Waiting),
}

/// Held by those who wait for a fetch that runs.
pub(super) struct Joined {
    pub(super) slot: Arc<Slot>,
    stage: watch::Receiver<Stage>,
}

/// Held by those who wait for a fetch to begin. When the last of them goes, the fetch is not wanted any more.
pub(super) struct Waiting {
    flights: Arc<Flights>,
    pub(super) origin: Origin,
    flight: Arc<Flight>,
    place: Arc<Place>,
}

/// Held by whoever makes a fetch. It ends when this is dropped, however that comes about: with a
/// state, by a panic, or with the runtime. Those who wait go on then.
pub(super) struct Landing {
    flights: Arc<Flights>,
    pub(super) origin: Origin,
    flight: Arc<Flight>,
}

// === impl Flights ===

impl Flights {
    /// Joins the fetch that is wanted for `origin`; else wants one into `slot`, if it is still due. Where it waits, `enter`
    /// takes a place for it, unless the requester has one there already.
    ///
    /// # Errors
    /// Those of `enter`.
    pub(super) fn board(
        self: &Arc<Self>,
        origin: &Origin,
        slot: &Arc<Slot>,
        is_due: impl FnOnce() -> bool,
        name: Name,
        enter: impl FnOnce() -> Result<Place, LookupError>,
    ) -> Result<Boarding, LookupError> {
        let mut flights = self.lock();
        let wait = |entry: &mut Entry, place| {
            entry.waiting += 1;
            Boarding::Waiting(Waiting {
                flights: self.clone(),
                origin: origin.clone(),
                flight: entry.flight.clone(),
                place,
            })
        };
        if let Some(entry) = flights.get_mut(origin) {
            if entry.flight.stage() != Stage::Waits {
                return Ok(Boarding::Joined(entry.flight.join()));
            }
            let own = entry.places.iter().find(|(other, _)| *other == name);
            if let Some(place) = own.and_then(|(_, place)| place.upgrade()) {
                return Ok(wait(entry, place));
            }
            let place = Arc::new(enter()?);
            entry.places.retain(|(_, place)| place.strong_count() > 0);
            entry.places.push((name, Arc::downgrade(&place)));
            return Ok(wait(entry, place));
        }
        let flight = Arc::new(Flight {
            slot: slot.clone(),
            stage: watch::Sender::new(Stage::Waits),
        });
        if !is_due() {
            flight.stage.send_replace(Stage::Landed);
            return Ok(Boarding::Joined(flight.join()));
        }
        let place = Arc::new(enter()?);
        let mut entry = Entry {
            flight,
            waiting: 0,
            places: vec![(name, Arc::downgrade(&place))],
        };
        let boarding = wait(&mut entry, place);
        flights.insert(origin.clone(), entry);
        Ok(boarding)
    }

    /// Where the fetch that is wanted for `origin` brings its state to.
    pub(super) fn of(&self, origin: &Origin) -> Option<Arc<Slot>> {
        self.lock().get(origin).map(|entry| entry.flight.slot.clone())
    }

    /// Where all of them bring their states to.
    pub(super) fn slots(&self) -> Vec<(Origin, Arc<Slot>)> {
        let flights = self.lock();
        let slots = flights
            .iter()
            .map(|(origin, entry)| (origin.clone(), entry.flight.slot.clone()));
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

// === impl Flight ===

impl Flight {
    fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    fn join(&self) -> Joined {
        Joined {
            slot: self.slot.clone(),
            stage: self.stage.subscribe(),
        }
    }
}

// === impl Joined ===

impl Joined {
    /// Whether the fetch has begun, and perhaps ended.
    pub(super) fn has_begun(&self) -> bool {
        *self.stage.borrow() != Stage::Waits
    }

    /// Waits until the fetch has ended and its state is in place; `false` where nobody waits for its turn any more.
    pub(super) async fn landed(&mut self) -> bool {
        self.stage.wait_for(|stage| *stage == Stage::Landed).await.is_ok()
    }
}

// === impl Waiting ===

impl Waiting {
    /// Waits for a turn of the requester; `false` where the fetch has begun in another's.
    pub(super) async fn turn(&self) -> bool {
        let mut stage = self.flight.stage.subscribe();
        tokio::select! {
            biased;
            _ = stage.wait_for(|stage| *stage != Stage::Waits) => false,
            () = self.place.turn() => true,
        }
    }

    /// Begins the fetch in this turn, unless it has begun.
    pub(super) fn begin(&self) -> Option<(Landing, Arc<Place>)> {
        let is_first = self.flight.stage.send_if_modified(|stage| {
            let is_first = *stage == Stage::Waits;
            if is_first {
                *stage = Stage::Runs;
            }
            is_first
        });
        is_first.then(|| {
            self.flight.slot.flying.store(true, Ordering::Relaxed);
            let landing = Landing {
                flights: self.flights.clone(),
                origin: self.origin.clone(),
                flight: self.flight.clone(),
            };
            (landing, self.place.clone())
        })
    }

    pub(super) fn join(&self) -> Joined {
        self.flight.join()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        let Some(entry) = flights.get_mut(&self.origin) else {
            return;
        };
        // Once a fetch has ended, the entry may be that of the next one.
        if !Arc::ptr_eq(&entry.flight, &self.flight) {
            return;
        }
        entry.waiting -= 1;
        // One that runs is removed when it ends.
        if entry.waiting == 0 && self.flight.stage() == Stage::Waits {
            flights.remove(&self.origin);
        }
    }
}

// === impl Landing ===

impl Landing {
    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.flight.slot
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.origin);
        self.flight.slot.flying.store(false, Ordering::Relaxed);
        self.flight.stage.send_replace(Stage::Landed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fetch::{Lanes, Requester},
        origin::{Authority, Scheme},
    };

    /// Someone who waits for the fetch for `origin`, each with a place of its own.
    fn waiting(flights: &Arc<Flights>, lanes: &Arc<Lanes>, origin: &Origin, client: u8) -> Waiting {
        let name = Name::Client([192, 0, 2, client].into());
        let requester = Requester { name, max_fetches: 9 };
        let slot = Arc::new(Slot::new(true));
        match flights.board(origin, &slot, || true, name, || lanes.enter(requester)) {
            Ok(Boarding::Waiting(waiting)) => waiting,
            Ok(Boarding::Joined(_)) => panic!("the fetch has begun"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_fetch_that_nobody_waits_for_leaves_no_entry_even_when_all_go_at_once() {
        let (flights, lanes) = (Arc::<Flights>::default(), Arc::new(Lanes::new(1)));
        let origin = Origin::new(Scheme::Https, Authority::parse(b"a.example").expect("a host"));
        let [first, second] = [1, 2].map(|client| waiting(&flights, &lanes, &origin, client));
        // A `Waiting` gives its hold on the flight back only after it has looked at the entry, so the second may look
        // while the first holds it still.
        let held_by_first = first.flight.clone();
        drop(first);
        assert_eq!(flights.len(), 1, "one waits still");
        drop(second);
        assert_eq!(flights.len(), 0);
        drop(held_by_first);
    }

    #[test]
    fn who_waited_for_a_fetch_that_has_ended_does_not_touch_the_next_one() {
        let (flights, lanes) = (Arc::<Flights>::default(), Arc::new(Lanes::new(1)));
        let origin = Origin::new(Scheme::Https, Authority::parse(b"a.example").expect("a host"));
        let earlier = waiting(&flights, &lanes, &origin, 1);
        drop(earlier.begin().expect("it is the first"));
        assert_eq!(flights.len(), 0, "it has ended");
        let next = waiting(&flights, &lanes, &origin, 2);
        drop(earlier);
        assert_eq!(flights.len(), 1, "the next one is wanted");
        drop(next);
        assert_eq!(flights.len(), 0);
    }
}
