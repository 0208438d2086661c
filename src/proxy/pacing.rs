//! Makes a request wait for its turn at the site. The wait comes after the decision to forward the request, and before
//! that decision is logged. [`crate::pace`] says when the turn comes.

use std::time::SystemTime;

use super::{
    exchange::Exchange,
    generation::Generation,
    judge::{self, NoDecision},
};
use crate::{
    decision::{Decision, Deferral},
    fetch::Requester,
    pace::{Cause, Limits},
    pacer::{Pacer, SharedPacer, TooEarly},
};

/// Why a request cannot be forwarded after its wait.
pub(super) enum Unpaced {
    NoDecision(NoDecision),
    /// The client has left. The value is the decision from before the wait.
    Gone(Box<Decision>),
}

/// Waits for the turn of a request that is to be forwarded, and stores the turn in `exchange`. A request that had to
/// wait is decided again. A request that would have to wait too long is deferred instead. `gone` completes when the
/// client leaves.
///
/// # Errors
/// Fails if the client has left, or the request cannot be decided again.
pub(super) async fn wait_for_turn(
    exchange: &mut Exchange,
    requester: Requester,
    decision: Decision,
    gone: impl Future<Output = ()>,
) -> Result<Decision, Unpaced> {
    let generation = exchange.generation.clone();
    let Some((pacer, limits)) = generation.pace_of(&decision) else {
        return Ok(decision);
    };
    let (origin, bot) = (&decision.target().origin, decision.bot().unwrap_or_default());
    let began = Pacer::now();
    let turn = tokio::select! {
        biased;
        turn = pacer.turn(origin, bot, limits) => turn,
        () = gone => {
            exchange.note_pace_wait(Pacer::now().saturating_duration_since(began));
            return Err(Unpaced::Gone(Box::new(decision)));
        }
    };
    let turn = match turn {
        Ok(turn) => turn,
        Err(TooEarly { later, waited }) => {
            exchange.note_pace_wait(waited);
            let left = later.at.saturating_duration_since(Pacer::now());
            let at = SystemTime::now();
            return Ok(decision.deferred(Deferral {
                at,
                not_before: at + left,
                cause: later.cause,
            }));
        }
    };
    let waited = turn.waited;
    exchange.note_pace_wait(waited);
    exchange.turn = Some(turn);
    if waited.is_zero() {
        return Ok(decision);
    }
    let decision = judge::decide(&generation, requester, decision.question).await;
    let decision = decision.map_err(Unpaced::NoDecision)?;
    if !decision.forwarded {
        exchange.turn = None;
    }
    Ok(decision)
}

// === impl Generation ===

impl Generation {
    /// Returns the pacer and the limits of a request that is to be forwarded, or `None` if it has no limits.
    fn pace_of(&self, decision: &Decision) -> Option<(&SharedPacer, Limits)> {
        let pacer = self.pacer.as_ref().filter(|_| decision.forwarded)?;
        // A request whose `Crawl-delay` is too long never gets a decision to forward it.
        Some((pacer, decision.limits().ok()??))
    }

    /// Returns when a request with this decision would be forwarded and why not now, or `None` if now. Reserves
    /// nothing.
    pub(crate) async fn not_before(&self, decision: &Decision) -> Option<(SystemTime, Cause)> {
        let (pacer, limits) = self.pace_of(decision)?;
        let bot = decision.bot().unwrap_or_default();
        let later = pacer.not_before(&decision.target().origin, bot, &limits).await?;
        // Reads the clocks in this order, so that a delay between them can make the result too late but never too
        // early.
        let left = later.at.saturating_duration_since(Pacer::now());
        Some((SystemTime::now() + left, later.cause))
    }
}
