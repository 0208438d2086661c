//! A semaphore that is fair between keys, such as clients: scarce permits go to the keys in turn. Reads no clock.

mod queue;

use std::{fmt::Debug, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::SetOnce;

use self::queue::Queue;

#[derive(Debug)]
pub(crate) struct FairSemaphore<K>(Mutex<Queue<K, Arc<SetOnce<()>>>>);

/// A place in the queue for a permit, and later the permit. Dropping this value gives up the place or the permit.
#[derive(Debug)]
pub(crate) struct FairPermit<K: Copy + Eq + Hash> {
    semaphore: Arc<FairSemaphore<K>>,
    key: K,
    number: u64,
    /// Set when the permit may be used.
    turn: Arc<SetOnce<()>>,
}

// === impl FairSemaphore ===

impl<K: Copy + Eq + Hash> FairSemaphore<K> {
    pub(crate) fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue::new(permits))))
    }

    /// Queues a task of `key` for a permit. Returns `None` if tasks of `key` already hold or wait for `most` permits.
    pub(crate) fn enter(self: &Arc<Self>, key: K, most: usize) -> Option<FairPermit<K>> {
        let turn = Arc::new(SetOnce::new());
        let mut queue = self.0.lock();
        let number = queue.enter(key, most, turn.clone())?;
        start(&mut queue);
        Some(FairPermit {
            semaphore: self.clone(),
            key,
            number,
            turn,
        })
    }
}

/// Gives the free permits to the tasks whose turn it is.
fn start<K: Copy + Eq + Hash>(queue: &mut Queue<K, Arc<SetOnce<()>>>) {
    while let Some(turn) = queue.start() {
        // This cannot fail, because the queue returns each turn only once.
        let _ = turn.set(());
    }
}

// === impl FairPermit ===

impl<K: Copy + Eq + Hash> FairPermit<K> {
    pub(crate) async fn turn(&self) {
        self.turn.wait().await;
    }

    /// Returns whether a long task should end because another task waits: one of the same key, or of a key with fewer
    /// running tasks.
    pub(crate) fn should_give_way(&self) -> bool {
        self.semaphore.0.lock().should_give_way(self.key)
    }
}

impl<K: Copy + Eq + Hash> Drop for FairPermit<K> {
    fn drop(&mut self) {
        let mut queue = self.semaphore.0.lock();
        queue.leave(self.key, self.number);
        start(&mut queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_task_that_waits_on_the_same_entry_gets_its_turn() {
        let semaphore = FairSemaphore::new(1);
        let first = semaphore.enter('a', 2).expect("there is room");
        first.turn().await;
        let second = semaphore.enter('a', 2).expect("there is room");
        assert!(!second.turn.initialized());
        drop(first);
        tokio::join!(second.turn(), second.turn());
        second.turn().await;
    }
}
