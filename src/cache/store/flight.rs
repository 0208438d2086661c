//! The fetches that run: one per origin, which the others join.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use tokio::sync::watch;

use super::slot::Slot;
use crate::origin::Origin;

/// The fetches that run, by origin.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Origin, Flight>>);

#[derive(Debug)]
struct Flight {
    slot: Arc<Slot>,
    /// It closes when the state is in place.
    landed: watch::Receiver<()>,
}

/// What becomes of someone who needs a fetch.
pub(super) enum Boarding {
    /// One runs, which brings its state to `slot`; or none is due any more.
    Joined {
        slot: Arc<Slot>,
        landed: watch::Receiver<()>,
    },
    /// None ran: it is this one's to make.
    First(Landing),
}

/// Held by whoever makes a fetch. It ends when this is dropped, however that comes about: with a
/// state, by a panic, or with the runtime. Those who wait go on then.
pub(super) struct Landing {
    flights: Arc<Flights>,
    origin: Origin,
    slot: Arc<Slot>,
    open: watch::Sender<()>,
}

// === impl Flights ===

impl Flights {
    /// Joins the fetch that runs for `origin`; else starts one into `slot`, if it is still due.
    pub(super) fn board(
        self: &Arc<Self>,
        origin: &Origin,
        slot: &Arc<Slot>,
        is_due: impl FnOnce() -> bool,
    ) -> Boarding {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(origin) {
            return Boarding::Joined {
                slot: flight.slot.clone(),
                landed: flight.landed.clone(),
            };
        }
        let (open, landed) = watch::channel(());
        let slot = slot.clone();
        if !is_due() {
            // The sender is gone at once, so nobody waits.
            return Boarding::Joined { slot, landed };
        }
        slot.flying.store(true, Ordering::Relaxed);
        flights.insert(
            origin.clone(),
            Flight {
                slot: slot.clone(),
                landed,
            },
        );
        Boarding::First(Landing {
            flights: self.clone(),
            origin: origin.clone(),
            slot,
            open,
        })
    }

    /// Where the fetch that runs for `origin` brings its state to.
    pub(super) fn of(&self, origin: &Origin) -> Option<Arc<Slot>> {
        self.lock().get(origin).map(|flight| flight.slot.clone())
    }

    /// Where all that run bring their states to.
    pub(super) fn slots(&self) -> Vec<(Origin, Arc<Slot>)> {
        let flights = self.lock();
        let slots = flights
            .iter()
            .map(|(origin, flight)| (origin.clone(), flight.slot.clone()));
        slots.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, Flight>> {
        // Entries come and go whole, so a panic cannot leave one half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Landing ===

impl Landing {
    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Closes when the fetch has ended.
    pub(super) fn landed(&self) -> watch::Receiver<()> {
        self.open.subscribe()
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.origin);
        self.slot.flying.store(false, Ordering::Relaxed);
    }
}
