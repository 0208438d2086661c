//! Tells a request in a fleet when it may be sent. The request waits for its turn in this robotgate, then reserves a
//! slot (a time) on the fleet's server, and keeps its turn until the slot. So the robotgates alternate, and so do the
//! bots of each robotgate.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::watch};

use super::{
    Pacer, TooEarly, Turn,
    fleet_slot::FleetSlot,
    now,
    origin_pacer::{Present, SOON},
};
use crate::{
    fleet::{Fleet, OnLoss, SlotReservation},
    origin::Origin,
    pace::{Cause, Later, PaceLimits, Policy},
};

#[derive(Debug, Clone)]
pub(crate) struct FleetPace {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) on_loss: OnLoss,
    pub(crate) size: u32,
}

/// Keeps a turn until its slot even if the client leaves, so that a robotgate has at most one future slot at an origin.
struct HeldTurn {
    /// `None` after `take`.
    turn: Option<Turn>,
    until: Instant,
}

struct WaitTracker<'p> {
    pacer: &'p Pacer,
    reloaded: watch::Receiver<Option<Policy>>,
    began: Instant,
    deadline: Instant,
    limits: PaceLimits,
    /// Whether the limits made the request wait. Waiting for an answer of the fleet's server does not count.
    has_waited: bool,
}

// === impl FleetPace ===

impl FleetPace {
    /// Waits for the turn of a request, reserves a slot on the fleet's server, and waits until the slot. If the future
    /// is dropped after the slot is reserved, the next request gets the turn only at the slot's time.
    pub(super) async fn turn(
        &self,
        pacer: &Pacer,
        origin: &Origin,
        bot: &str,
        limits: PaceLimits,
    ) -> Result<Turn, TooEarly> {
        let mut wait = WaitTracker::new(pacer, limits);
        let queued = match self.fleet.is_used() {
            true => limits,
            false => self.without_server(limits).ok_or(wait.too_early(no_server()))?,
        };
        let mut turn = pacer.turn(origin, bot, queued).await?;
        wait.has_waited = !turn.waited.is_zero();
        wait.reconfigure();
        // All calls of this request to the fleet's server share this time limit.
        let mut time_left = self.fleet.call_timeout();
        let at = loop {
            if pacer.is_lifted() {
                turn.waited = wait.waited();
                return Ok(turn);
            }
            // Another robotgate may have reported a pause while this request waited for its turn.
            wait.until(turn.earliest(Duration::ZERO), Cause::Pause).await?;
            if turn.earliest(Duration::ZERO) > now() {
                continue;
            }
            let asked = now();
            let left = wait.deadline.saturating_duration_since(asked);
            let reserved = self.fleet.reserve(origin, wait.limits.gap, left, time_left).await;
            time_left = time_left.saturating_sub(now().saturating_duration_since(asked));
            match reserved {
                Some(SlotReservation::Reserved(slot)) => {
                    let held = HeldTurn {
                        turn: Some(turn),
                        until: now() + slot,
                    };
                    wait.until_slot(held.until).await?;
                    turn = held.take();
                    if turn.earliest(Duration::ZERO) <= now() {
                        // `slot` counts from the server's answer. Here it is counted from `asked`, which is earlier, so
                        // that this robotgate is not slower than required.
                        break Some(asked + slot);
                    }
                }
                Some(SlotReservation::Paused(left)) => turn.pause(left),
                Some(SlotReservation::TooLate(slot)) => {
                    let cause = wait.limits.gap_cause;
                    let at = now() + slot;
                    return Err(wait.too_early(Later { at, cause }));
                }
                None => {
                    let alone = self.without_server(wait.limits).ok_or(wait.too_early(no_server()))?;
                    let cause = match turn.is_paused() {
                        true => Cause::Pause,
                        false => alone.gap_cause,
                    };
                    wait.until(turn.earliest(alone.gap), cause).await?;
                    // If a pause has begun or the limits have changed during this wait, begin the loop again.
                    let alone = self.without_server(wait.limits).ok_or(wait.too_early(no_server()))?;
                    if turn.earliest(alone.gap) <= now() {
                        break None;
                    }
                }
            }
        };
        let slot = FleetSlot {
            fleet: self.fleet.clone(),
            origin: origin.clone(),
            at,
            gap: wait.limits.gap,
        };
        turn.begin(slot, wait.waited());
        Ok(turn)
    }

