//! The time at which a fleet's server lets a request be sent.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::now;
use crate::{fleet::Fleet, origin::Origin};

pub(super) struct FleetSlot {
    pub(super) fleet: Arc<Fleet>,
    pub(super) origin: Origin,
    /// The slot's time. `None` if the fleet's server was not asked or did not answer.
    pub(super) at: Option<Instant>,
    pub(super) gap: Duration,
}

// === impl FleetSlot ===

impl FleetSlot {
    /// Returns the slot's time, at which the gap to the next request begins. If there is no slot, or if the request is
    /// late or sent again, reports the request to the fleet's server and returns `None`: the gap then begins now.
    pub(super) fn sent(&self, sent_before: bool) -> Option<Instant> {
        let slack = (self.gap / SLACK).max(LEAST_SLACK);
        let is_in_time = |at: &Instant| self.gap.is_zero() || now() <= *at + slack;
        let at = self.at.filter(|at| !sent_before && is_in_time(at));
        if at.is_none() {
            self.fleet.note_request(&self.origin);
        }
        at
    }

    pub(super) fn note_busy(&self, began: Instant, asked: Option<Duration>, spread: f64) {
        let age = now().saturating_duration_since(began);
        self.fleet.note_busy(&self.origin, age, asked, spread);
    }
}

/// A request is in time if it is sent at most 1/20 of the gap after its slot.
const SLACK: u32 = 20;
/// A request that is at most this late is in time too, because timers are not precise enough for 1/20 of a short gap.
const LEAST_SLACK: Duration = Duration::from_millis(10);
