//! Makes requests wait for their turn in this robotgate and, in a fleet, also for a time from the fleet's server.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{FleetPace, Pacer, TooEarly, Turn};
use crate::{
    origin::Origin,
    pace::{Later, Limits},
};

/// What requests and fetches use to wait for their turn: the pacer of this robotgate and, if there is one, the fleet.
#[derive(Debug, Clone)]
pub(crate) struct SharedPacer {
    pub(crate) local: Arc<Pacer>,
    pub(crate) fleet: Option<FleetPace>,
}

// === impl SharedPacer ===

impl SharedPacer {
    /// Waits until a request of `bot` may be sent, like [`Pacer::turn`]. In a fleet, also waits for a time from its
    /// server.
    pub(crate) async fn turn(&self, origin: &Origin, bot: &str, limits: Limits) -> Result<Turn, TooEarly> {
        match &self.fleet {
            Some(fleet) => fleet.turn(&self.local, origin, bot, limits).await,
            None => self.local.turn(origin, bot, limits).await,
        }
    }

    /// Returns when a request of `bot` could be sent, like [`Pacer::not_before`]. In a fleet, also asks its server.
    pub(crate) async fn not_before(&self, origin: &Origin, bot: &str, limits: &Limits) -> Option<Later> {
        match &self.fleet {
            Some(fleet) => fleet.not_before(&self.local, origin, bot, limits).await,
            None => self.local.not_before(origin, bot, limits),
        }
    }

    /// Records a request that did not ask for a turn, here and on the fleet's server.
    pub(crate) fn note_request(&self, origin: &Origin) {
        self.local.note_request(origin);
        if let Some(FleetPace { fleet, .. }) = &self.fleet {
            fleet.note_request(origin);
        }
    }

    /// Records a 429 or 503 of the origin, here and on the fleet's server. For the parameters, see
    /// [`Pacer::note_busy`].
    pub(crate) fn note_busy(&self, origin: &Origin, began: Instant, asked: Option<Duration>) {
        let spread = self.local.note_busy(origin, began, asked);
        if let Some(FleetPace { fleet, .. }) = &self.fleet {
            fleet.note_busy(origin, super::now().saturating_duration_since(began), asked, spread);
        }
    }
}