    pub(super) async fn not_before(
        &self,
        pacer: &Pacer,
        origin: &Origin,
        bot: &str,
        limits: &PaceLimits,
    ) -> Option<Later> {
        let here = |limits| pacer.not_before(origin, bot, &limits);
        let later = match self.fleet.next_slot(origin, limits.gap).await {
            Some(next) => {
                let cause = match next.is_paused {
                    true => Cause::Pause,
                    false => limits.gap_cause,
                };
                let at = now() + next.wait;
                (!next.wait.is_zero()).then_some(Later { at, cause })
            }
            None => match self.without_server(*limits) {
                Some(limits) => return here(limits),
                None => Some(no_server()),
            },
        };
        [here(*limits), later]
            .into_iter()
            .flatten()
            .max_by_key(|later| later.at)
    }

    /// Returns the limits that apply while the fleet's server cannot be used, or `None` if `on-loss` is `refuse`.
    fn without_server(&self, limits: PaceLimits) -> Option<PaceLimits> {
        let gap = self.on_loss.gap(limits.gap, self.size)?;
        Some(PaceLimits { gap, ..limits })
    }
}

// === impl HeldTurn ===

impl HeldTurn {
    fn take(mut self) -> Turn {
        match self.turn.take() {
            Some(turn) => turn,
            None => unreachable!("a turn is taken once, because that consumes `self`"),
        }
    }
}

impl Drop for HeldTurn {
    fn drop(&mut self) {
        // At the end of the process, there is no runtime that could keep the turn until its slot.
        if let (Some(turn), Ok(runtime)) = (self.turn.take(), Handle::try_current()) {
            let until = self.until;
            runtime.spawn(async move {
                tokio::time::sleep_until(until.into()).await;
                drop(turn);
            });
        }
    }
}

// === impl WaitTracker ===

impl<'p> WaitTracker<'p> {
    fn new(pacer: &'p Pacer, limits: PaceLimits) -> Self {
        let began = now();
        Self {
            pacer,
            reloaded: pacer.reloaded.subscribe(),
            began,
            deadline: began + limits.max_wait,
            limits,
            has_waited: false,
        }
    }

    /// Waits until `at`, or until a reload changes the limits.
    async fn until(&mut self, at: Instant, cause: Cause) -> Result<(), TooEarly> {
        if at <= now() || self.pacer.is_lifted() {
            return Ok(());
        }
        if at > self.deadline {
            return Err(self.too_early(Later { at, cause }));
        }
        let present = Present::among(&self.pacer.waiting);
        let cause = Cause::Waiting;
        let _present = present.ok_or(self.too_early(Later { at, cause }))?;
        self.has_waited = true;
        tokio::select! {
            () = tokio::time::sleep_until(at.into()) => {}
            _ = self.reloaded.changed() => self.reconfigure(),
        }
        Ok(())
    }

    /// Waits for the slot at `at`. If a reload makes the gap shorter, the wait becomes shorter by the same time.
    async fn until_slot(&mut self, mut at: Instant) -> Result<(), TooEarly> {
        while at > now() && !self.pacer.is_lifted() {
            // `until` fails if too many requests wait, or if a reload moved the deadline before the slot.
            let PaceLimits { gap, gap_cause, .. } = self.limits;
            self.until(at, gap_cause).await?;
            at = at.checked_sub(gap.saturating_sub(self.limits.gap)).unwrap_or(at);
        }
        Ok(())
    }

    fn reconfigure(&mut self) {
        let policy = *self.reloaded.borrow_and_update();
        if let Some(policy) = policy.filter(|_| !self.pacer.is_lifted()) {
            self.limits = self.limits.under(&policy);
            self.deadline = self.began + self.limits.max_wait;
        }
    }

    fn too_early(&self, later: Later) -> TooEarly {
        TooEarly {
            later,
            waited: self.waited(),
        }
    }

    fn waited(&self) -> Duration {
        match self.has_waited {
            true => now().saturating_duration_since(self.began),
            false => Duration::ZERO,
        }
    }
}

/// Returns when to retry a request that is refused because of `on-loss`.
fn no_server() -> Later {
    Later {
        at: now() + SOON,
        cause: Cause::Fleet,
    }
}

#[cfg(test)]
mod tests;
