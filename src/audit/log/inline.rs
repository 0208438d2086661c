//! Writing on the thread that serves requests, by a request whose line is in the batch.

use std::io;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::state::{Batch, SharedLog, Sink};

/// The word of a request that it writes the next batch. It does so when this is dropped: a request that goes away before,
/// or panics, leaves nobody waiting.
pub(super) struct Lead<'a> {
    shared: &'a SharedLog,
    /// Whether other requests should first have the time to add their lines.
    pub(super) gathers: bool,
}

/// A batch and the output, in the hands of the one that writes. It gives them back when it is dropped, whatever happened.
struct Turn<'a> {
    shared: &'a SharedLog,
    /// There until the drop.
    work: Option<(Sink, Batch)>,
}

/// The runtime of the requests.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) handle: Handle,
    /// Whether other threads go on while one is held up by the output.
    has_others: bool,
}

// === impl SharedLog ===

impl SharedLog {
    /// Sees to it that a line is written which is in the batch with this number: by the caller, where that gets a
    /// [`Lead`], or else by someone else.
    pub(super) fn lead(&self, batch: u64) -> Option<Lead<'_>> {
        let has_others = self.home.get_or_init(Home::current).has_others;
        let mut state = self.lock();
        if batch < state.batch || state.gathering {
            return None;
        }
        if !has_others || !state.is_free() {
            state.hurry = true;
            if state.sink.is_some() {
                self.wake(state);
            }
            return None;
        }
        state.gathering = true;
        Some(Lead {
            shared: self,
            gathers: state.crowd.is_likely(),
        })
    }

    /// Writes the lines that are there, and those that requests hand over meanwhile; but not for ever.
    fn write_inline(&self) {
        for round in 0..MAX_ROUNDS {
            let mut state = self.lock();
            if round > 0 && !state.hurry {
                return;
            }
            if !state.is_free() {
                break;
            }
            let Some(work) = state.take() else { return };
            drop(state);
            let mut turn = Turn {
                shared: self,
                work: Some(work),
            };
            turn.write();
        }
        let mut state = self.lock();
        if !state.lines.is_empty() {
            state.hurry = true;
            if state.sink.is_some() {
                self.wake(state);
            }
        }
    }
}

// === impl Lead ===

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.shared.write_inline();
    }
}

// === impl Turn ===

impl Turn<'_> {
    /// Writes until an error, which the log's own thread deals with.
    fn write(&mut self) {
        let Some((sink, batch)) = &mut self.work else { return };
        while batch.left() > 0 {
            match sink.writer.write(&batch.bytes[batch.done..]) {
                Ok(0) => return,
                Ok(written) => batch.done += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some((sink, batch)) = self.work.take() {
            self.shared.give_back(sink, batch, false);
        }
    }
}

// === impl Home ===

impl Home {
    fn current() -> Self {
        let handle = Handle::current();
        let alone = handle.runtime_flavor() == RuntimeFlavor::MultiThread && handle.metrics().num_workers() == 1;
        Self {
            handle,
            has_others: !alone,
        }
    }

    /// Wakes a thread that sleeps, so that it takes over the sockets and timers, and the tasks, of one that is held up.
    pub(super) fn rouse(&self) {
        self.handle.spawn(async {});
    }
}

/// Batches that one request writes at most, the first of which has its own line.
const MAX_ROUNDS: usize = 8;
