//! Whose fetch is next. It only counts: it knows no time and waits for nothing.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
};

use crate::fetch::LookupError;

/// Who asks for fetches, and how many it may have at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    pub name: Name,
    /// Fetches that run or wait.
    pub max_fetches: usize,
}

/// Whom a fetch counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// A client of the proxy, by its IPv4 address or the `/64` of its IPv6 address.
    Client(IpAddr),
    /// All operators together.
    Operators,
}

/// The fetches that run, counted, and those that wait, each as a `T`.
///
/// Requesters take turns, and the fetches of one requester start in the order in which they came. A requester may start
/// another fetch while it runs fewer than [`LEEWAY`] times the places that are free. So one that asks for more than it
/// gets leaves a quarter of the places to others, and several share what they take.
#[derive(Debug)]
pub(super) struct Queue<T> {
    permits: usize,
    running: usize,
    /// The number of the last fetch that came.
    last: u64,
    shares: HashMap<Name, Share<T>>,
    /// The requesters with fetches that wait, the next one first.
    round: VecDeque<Name>,
}

/// The fetches of one requester.
#[derive(Debug)]
struct Share<T> {
    running: usize,
    waiting: BTreeMap<u64, T>,
}

// === impl Queue ===

impl<T> Queue<T> {
    pub(super) fn new(permits: usize) -> Self {
        Self {
            permits,
            running: 0,
            last: 0,
            shares: HashMap::new(),
            round: VecDeque::new(),
        }
    }

    /// Puts a fetch behind the others of its requester, and returns its number.
    ///
    /// # Errors
    /// The requester has as many as it may have.
    pub(super) fn enter(&mut self, requester: Requester, fetch: T) -> Result<u64, LookupError> {
        let share = self.shares.entry(requester.name).or_insert_with(|| Share {
            running: 0,
            waiting: BTreeMap::new(),
        });
        if share.running + share.waiting.len() >= requester.max_fetches {
            if share.is_empty() {
                self.shares.remove(&requester.name);
            }
            return Err(LookupError::TooManyFetches);
        }
        self.last += 1;
        if share.waiting.is_empty() {
            self.round.push_back(requester.name);
        }
        share.waiting.insert(self.last, fetch);
        Ok(self.last)
    }

    /// Removes a fetch that waited or ran.
    pub(super) fn leave(&mut self, name: Name, number: u64) {
        let Some(share) = self.shares.get_mut(&name) else {
            return;
        };
        if share.waiting.remove(&number).is_none() {
            share.running -= 1;
            self.running -= 1;
        } else if share.waiting.is_empty() {
            self.round.retain(|other| *other != name);
        }
        if share.is_empty() {
            self.shares.remove(&name);
        }
    }

    /// The next fetch that may start, which counts as running from here on.
    pub(super) fn start(&mut self) -> Option<T> {
        let most = LEEWAY * (self.permits - self.running);
        let may_run = |name: &Name| self.running_of(*name) < most;
        let next = self.round.iter().position(may_run)?;
        let name = self.round.remove(next)?;
        let share = self.shares.get_mut(&name)?;
        let (_, fetch) = share.waiting.pop_first()?;
        if !share.waiting.is_empty() {
            self.round.push_back(name);
        }
        share.running += 1;
        self.running += 1;
        Some(fetch)
    }

    /// Whether a slow fetch of `name` keeps another from starting that has more right to its place: one of the same
    /// requester, or of one that runs fewer.
    pub(super) fn is_in_need(&self, name: Name) -> bool {
        let running = self.running_of(name);
        let has_right = |other: &Name| *other == name || self.running_of(*other) < running;
        self.round.iter().any(has_right)
    }

    fn running_of(&self, name: Name) -> usize {
        self.shares.get(&name).map_or(0, |share| share.running)
    }
}

// === impl Share ===

impl<T> Share<T> {
    fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }
}

/// With it, one requester alone gets three quarters of the places, two that ask for more than they get three sevenths
/// each, and so on; some places stay free as long as there are enough of them.
const LEEWAY: usize = 3;

#[cfg(test)]
mod tests;
