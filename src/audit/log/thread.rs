//! The log's own thread. It writes what requests do not write themselves. If the output is a pipe, is slow or fails,
//! that is everything. Otherwise it is the lines that no request waits for, and the last lines when the log is closed.

use std::{
    io,
    time::{Duration, Instant},
};

use parking_lot::MutexGuard;

use super::state::{Batch, SharedLog, Sink, State};

/// When to check next whether a request writes the waiting lines.
struct NextCheck {
    at: Instant,
    /// The number of the batch that collected lines at the previous check. If the same batch still collects lines at
    /// this check, no request has written them.
    batch: u64,
}

// === impl SharedLog ===

impl SharedLog {
    /// Runs until the log is closed and everything is written.
    pub(super) fn run(&self) {
        let mut look = None;
        let mut state = self.state.lock();
        loop {
            if let Some(old) = state.change_sink() {
                drop(state);
                // Closing the old file can take long, so close it without the lock.
                drop(old);
                state = self.state.lock();
                continue;
            }
            let due = state.needs_log_thread || state.closed || state.rest.is_some();
            if let Some((sink, batch)) = due.then(|| state.take()).flatten() {
                drop(state);
                self.write_all(sink, batch);
                state = self.state.lock();
                continue;
            }
            // While a request is writing, `sink` is `None`. Do not end then: if the write of the request fails, this
            // thread has to write the rest.
            if state.closed && state.sink.take().is_some() {
                state.ended = true;
                return;
            }
            self.wait(&mut state, &mut look);
        }
    }

    /// Sleeps until it is woken, or until the next check for lines that no request writes.
    fn wait(&self, state: &mut MutexGuard<'_, State>, look: &mut Option<NextCheck>) {
        if !state.is_polling {
            *look = None;
            return self.sleep(state, None);
        }
        let now = Instant::now();
        let next = NextCheck {
            at: now + GATHER,
            batch: state.batch,
        };
        let last = look.get_or_insert(next);
        if now < last.at {
            let until = last.at;
            return self.sleep(state, Some(until));
        }
        match &state.busy {
            Some((since, _)) if now.duration_since(*since) >= GATHER => {
                if let Some(request_runtime) = self.request_runtime.get() {
                    request_runtime.rouse();
                }
            }
            Some(_) => {}
            None => {
                state.needs_log_thread |= !state.lines.is_empty() && last.batch == state.batch;
                state.is_polling = !state.lines.is_empty();
            }
        }
        *last = NextCheck {
            at: now + GATHER,
            batch: state.batch,
        };
    }

    /// Writes a whole batch, with as many attempts as necessary. Switches to another output if one is set. Gives up
    /// only if the log is closing and the output fails.
    fn write_all(&self, mut sink: Sink, mut batch: Batch) {
        let mut stalled = false;
        let mut pauses = 0;
        let mut lost = false;
        while batch.left() > 0 {
            let error = match sink.writer.write(&batch.bytes[batch.done..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(written) => {
                    batch.done += written;
                    pauses = 0;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A pipe is full for a moment if its reader is slower. So try again a little later.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && pauses < MAX_PAUSES => {
                    pauses += 1;
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => error,
            };
            if !stalled {
                tracing::error!(%error, output = &*sink.name, "the audit log cannot be written; requests wait until it can be written");
                stalled = true;
            }
            let mut state = self.state.lock();
            state.failing = true;
            let (other, closed) = (state.other.take(), state.closed);
            if closed && other.is_none() {
                // The log is closing and this batch cannot be written, so it is lost. All later lines are lost as well.
                state.ended = true;
                let bytes = batch.left() + std::mem::take(&mut state.lines).len();
                drop(state);
                tracing::error!(output = &*sink.name, bytes, "the last lines of the audit log are lost");
                lost = true;
                break;
            }
            drop(state);
            if let Some(other) = other {
                sink = other;
                batch.restart_cut_line();
                continue;
            }
            std::thread::sleep(RETRY);
        }
        if stalled && !lost {
            self.state.lock().failing = false;
            tracing::warn!(output = &*sink.name, "the audit log can be written again");
        }
        self.give_back(sink, batch, lost);
    }
}

/// How often to check for lines that no request writes. If two checks in a row find the same line, the log's own thread
/// writes it. So a line waits for at most twice this time. If a write takes longer than this, the thread that writes
/// counts as blocked.
const GATHER: Duration = Duration::from_millis(20);
/// Pause between attempts to write to an output that failed.
const RETRY: Duration = Duration::from_millis(500);
/// Pause between attempts to write to a full pipe.
const PAUSE: Duration = Duration::from_millis(5);
/// After this many pauses, the write counts as failed.
const MAX_PAUSES: u32 = 100;
