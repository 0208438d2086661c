//! A request that waits for its line writes the whole batch, on its own thread.

use std::io;

use super::state::{Batch, RequestRuntime, SharedLog, Sink};

/// A request's promise to write the next batch. Other requests rely on it, so dropping it writes the batch, even if the
/// request is cancelled or panics.
pub(super) struct WritePromise<'a> {
    shared: &'a SharedLog,
    /// Whether to wait a moment first, so that other requests can add their lines.
    pub(super) gathers: bool,
}

/// Dropping this value returns the output and the batch to the shared state, even after a panic.
struct WriteTurn<'a> {
    shared: &'a SharedLog,
    /// `drop` takes it. Until then, it is `Some`.
    work: Option<(Sink, Batch)>,
}

// === impl SharedLog ===

impl SharedLog {
    pub(super) fn claim_write(&self, batch: u64) -> Option<WritePromise<'_>> {
        let has_others = self.request_runtime.get_or_init(RequestRuntime::current).has_others;
        let mut state = self.state.lock();
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

    /// Writes the waiting lines in at most [`MAX_ROUNDS`] batches. Leaves further lines to the log's own thread.
    fn write_inline(&self) {
        for round in 0..MAX_ROUNDS {
            let mut state = self.state.lock();
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
        let mut state = self.state.lock();
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
    /// After an error, the log's own thread continues.
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

/// Maximum number of batches that one request writes: its own, and those that other requests fill meanwhile.
const MAX_ROUNDS: usize = 8;
