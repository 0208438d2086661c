//! Decides which fetch starts next. It reads no clock and does not wait.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
};

use crate::fetch::LookupError;

/// Who requests a fetch, and the limit for that requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    pub name: Name,
    /// How many fetches of this requester can run or wait.
    pub max_fetches: usize,
}

/// Whose limit a fetch counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// A client of the proxy, by its IPv4 address or the `/64` of its IPv6 address.
    Client(IpAddr),
    /// All operators together.
    Operators,
}

/// The waiting fetches, with a `T` for each, and the number of running fetches.
///
/// Requesters take turns. The fetches of one requester start in the order in which they came. A requester may start
/// another fetch if it runs fewer than [`LEEWAY`] times as many as there are free permits. So a single busy requester
/// leaves a quarter of the permits free for others.
#[derive(Debug)]
pub(super) struct Queue<T> {
    permits: usize,
    running: usize,
    /// The number of the last fetch that was queued.
    last: u64,
    shares: HashMap<Name, Share<T>>,
    /// The requesters with waiting fetches, in the order of their turns.
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

    /// Queues a fetch behind the others of its requester, and returns its number.
    ///
    /// # Errors
    /// Fails if the requester has reached its limit of fetches.
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

    /// Removes a waiting or running fetch.
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

    /// Takes the next fetch that may start, and counts it as running.
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

    /// Returns whether a slow fetch of `name` should end in favour of others. It should if another fetch of `name`
    /// waits, or one of a requester that runs fewer fetches.
    pub(super) fn should_give_way(&self, name: Name) -> bool {
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

/// A requester runs at most this many fetches for each free permit. With 3, one busy requester gets three quarters of
/// the permits, and two get three sevenths each. So some permits stay free, if there are enough of them.
const LEEWAY: usize = 3;

#[cfg(test)]
mod tests;
