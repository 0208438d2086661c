//! The requests to one origin: those that wait for their turn, and those that have their turn.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Notify, oneshot};

use super::{fleet_pace::FleetSlot, lock, now};
use crate::pace::{Cause, Later, Limiter, Limits, Policy, Step};

/// Number of requests that wait, over all origins, and the largest number allowed.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) now: AtomicUsize,
    pub(super) most: AtomicUsize,
}

/// The state of one origin.
#[derive(Default)]
pub(super) struct OriginPacer {
    state: Mutex<State>,
    /// Notified when an event can give a request its turn.
    changed: Notify,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) limiter: Limiter<Box<str>, Ticket>,
    /// Whether a task is running that calls [`OriginPacer::advance`] when necessary. The task runs while requests wait.
    is_driven: bool,
}

/// The queue's side of a waiting request. The request counts as waiting until the ticket is dropped.
pub(super) struct Ticket {
    sender: oneshot::Sender<Result<Turn, Later>>,
    _present: Present,
}

/// Counts one waiting request.
pub(super) struct Present(Arc<Waiting>);

/// The request's side of a waiting request. Dropping it removes the request from the queue.
pub(super) struct WaitingRequest {
    pacer: Arc<OriginPacer>,
    number: u64,
    receiver: oneshot::Receiver<Result<Turn, Later>>,
}

/// The turn of a request. Dropping it ends the turn. If the request was not sent, the turn is given back.
pub(crate) struct Turn {
    pacer: Arc<OriginPacer>,
    began: Instant,
    is_sent: bool,
    /// How long the request waited. Zero if it did not have to wait.
    pub(crate) waited: Duration,
    /// `None` without a fleet.
    slot: Option<FleetSlot>,
}

/// The error for a request that cannot have its turn within its `max_wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooEarly {
    /// When the request can be retried, and why not earlier.
    pub(crate) later: Later,
    /// How long the request waited before it was refused.
    pub(crate) waited: Duration,
}

// === impl OriginPacer ===

impl OriginPacer {
    /// Notifies requests whose turn has come or that waited too long. Returns when to call this again, if any request
    /// waits.
    fn advance(self: &Arc<Self>) -> Option<Instant> {
        loop {
            let step = self.state().limiter.next(now());
            // Sends without holding the lock: if the request has just left, sending drops its turn, which takes the
            // lock.
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
        if std::mem::replace(&mut self.state().is_driven, true) {
            return self.changed.notify_one();
        }
        let pacer = self.clone();
        tokio::spawn(async move {
            while !pacer.is_done() {
                let Some(at) = pacer.advance() else { continue };
                // An event can wake the task earlier.
                let _ = tokio::time::timeout_at(at.into(), pacer.changed.notified()).await;
            }
        });
    }

    /// Gives a turn to a request that is not limited.
    pub(super) fn begin(self: Arc<Self>) -> Turn {
        self.state().limiter.begin();
        Turn::new(self)
    }

    /// Gives all waiting requests their turn.
    pub(super) fn release(self: &Arc<Self>) {
        let released: Vec<_> = self.state().limiter.release().collect();
        for ticket in released {
            // If the request has just left, its turn is dropped.
            drop(ticket.sender.send(Ok(Turn::new(self.clone()))));
        }
        self.changed.notify_one();
    }

    /// Gives all waiting requests the limits of another policy.
    pub(super) fn reconfigure(&self, policy: &Policy) {
        self.state().limiter.reconfigure(policy);
        self.changed.notify_one();
    }

    /// Returns whether no request waits. If so, the task ends.
    fn is_done(&self) -> bool {
        let mut state = self.state();
        state.is_driven = state.limiter.is_waited_for();
        !state.is_driven
    }

    pub(super) fn note_request(&self) {
        self.state().limiter.note_request(now());
        self.changed.notify_one();
    }

    /// Returns the spread that sets the jitter.
    pub(super) fn note_busy(&self, began: Instant, asked: Option<Duration>) -> f64 {
        // Each `RandomState` hashes differently, so this is a random number.
        let spread = RandomState::new().hash_one(began) as f64 / u64::MAX as f64;
        self.state().limiter.note_busy(now(), began, asked, spread);
        self.changed.notify_one();
        spread
    }

    /// Records a pause that another gate reported.
    pub(super) fn pause(&self, left: Duration) {
        self.state().limiter.pause(now(), left);
        self.changed.notify_one();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

// === impl Present ===

impl Present {
    /// Counts a waiting request. Returns `None` if too many requests wait.
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
    /// Puts a request of `bot` into the queue of `pacer`.
    ///
    /// # Errors
    /// Fails if the wait would be too long, or too many requests wait.
    pub(super) fn enter(
        pacer: Arc<OriginPacer>,
        bot: &str,
        limits: Limits,
        waiting: &Arc<Waiting>,
    ) -> Result<Self, TooEarly> {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut state = pacer.state();
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

    /// Waits for the turn.
    ///
    /// # Errors
    /// Fails if the wait was too long.
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
            // `self` keeps the pacer alive, and a pacer answers each ticket that it removes.
            Err(_) => unreachable!("a ticket is answered before it is dropped"),
        }
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        // If a turn was sent but not received, dropping `receiver` gives it back.
        let left = self.pacer.state().limiter.leave(self.number);
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

    /// Records the slot that the fleet gave to the request, whose wait ends now.
    pub(super) fn begin(&mut self, slot: FleetSlot, waited: Duration) {
        self.began = now();
        self.waited = waited;
        self.slot = Some(slot);
    }

    /// Returns the earliest time for this request: after the pause, and `gap` after the last request of this gate.
    pub(super) fn earliest(&self, gap: Duration) -> Instant {
        self.pacer.state().limiter.earliest(now(), gap)
    }

    /// Returns whether a pause that the site asked for still lasts.
    pub(super) fn is_paused(&self) -> bool {
        self.pacer.state().limiter.is_paused(now())
    }

    /// Records a pause that another gate reported.
    pub(super) fn pause(&self, left: Duration) {
        self.pacer.pause(left);
    }

    /// Records that the request is being sent, for the first time or again.
    pub(crate) fn sent(&mut self) {
        let slot = self.slot.as_ref();
        let at = slot.and_then(|slot| slot.sent(self.is_sent)).unwrap_or_else(now);
        self.pacer.state().limiter.sent(at, self.is_sent);
        self.is_sent = true;
        self.pacer.changed.notify_one();
    }

    /// Records that the response is 429 or 503. `asked` is the value of its `Retry-After`.
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
        self.pacer.state().limiter.ended(self.is_sent);
        self.pacer.changed.notify_one();
    }
}

/// When to retry if too many requests wait.
pub(super) const SOON: Duration = Duration::from_secs(1);
