//! The requests to one origin: those that wait for their turn, and those that have it.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::{fleet_slot::FleetSlot, now};
use crate::pace::{Cause, Later, Limiter, PaceLimits, Policy, Step};

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) now: AtomicUsize,
    pub(super) most: AtomicUsize,
}

#[derive(Default)]
pub(super) struct OriginPacer {
    pub(super) state: Mutex<State>,
    /// Wakes the task of [`OriginPacer::drive`] when the limiter has changed.
    changed: Notify,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) limiter: Limiter<Box<str>, Ticket>,
    /// Whether the task of [`OriginPacer::drive`] is running. It runs while requests wait.
    is_driven: bool,
}

/// The queue's entry for a waiting request. The request counts as waiting until the ticket is dropped.
pub(super) struct Ticket {
    sender: oneshot::Sender<Result<Turn, Later>>,
    _present: Present,
}

/// Counts a request as waiting until this is dropped.
pub(super) struct Present(Arc<Waiting>);

/// A request in the queue. Dropping this removes it from the queue.
pub(super) struct WaitingRequest {
    pacer: Arc<OriginPacer>,
    number: u64,
    receiver: oneshot::Receiver<Result<Turn, Later>>,
}

/// The permission to send a request; drop it when the request has ended. If the request was not sent, no gap follows.
pub(crate) struct Turn {
    pacer: Arc<OriginPacer>,
    began: Instant,
    is_sent: bool,
    /// Zero if the request did not have to wait.
    pub(crate) waited: Duration,
    /// `None` without a fleet, and if a reload removed the limits.
    slot: Option<FleetSlot>,
}

/// A request cannot be sent within its `max_wait`, too many requests wait, or `on-loss` refuses the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooEarly {
    pub(crate) later: Later,
    pub(crate) waited: Duration,
}

// === impl OriginPacer ===

impl OriginPacer {
    /// Returns when to call this again, or `None` if no request waits.
    fn advance(self: &Arc<Self>) -> Option<Instant> {
        loop {
            let step = self.state.lock().limiter.next(now());
            // The lock must be free here: if the request has stopped waiting, dropping its turn takes the lock.
            match step {
                Step::Go(ticket) => drop(ticket.sender.send(Ok(Turn::new(self.clone())))),
                Step::Refuse(ticket, later) => drop(ticket.sender.send(Err(later))),
                Step::Wait(at) => return Some(at),
                Step::Idle => return None,
            }
        }
    }

    /// Starts the task that calls `advance`, or wakes it.
    fn drive(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state.lock().is_driven, true) {
            return self.changed.notify_one();
        }
        let pacer = self.clone();
        tokio::spawn(async move {
            while !pacer.is_done() {
                let Some(at) = pacer.advance() else { continue };
                let _ = tokio::time::timeout_at(at.into(), pacer.changed.notified()).await;
            }
        });
    }

    /// Gives a request its turn immediately, because there are no limits any more.
    pub(super) fn begin(self: Arc<Self>) -> Turn {
        self.state.lock().limiter.begin();
        Turn::new(self)
    }

    pub(super) fn release(self: &Arc<Self>) {
        let released: Vec<_> = self.state.lock().limiter.release().collect();
        for ticket in released {
            // If the request has just stopped waiting, its turn is dropped here.
            drop(ticket.sender.send(Ok(Turn::new(self.clone()))));
        }
        self.changed.notify_one();
    }

    pub(super) fn reconfigure(&self, policy: &Policy) {
        self.state.lock().limiter.reconfigure(policy);
        self.changed.notify_one();
    }

    fn is_done(&self) -> bool {
        let mut state = self.state.lock();
        state.is_driven = state.limiter.is_waited_for();
        !state.is_driven
    }

    pub(super) fn note_request(&self) {
        self.state.lock().limiter.note_request(now());
        self.changed.notify_one();
    }

    /// Returns the random number (0 to 1) that sets the jitter of the pause.
    pub(super) fn note_busy(&self, began: Instant, asked: Option<Duration>) -> f64 {
        // Each `RandomState` hashes differently, so the hash is a random number.
        let spread = RandomState::new().hash_one(began) as f64 / u64::MAX as f64;
        self.state.lock().limiter.note_busy(now(), began, asked, spread);
        self.changed.notify_one();
        spread
    }

    pub(super) fn pause(&self, left: Duration) {
        self.state.lock().limiter.pause(now(), left);
        self.changed.notify_one();
    }
}

