//! Lets a request that waits for a line of a batch write that batch, on its own thread.

use std::io;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::state::{Batch, SharedLog, Sink};

/// A request's promise to write the next batch, fulfilled when this is dropped. So even a request that is cancelled or
/// panics does not leave other requests waiting.
pub(super) struct WritePromise<'a> {
    shared: &'a SharedLog,
    /// Whether to let other requests add their lines first.
    pub(super) gathers: bool,
}

/// The output and the batch that a request is writing. Dropping this puts both back, even after a panic.
struct WriteTurn<'a> {
    shared: &'a SharedLog,
    /// `Some` until the drop.
    work: Option<(Sink, Batch)>,
}

/// The runtime that serves requests.
#[derive(Debug)]
pub(super) struct RequestRuntime {
    pub(super) handle: Handle,
    /// Whether it has more than one thread, so that others continue while the output blocks one.
    has_others: bool,
}

// === impl SharedLog ===

impl SharedLog {
    /// Decides who writes this batch: the caller, if this returns a [`WritePromise`], or another thread.
    pub(super) fn claim_write(&self, batch: u64) -> Option<WritePromise<'_>> {
        let has_others = self.request_runtime.get_or_init(RequestRuntime::current).has_others;
        let mut state = self.lock();
        if batch < state.batch || state.gathering {
            return None;
        }
        if !has_others || !state.is_free() {
            state.needs_log_thread = true;
            if state.sink.is_some() {
                self.wake(state);
            }
            return None;
        }
        state.gathering = true;
        Some(WritePromise {
            shared: self,
            gathers: state.crowd.is_likely(),
        })
    }

    /// Writes the waiting lines, and the lines that requests add in the meantime, in at most [`MAX_ROUNDS`] batches.
    fn write_inline(&self) {
        for round in 0..MAX_ROUNDS {
            let mut state = self.lock();
            if round > 0 && !state.needs_log_thread {
                return;
            }
            if !state.is_free() {
                break;
            }
            let Some(work) = state.take() else { return };
            drop(state);
            let mut turn = WriteTurn {
                shared: self,
                work: Some(work),
            };
            turn.write();
        }
        let mut state = self.lock();
        if !state.lines.is_empty() {
            state.needs_log_thread = true;
            if state.sink.is_some() {
                self.wake(state);
            }
        }
    }
}

// === impl WritePromise ===

impl Drop for WritePromise<'_> {
    fn drop(&mut self) {
        self.shared.write_inline();
    }
}

// === impl WriteTurn ===

impl WriteTurn<'_> {
    /// Writes the batch until it is complete or an error occurs. The log's own thread deals with errors.
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

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        if let Some((sink, batch)) = self.work.take() {
            self.shared.give_back(sink, batch, false);
        }
    }
}

// === impl RequestRuntime ===

impl RequestRuntime {
    fn current() -> Self {
        let handle = Handle::current();
        let alone = handle.runtime_flavor() == RuntimeFlavor::MultiThread && handle.metrics().num_workers() == 1;
        Self {
            handle,
            has_others: !alone,
        }
    }

    /// Wakes an idle thread so that it takes over the sockets, timers and tasks of a blocked one.
    pub(super) fn rouse(&self) {
        self.handle.spawn(async {});
    }
}

/// Maximum number of batches that one request writes. The first contains its own line.
const MAX_ROUNDS: usize = 8;
