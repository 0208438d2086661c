//! A semaphore that is fair between keys. Each permit is for a key, such as a client. If permits are scarce, the keys
//! get them in turn, however many permits one key waits for. It reads no clock.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// A semaphore with a fixed number of permits. Each permit is taken for a key of type `K`.
pub(crate) struct FairSemaphore<K: Eq + Hash + Clone> {
    state: Mutex<State<K>>,
}

/// A permit, which returns to the semaphore when dropped.
pub(crate) struct FairPermit<K: Eq + Hash + Clone>(Arc<FairSemaphore<K>>);

struct State<K: Eq + Hash + Clone> {
    /// Number of free permits. If any are free, no task waits.
    free: usize,
    /// For each key, its waiting tasks in the order in which they came. A key without waiting tasks has no entry.
    waiting: HashMap<K, VecDeque<oneshot::Sender<FairPermit<K>>>>,
    /// The keys of `waiting`, in the order in which they get the next permits.
    round: VecDeque<K>,
}

// === impl FairSemaphore ===

impl<K: Eq + Hash + Clone> FairSemaphore<K> {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                free: count,
                waiting: HashMap::new(),
                round: VecDeque::new(),
            }),
        })
    }

    /// Waits for a permit. If the caller drops the future before it has a permit, the next waiting task gets it
    /// instead.
    pub(crate) async fn take(self: &Arc<Self>, key: K) -> FairPermit<K> {
        let receiver = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return FairPermit(self.clone());
            }
            state.wait(key)
        };
        match receiver.await {
            Ok(permit) => permit,
            // This cannot happen: while a task waits, its sender is in `self`, and is dropped only after it has sent.
            Err(_) => unreachable!("a turn is sent before its sender is dropped"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone> fmt::Debug for FairSemaphore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairSemaphore").finish_non_exhaustive()
    }
}

// === impl State ===

impl<K: Eq + Hash + Clone> State<K> {
    fn wait(&mut self, key: K) -> oneshot::Receiver<FairPermit<K>> {
        let (sender, receiver) = oneshot::channel();
        if !self.waiting.contains_key(&key) {
            self.round.push_back(key.clone());
        }
        self.waiting.entry(key).or_default().push_back(sender);
        receiver
    }

    /// Removes and returns the sender of the next task that still waits.
    fn next(&mut self) -> Option<oneshot::Sender<FairPermit<K>>> {
        while let Some(key) = self.round.pop_front() {
            let list = self.waiting.get_mut(&key)?;
            let next = std::iter::from_fn(|| list.pop_front()).find(|sender| !sender.is_closed());
            match list.is_empty() {
                true => drop(self.waiting.remove(&key)),
                false => self.round.push_back(key),
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

// === impl FairPermit ===

impl<K: Eq + Hash + Clone> Drop for FairPermit<K> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state();
            let next = state.next();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            // If the task stops waiting at this moment, `send` returns the permit. Dropping it passes it on to the next
            // task.
            drop(next.send(FairPermit(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = FairPermit<char>>>>;

    fn wait(semaphore: &Arc<FairSemaphore<char>>, key: char) -> Waiting {
        let semaphore = semaphore.clone();
        let mut waiting: Waiting = Box::pin(async move { semaphore.take(key).await });
        assert!(poll(&mut waiting).is_none(), "no turn is free");
        waiting
    }

    fn poll(waiting: &mut Waiting) -> Option<FairPermit<char>> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    /// Passes the only permit from one waiting task to the next, and returns the order of the tasks.
    fn order(permit: FairPermit<char>, waiting: Vec<(&'static str, Waiting)>) -> Vec<&'static str> {
        let (mut permit, mut waiting, mut order) = (Some(permit), waiting, Vec::new());
        while permit.take().is_some() {
            waiting.retain_mut(|(name, waiting)| match poll(waiting) {
                Some(got) => {
                    assert!(permit.is_none(), "there is one turn");
                    permit = Some(got);
                    order.push(*name);
                    false
                }
                None => true,
            });
        }
        assert!(waiting.is_empty(), "everyone gets a turn");
        order
    }

    #[tokio::test]
    async fn keys_take_turns_regardless_of_how_many_waiters_each_has() {
        let semaphore = FairSemaphore::new(1);
        let permit = semaphore.take('a').await;
        let names = ["a1", "a2", "a3", "a4", "b1", "b2", "c1"];
        let waiting = names.map(|name| (name, wait(&semaphore, char::from(name.as_bytes()[0]))));
        assert_eq!(
            order(permit, waiting.into()),
            ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
        );
        let _free_again = semaphore.take('a').await;
    }

    #[tokio::test]
    async fn a_cancelled_waiter_loses_its_turn() {
        let semaphore = FairSemaphore::new(1);
        let permit = semaphore.take('a').await;
        let (gone, receiver, last) = (wait(&semaphore, 'a'), wait(&semaphore, 'b'), wait(&semaphore, 'c'));
        drop(gone);
        drop(permit);
        // The permit was already sent to `receiver`, which now stops waiting before it receives the permit.
        drop(receiver);
        let [mut last] = [last];
        let permit = poll(&mut last);
        assert!(permit.is_some());
        drop(permit);
        let _free_again = semaphore.take('a').await;
    }

    #[tokio::test]
    async fn as_many_permits_are_out_as_the_semaphore_has() {
        let semaphore = FairSemaphore::new(2);
        let first = semaphore.take('a').await;
        let _second = semaphore.take('a').await;
        let mut third = wait(&semaphore, 'a');
        drop(first);
        assert!(poll(&mut third).is_some());
    }
}
