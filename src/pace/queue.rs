//! The queue of the requests that wait for one origin. Bots take turns (round robin), and the requests of a bot keep
//! their order.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::PaceLimits;

/// `K` identifies a bot. `T` is a value that the caller stores with each request.
#[derive(Debug)]
pub(super) struct Queue<K, T> {
    /// A line of waiting requests for each bot that has any. The first request of the first line is sent next.
    lines: VecDeque<BotQueue<K, T>>,
    /// The number of the request that arrived last.
    last: u64,
}

#[derive(Debug)]
struct BotQueue<K, T> {
    bot: K,
    waiting: VecDeque<Waiter<T>>,
}

#[derive(Debug)]
pub(super) struct Waiter<T> {
    number: u64,
    pub(super) limits: PaceLimits,
    /// If the request still waits at this time, it is refused.
    pub(super) deadline: Instant,
    pub(super) owner: T,
}

/// The gaps of the waiting requests that are sent before a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The gap of the request that is sent next.
    pub(super) first: Duration,
    /// The sum of the gaps of the others.
    pub(super) others: Duration,
}

// === impl Queue ===

impl<K: Eq, T> Queue<K, T> {
    pub(super) fn new() -> Self {
        Self {
            lines: VecDeque::new(),
            last: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(|line| line.waiting.len()).sum()
    }

    pub(super) fn push(&mut self, bot: K, limits: PaceLimits, deadline: Instant, owner: T) -> u64 {
        self.last += 1;
        let waiter = Waiter {
            number: self.last,
            limits,
            deadline,
            owner,
        };
        match self.lines.iter_mut().find(|line| line.bot == bot) {
            Some(line) => line.waiting.push_back(waiter),
            None => self.lines.push_back(BotQueue {
                bot,
                waiting: VecDeque::from([waiter]),
            }),
        }
        self.last
    }

    pub(super) fn first(&self) -> Option<&Waiter<T>> {
        self.lines.front()?.waiting.front()
    }

    /// Removes the request that is sent next, and moves its bot behind all other bots.
    pub(super) fn pop(&mut self) -> Option<Waiter<T>> {
        let mut line = self.lines.pop_front()?;
        let waiter = line.waiting.pop_front();
        if !line.waiting.is_empty() {
            self.lines.push_back(line);
        }
        waiter
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let (_, waiter) = self.take(|waiter| waiter.number == number)?;
        Some(waiter.owner)
    }

    /// Removes the first request for which `is_meant` is true. Also returns which gaps would come before the request if
    /// it joined the queue again.
    pub(super) fn take(&mut self, is_meant: impl Fn(&Waiter<T>) -> bool) -> Option<(Option<Ahead>, Waiter<T>)> {
        let lines = self.lines.iter().enumerate();
        let mut places = lines.filter_map(|(line, waiting)| Some((line, waiting.waiting.iter().position(&is_meant)?)));
        let (index, at) = places.next()?;
        let waiter = self.lines[index].waiting.remove(at)?;
        if !self.lines[index].waiting.is_empty() {
            return Some((self.ahead_of(index), waiter));
        }
        self.lines.remove(index);
        // The bot has no other request, so if this request joined the queue again, it would be behind all other bots.
        Some((self.ahead_of(self.lines.len()), waiter))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Waiter<T>> {
        self.lines.iter_mut().flat_map(|line| &mut line.waiting)
    }

    pub(super) fn deadlines(&self) -> impl Iterator<Item = Instant> {
        let waiting = self.lines.iter().flat_map(|line| &line.waiting);
        waiting.map(|waiter| waiter.deadline)
    }

    pub(super) fn ahead(&self, bot: &K) -> Option<Ahead> {
        let index = self.lines.iter().position(|line| line.bot == *bot);
        self.ahead_of(index.unwrap_or(self.lines.len()))
    }

    /// Returns the gaps before a new request at the end of the line at `index`. Bots take turns. So if n requests wait
    /// in this line, n + 1 requests of each line in front of it and n requests of each line behind it come before the
    /// new request.
    fn ahead_of(&self, index: usize) -> Option<Ahead> {
        let waiting = self.lines.get(index).map_or(0, |line| line.waiting.len());
        let lines = self.lines.iter().enumerate();
        let ahead = lines.flat_map(|(at, line)| line.waiting.iter().take(waiting + usize::from(at < index)));
        let mut gaps = ahead.map(|waiter| waiter.limits.gap);
        Some(Ahead {
            first: gaps.next()?,
            others: gaps.sum(),
        })
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        let lines = self.lines.drain(..);
        lines.flat_map(|line| line.waiting).map(|waiter| waiter.owner)
    }
}
