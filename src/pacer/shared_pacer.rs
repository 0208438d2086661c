//! The pacer of this gate, together with the fleet.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{FleetPace, Pacer, TooEarly, Turn};
use crate::{
    origin::Origin,
    pace::{Later, Limits},
};

/// What requests and fetches use to wait for their turn: the pacer of this gate and, if there is one, the fleet.
#[derive(Debug, Clone)]
pub(crate) struct SharedPacer {
    pub(crate) local: Arc<Pacer>,
    pub(crate) fleet: Option<FleetPace>,
}

// === impl SharedPacer ===

impl SharedPacer {
    /// As [`Pacer::turn`].
    pub(crate) async fn turn(&self, origin: &Origin, bot: &str, limits: Limits) -> Result<Turn, TooEarly> {
        match &self.fleet {
            Some(fleet) => fleet.turn(&self.local, origin, bot, limits).await,
            None => self.local.turn(origin, bot, limits).await,
        }
    }

    /// As [`Pacer::not_before`].
    pub(crate) async fn not_before(&self, origin: &Origin, bot: &str, limits: &Limits) -> Option<Later> {
        match &self.fleet {
            Some(fleet) => fleet.not_before(&self.local, origin, bot, limits).await,
            None => self.local.not_before(origin, bot, limits),
        }
    }

    /// As [`Pacer::note_request`].
    pub(crate) fn note_request(&self, origin: &Origin) {
        self.local.note_request(origin);
        if let Some(FleetPace { fleet, .. }) = &self.fleet {
            fleet.note_request(origin);
        }
    }

    /// As [`Pacer::note_busy`].
    pub(crate) fn note_busy(&self, origin: &Origin, began: Instant, asked: Option<Duration>) {
        let spread = self.local.note_busy(origin, began, asked);
        if let Some(FleetPace { fleet, .. }) = &self.fleet {
            fleet.note_busy(origin, super::now().saturating_duration_since(began), asked, spread);
        }
    }
}
