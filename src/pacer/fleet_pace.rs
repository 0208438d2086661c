//! Tells a request in a fleet when it may be sent. The request first waits for its turn among the requests of this
//! robotgate. Then it reserves a slot on the fleet's server: the time at which it may be sent. It keeps its turn until
//! that time. So the robotgates alternate, and within each robotgate the bots alternate.

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

/// The fleet, and what to do while its server cannot be used.
#[derive(Debug, Clone)]
pub(crate) struct FleetPace {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) on_loss: OnLoss,
    /// Number of robotgates in the fleet.
    pub(crate) size: u32,
}

/// The turn of a request that waits for its reserved slot. Even if the client leaves, this keeps the turn until the
/// slot's time. So a robotgate never has more than one future slot at an origin.
struct HeldTurn {
    /// The turn. `None` after `take` has moved it out.
    turn: Option<Turn>,
    until: Instant,
}

/// Keeps track of how long one request waits, from its arrival on, and of the limits that apply to it.
struct WaitTracker<'p> {
    pacer: &'p Pacer,
    /// Receives the new limits when the configuration is reloaded.
    reloaded: watch::Receiver<Option<Policy>>,
    began: Instant,
    deadline: Instant,
    limits: PaceLimits,
    /// Whether the request had to wait because of the limits. Waiting for the fleet server's answer does not count.
    has_waited: bool,
}

// === impl FleetPace ===

impl FleetPace {
    /// Waits for the turn of a request in this robotgate. Then reserves a slot on the fleet's server, and waits until
    /// the slot's time. If the future is dropped before the slot is reserved, the next request gets the turn
    /// immediately. If the future is dropped later, nobody uses the slot, and the next request gets the turn at the
    /// slot's time.
    ///
    /// # Errors
    /// Fails if the request would have to wait too long, or too many requests wait.
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
        // How long this request may still wait for answers of the fleet's server. All of its calls to the server share
        // this time.
        let mut time_left = self.fleet.call_timeout();
        let at = loop {
            if pacer.is_lifted() {
                turn.waited = wait.waited();
                return Ok(turn);
            }
            // While this request waited for its turn, another robotgate may have reported a pause. Wait until the pause
            // ends.
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
                        // `slot` is the delay from the server's answer to the slot, and the server answered after
                        // `asked`. So the slot is a little later than `asked + slot`. Nevertheless, let the gap to the
                        // next request begin at `asked + slot`, so that this robotgate is not slower than the fleet
                        // requires.
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
                    // If a pause has begun or a reload has changed the limits during this wait, begin the loop again.
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

    /// Returns when a request could be sent, or `None` if it could be sent now. Reserves nothing.
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

    /// Returns the limits for this robotgate while the fleet's server cannot be used, or `None` if the robotgate must
    /// send nothing (`on-loss` is `refuse`).
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
        // At the end of the process, no runtime can keep the turn until its slot. The turn is then dropped immediately.
        if let (Some(turn), Ok(runtime)) = (self.turn.take(), Handle::try_current()) {
            let until = self.until;
            runtime.spawn(async move {
                tokio::time::sleep_until(until.into()).await;
                drop(turn);
            });
        }
    }
}

// === impl Wait ===

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
    ///
    /// # Errors
    /// Fails if `at` is after the deadline, or if too many requests wait.
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

    /// Waits for the slot at the time `at`. If a reload makes the gap shorter during the wait, the wait becomes shorter
    /// by the same time.
    async fn until_slot(&mut self, mut at: Instant) -> Result<(), TooEarly> {
        while at > now() && !self.pacer.is_lifted() {
            // This fails if too many requests wait, or if a reload has made `max_wait` shorter, so that the deadline is
            // now before the slot.
            let PaceLimits { gap, gap_cause, .. } = self.limits;
            self.until(at, gap_cause).await?;
            at = at.checked_sub(gap.saturating_sub(self.limits.gap)).unwrap_or(at);
        }
        Ok(())
    }

    /// Applies the limits of the last reload to this request.
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

/// Returns when to retry a request that is refused because the fleet's server cannot be used and `on-loss` is `refuse`.
fn no_server() -> Later {
    Later {
        at: now() + SOON,
        cause: Cause::Fleet,
    }
}

#[cfg(test)]
mod tests;