// === impl Present ===

impl Present {
    /// Returns `None` if too many requests wait.
    pub(super) fn among(waiting: &Arc<Waiting>) -> Option<Self> {
        let before = waiting.now.fetch_add(1, Ordering::Relaxed);
        let present = Self(waiting.clone());
        (before < waiting.most.load(Ordering::Relaxed)).then_some(present)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl WaitingRequest ===

impl WaitingRequest {
    pub(super) fn enter(
        pacer: Arc<OriginPacer>,
        bot: &str,
        limits: PaceLimits,
        waiting: &Arc<Waiting>,
    ) -> Result<Self, TooEarly> {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut state = pacer.state.lock();
            let now = now();
            let Some(present) = Present::among(waiting) else {
                let at = state
                    .limiter
                    .not_before(now, &bot.into(), &limits)
                    .map(|later| later.at);
                return Err(TooEarly::at_once(Later {
                    at: at.unwrap_or(now).max(now + SOON),
                    cause: Cause::Waiting,
                }));
            };
            let ticket = Ticket {
                sender,
                _present: present,
            };
            let entered = state.limiter.enter(now, bot.into(), limits, ticket);
            entered.map_err(TooEarly::at_once)?
        };
        Ok(Self {
            pacer,
            number,
            receiver,
        })
    }

    pub(super) async fn turn(mut self) -> Result<Turn, TooEarly> {
        if self.pacer.advance().is_some() {
            self.pacer.drive();
        }
        if let Ok(answer) = self.receiver.try_recv() {
            return answer.map_err(TooEarly::at_once);
        }
        let started = now();
        let answer = (&mut self.receiver).await;
        let waited = now().saturating_duration_since(started).max(Duration::from_nanos(1));
        match answer {
            Ok(Ok(mut turn)) => {
                turn.waited = waited;
                Ok(turn)
            }
            Ok(Err(later)) => Err(TooEarly { later, waited }),
            // `self` keeps the pacer alive, and the pacer drops no ticket unanswered.
            Err(_) => unreachable!("a ticket is answered before it is dropped"),
        }
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        // If the pacer has already sent the turn, dropping `receiver` drops the turn.
        let left = self.pacer.state.lock().limiter.leave(self.number);
        if left.is_some() {
            self.pacer.changed.notify_one();
        }
    }
}

// === impl TooEarly ===

impl TooEarly {
    fn at_once(later: Later) -> Self {
        Self {
            later,
            waited: Duration::ZERO,
        }
    }
}

// === impl Turn ===

impl Turn {
    fn new(pacer: Arc<OriginPacer>) -> Self {
        Self {
            pacer,
            began: now(),
            is_sent: false,
            waited: Duration::ZERO,
            slot: None,
        }
    }

    pub(super) fn begin(&mut self, slot: FleetSlot, waited: Duration) {
        self.began = now();
        self.waited = waited;
        self.slot = Some(slot);
    }

    /// Returns when this request may be sent: after the pause, and `gap` after the last request of this robotgate.
    pub(super) fn earliest(&self, gap: Duration) -> Instant {
        self.pacer.state.lock().limiter.earliest(now(), gap)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pacer.state.lock().limiter.is_paused(now())
    }

    pub(super) fn pause(&self, left: Duration) {
        self.pacer.pause(left);
    }

    /// Records that the request is being sent, for the first time or again on another connection.
    pub(crate) fn sent(&mut self) {
        let slot = self.slot.as_ref();
        let at = slot.and_then(|slot| slot.sent(self.is_sent)).unwrap_or_else(now);
        self.pacer.state.lock().limiter.sent(at, self.is_sent);
        self.is_sent = true;
        self.pacer.changed.notify_one();
    }

    /// `asked` is the `Retry-After` of the 429 or 503.
    pub(crate) fn note_busy(&self, asked: Option<Duration>) {
        let spread = self.pacer.note_busy(self.began, asked);
        if let Some(slot) = &self.slot {
            slot.note_busy(self.began, asked, spread);
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("is_sent", &self.is_sent)
            .finish_non_exhaustive()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.pacer.state.lock().limiter.ended(self.is_sent);
        self.pacer.changed.notify_one();
    }
}

/// The shortest time after which to retry if too many requests wait, or if the fleet's server cannot be used.
pub(super) const SOON: Duration = Duration::from_secs(1);
