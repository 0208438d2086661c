//! The state machine that limits the requests to one origin.

use std::time::{Duration, Instant};

use super::{
    Cause, Later, PaceLimits, Policy,
    backoff::{Backoff, LONGEST_PAUSE},
    queue::{Ahead, Queue, Waiter},
};

/// Limits the requests to one origin. `K` identifies a bot, `T` a waiting request.
///
/// A request has its turn from [`Step::Go`] until [`ended`](Self::ended). Until it is reported as [`sent`](Self::sent),
/// no other request that needs a gap gets a turn, so that the gap does not shrink if connecting takes long.
#[derive(Debug)]
pub struct Limiter<K, T> {
    queue: Queue<K, T>,
    /// Number of requests that have their turn and have not ended.
    running: u32,
    /// Number of the `running` requests that were not sent to the site yet.
    unsent: u32,
    /// When the last request was sent.
    last: Option<Instant>,
    backoff: Backoff,
}

/// What the caller of [`Limiter::next`] has to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// Send this request: it has its turn now.
    Go(T),
    /// Refuse this request: it cannot be sent before its deadline. The client can retry it at the given time.
    Refuse(T, Later),
    /// Call [`Limiter::next`] again at this time, or when something has been reported to the limiter.
    Wait(Instant),
    /// No request waits.
    Idle,
}

// === impl Limiter ===

impl<K: Eq, T> Default for Limiter<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Eq, T> Limiter<K, T> {
    pub fn new() -> Self {
        Self {
            queue: Queue::new(),
            running: 0,
            unsent: 0,
            last: None,
            backoff: Backoff::default(),
        }
    }

    /// Adds a request of `bot` to the queue and returns the request's number.
    ///
    /// # Errors
    /// Fails if the request would wait longer than `max_wait`, or if the queue is full. The error says when to retry
    /// it.
    pub fn enter(&mut self, now: Instant, bot: K, limits: PaceLimits, owner: T) -> Result<u64, Later> {
        let starts = self.estimate(now, self.queue.ahead(&bot), &limits);
        let deadline = now + limits.max_wait;
        let cause = match starts > deadline {
            true => self.cause(now, &limits),
            false if self.queue.len() >= MAX_WAITING => Cause::Waiting,
            false => return Ok(self.queue.push(bot, limits, deadline, owner)),
        };
        Err(Later {
            at: starts.max(now + SOON),
            cause,
        })
    }

    /// Applies a new policy to the requests that already wait.
    pub fn reconfigure(&mut self, policy: &Policy) {
        for waiter in self.queue.iter_mut() {
            let limits = waiter.limits.under(policy);
            // Add before subtracting, because an `Instant` cannot go below the start of the clock.
            waiter.deadline = waiter.deadline + limits.max_wait - waiter.limits.max_wait;
            waiter.limits = limits;
        }
    }

    fn cause(&self, now: Instant, limits: &PaceLimits) -> Cause {
        match () {
            () if self.is_paused(now) => Cause::Pause,
            () if self.reach(now).from(limits.gap) <= now && !self.has_room(limits) => Cause::Concurrency,
            () => limits.gap_cause,
        }
    }

    /// Returns whether a pause still lasts.
    pub fn is_paused(&self, now: Instant) -> bool {
        self.backoff.until().is_some_and(|until| until > now)
    }

    /// Gives the first waiting request its turn, or refuses a request whose deadline comes before its turn, or returns
    /// when to call this again.
    pub fn next(&mut self, now: Instant) -> Step<T> {
        let Some(first) = self.queue.first() else {
            return Step::Idle;
        };
        let (is_open, ready) = (self.is_open(&first.limits), self.reach(now).from(first.limits.gap));
        if is_open
            && ready <= now
            && let Some(first) = self.queue.pop()
        {
            self.begin();
            return Step::Go(first.owner);
        }
        let reach = self.reach(now);
        let is_late = |waiter: &Waiter<T>| waiter.deadline <= now || waiter.deadline < reach.from(waiter.limits.gap);
        if let Some((ahead, late)) = self.queue.take(is_late) {
            let starts = self.estimate(now, ahead, &late.limits);
            let later = Later {
                at: starts.max(now + SOON),
                cause: self.cause(now, &late.limits),
            };
            return Step::Refuse(late.owner, later);
        }
        let deadlines = self.queue.deadlines();
        let next = deadlines.chain(is_open.then_some(ready)).min();
        next.map_or(Step::Idle, Step::Wait)
    }

    /// Gives a turn to a request that does not wait in the queue.
    pub fn begin(&mut self) {
        self.running += 1;
        self.unsent += 1;
    }

    /// Removes a waiting request from the queue. Returns `None` if it was not there.
    pub fn leave(&mut self, number: u64) -> Option<T> {
        self.queue.remove(number)
    }

