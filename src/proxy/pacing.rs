//! After the decision to forward a request, and before this decision is logged, waits until the site's pace allows the
//! request.

use std::time::SystemTime;

use super::{
    exchange::Exchange,
    generation::Generation,
    judge::{self, NoDecision},
};
use crate::{
    decision::{Decision, Deferral},
    fetch::Requester,
    pace::{Cause, PaceLimits},
    pacer::{Pacer, SharedPacer, TooEarly},
};

pub(super) enum Unpaced {
    NoDecision(NoDecision),
    /// The client has left. The value is the decision from before the wait.
    Gone(Box<Decision>),
}

/// Waits until the site's pace allows a request, or defers the request if it cannot get a turn in time. After a wait,
/// decides the request again, because the robots.txt may have changed.
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
    let decision = judge::decide(&generation, requester, decision.question, &mut exchange.tally);
    let decision = decision.await.map_err(Unpaced::NoDecision)?;
    if !decision.forwarded {
        exchange.turn = None;
    }
    Ok(decision)
}

// === impl Generation ===

impl Generation {
    fn pace_of(&self, decision: &Decision) -> Option<(&SharedPacer, PaceLimits)> {
        let pacer = self.pacer.as_ref().filter(|_| decision.forwarded)?;
        // `limits` fails only for a `Crawl-delay` that is too long. A request to such a site is not forwarded, so the
        // line above has already returned.
        Some((pacer, decision.limits().ok()??))
    }

    /// Returns when the site's pace will allow a request, and which limit delays it. Returns `None` if the pace allows
    /// the request now.
    pub(crate) async fn not_before(&self, decision: &Decision) -> Option<(SystemTime, Cause)> {
        let (pacer, limits) = self.pace_of(decision)?;
        let bot = decision.bot().unwrap_or_default();
        let later = pacer.not_before(&decision.target().origin, bot, &limits).await?;
        // Read the pacer's clock before the system clock. A delay between the two then makes the result too late, but
        // never too early.
        let left = later.at.saturating_duration_since(Pacer::now());
        Some((SystemTime::now() + left, later.cause))
    }
}
