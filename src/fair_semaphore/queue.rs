//! Decides which key gets the next permit. Reads no clock and does not wait.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
};

/// The running tasks, each of which has a permit, and the waiting tasks, which [`Queue::start`] returns one by one.
///
/// Keys take turns, and the tasks of a key start in the order in which they were queued. A task starts only while its
/// key has fewer than [`LEEWAY`] running tasks for each free permit.
#[derive(Debug)]
pub(super) struct Queue<K, T> {
    permits: usize,
    running: usize,
    /// The number of the task that was queued last.
    last: u64,
    shares: HashMap<K, Share<T>>,
    /// The keys with waiting tasks, in the order of their turns.
    round: VecDeque<K>,
}

#[derive(Debug)]
struct Share<T> {
    running: usize,
    waiting: BTreeMap<u64, T>,
}

// === impl Queue ===

impl<K: Copy + Eq + Hash, T> Queue<K, T> {
    pub(super) fn new(permits: usize) -> Self {
        Self {
            permits,
            running: 0,
            last: 0,
            shares: HashMap::new(),
            round: VecDeque::new(),
        }
    }

    /// Returns `None` if the key already has `most` tasks.
    pub(super) fn enter(&mut self, key: K, most: usize, task: T) -> Option<u64> {
        let share = self.shares.entry(key).or_insert_with(|| Share {
            running: 0,
            waiting: BTreeMap::new(),
        });
        if share.running + share.waiting.len() >= most {
            if share.is_empty() {
                self.shares.remove(&key);
            }
            return None;
        }
        self.last += 1;
        if share.waiting.is_empty() {
            self.round.push_back(key);
        }
        share.waiting.insert(self.last, task);
        Some(self.last)
    }

    pub(super) fn leave(&mut self, key: K, number: u64) {
        let Some(share) = self.shares.get_mut(&key) else {
            return;
        };
        if share.waiting.remove(&number).is_none() {
            share.running -= 1;
            self.running -= 1;
        } else if share.waiting.is_empty() {
            self.round.retain(|other| *other != key);
        }
        if share.is_empty() {
            self.shares.remove(&key);
        }
    }

    /// Takes the next task that may start, and counts it as running.
    pub(super) fn start(&mut self) -> Option<T> {
        let most = LEEWAY * (self.permits - self.running);
        let may_run = |key: &K| self.running_of(*key) < most;
        let next = self.round.iter().position(may_run)?;
        let key = self.round.remove(next)?;
        let share = self.shares.get_mut(&key)?;
        let (_, task) = share.waiting.pop_first()?;
        if !share.waiting.is_empty() {
            self.round.push_back(key);
        }
        share.running += 1;
        self.running += 1;
        Some(task)
    }

    pub(super) fn should_give_way(&self, key: K) -> bool {
        let running = self.running_of(key);
        let has_right = |other: &K| *other == key || self.running_of(*other) < running;
        self.round.iter().any(has_right)
    }

    fn running_of(&self, key: K) -> usize {
        self.shares.get(&key).map_or(0, |share| share.running)
    }
}

// === impl Share ===

impl<T> Share<T> {
    fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }
}

/// A task starts only while its key has fewer running tasks than this for each free permit. With 3, one busy key gets
/// three quarters of the permits, and two busy keys get three sevenths each.
const LEEWAY: usize = 3;

#[cfg(test)]
mod tests;