    /// Reports that a running request is sent. `sent_before` means that it is sent again, on another connection.
    pub fn sent(&mut self, now: Instant, sent_before: bool) {
        self.unsent -= u32::from(!sent_before);
        self.note_request(now);
    }

    /// Reports a request that did not ask for a turn, such as the fetch of a robots.txt. A gap follows it too.
    pub fn note_request(&mut self, now: Instant) {
        self.last = self.last.max(Some(now));
    }

    /// Reports the end of a running request. `sent` says whether it was sent at all.
    pub fn ended(&mut self, sent: bool) {
        self.running -= 1;
        self.unsent -= u32::from(!sent);
    }

    /// Reports that a request that began at `began` got a 429 or 503 at `now`. `asked` is the `Retry-After`; without
    /// one, `spread` (0 to 1) sets the jitter that lengthens the pause.
    pub fn note_busy(&mut self, now: Instant, began: Instant, asked: Option<Duration>, spread: f64) {
        self.backoff.note(now, began, asked, spread);
    }

    /// Pauses for `left`, at most a day, because the fleet reported a pause. Never shortens the current pause.
    pub fn pause(&mut self, now: Instant, left: Duration) {
        self.backoff.extend(now + left.min(LONGEST_PAUSE));
    }

    /// Returns when a request that has its turn may be sent: after the pause, and `gap` after the last request.
    pub fn earliest(&self, now: Instant, gap: Duration) -> Instant {
        let last = self.last;
        Reach {
            last,
            ..self.reach(now)
        }
        .from(gap)
    }

    /// Returns when a new request of `bot` could be sent, or `None` if that is now. Reserves nothing.
    pub fn not_before(&self, now: Instant, bot: &K, limits: &PaceLimits) -> Option<Later> {
        let starts = self.estimate(now, self.queue.ahead(bot), limits);
        let at = match self.has_room(limits) {
            true => starts,
            false => starts.max(now + SOON),
        };
        let cause = self.cause(now, limits);
        (at > now).then_some(Later { at, cause })
    }

    /// Returns whether a new limiter would do the same as this one. `longest_gap` is the longest gap that a request can
    /// have.
    pub fn is_idle(&self, now: Instant, longest_gap: Duration) -> bool {
        let gap_is_over = |last: Instant| now.saturating_duration_since(last) >= longest_gap;
        self.queue.is_empty() && self.running == 0 && self.last.is_none_or(gap_is_over) && self.backoff.is_forgiven(now)
    }

    /// Returns whether no request waits or runs and there is no pause. Dropping the limiter then loses only the time of
    /// the last request and the number of incidents, which sets the length of the next pause.
    pub fn is_unused(&self, now: Instant) -> bool {
        self.queue.is_empty() && self.running == 0 && self.backoff.until().is_none_or(|until| until <= now)
    }

    /// Returns whether any request is in the queue.
    pub fn is_waited_for(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Gives all waiting requests their turn immediately, and returns them.
    pub fn release(&mut self) -> impl Iterator<Item = T> {
        (0..self.queue.len()).for_each(|_| self.begin());
        self.queue.drain()
    }

    fn is_open(&self, limits: &PaceLimits) -> bool {
        self.has_room(limits) && (self.unsent == 0 || limits.gap.is_zero())
    }

    fn has_room(&self, limits: &PaceLimits) -> bool {
        limits.concurrency.is_none_or(|most| self.running < most)
    }

    /// Estimates when a new request could be sent, after those in `ahead`.
    fn estimate(&self, now: Instant, ahead: Option<Ahead>, limits: &PaceLimits) -> Instant {
        let reach = self.reach(now);
        match ahead {
            Some(ahead) => (reach.from(ahead.first) + ahead.others + limits.gap).max(reach.from(limits.gap)),
            None => reach.from(limits.gap),
        }
    }

    fn reach(&self, now: Instant) -> Reach {
        Reach {
            now: now.max(self.backoff.until().unwrap_or(now)),
            // An unsent request is sent now at the earliest, so the next gap cannot begin before now.
            last: if self.unsent > 0 { Some(now) } else { self.last },
        }
    }
}

#[derive(Clone, Copy)]
struct Reach {
    /// The present time, or the end of a pause if that is later.
    now: Instant,
    last: Option<Instant>,
}

// === impl Reach ===

impl Reach {
    fn from(self, gap: Duration) -> Instant {
        self.now.max(self.last.map_or(self.now, |last| last + gap))
    }
}

/// Maximum number of requests that wait for one origin.
const MAX_WAITING: usize = 256;
/// Clients are told to retry after this time at the earliest. `estimate` can be too early, because it does not know
/// when running requests end.
const SOON: Duration = Duration::from_secs(1);
