//! The log's own thread. It writes everything that requests do not write themselves: to a pipe, to a slow or failing
//! output, lines that no request waits for, and the lines that are left at the end.

use std::{
    io,
    sync::MutexGuard,
    time::{Duration, Instant},
};

use super::state::{Batch, SharedLog, Sink, State};

/// The next check for lines that no request writes.
struct NextCheck {
    at: Instant,
    /// The batch that was being gathered at the previous check.
    batch: u64,
}

// === impl SharedLog ===

impl SharedLog {
    /// Runs until the log is closed and everything is written.
    pub(super) fn run(&self) {
        let mut look = None;
        let mut state = self.lock();
        loop {
            if let Some(old) = state.change_sink() {
                drop(state);
                // Closing a file can take long.
                drop(old);
                state = self.lock();
                continue;
            }
            let due = state.needs_log_thread || state.closed || state.rest.is_some();
            if let Some((sink, batch)) = due.then(|| state.take()).flatten() {
                drop(state);
                self.write_all(sink, batch);
                state = self.lock();
                continue;
            }
            // A request that is writing has taken the output, and can still leave work for this thread.
            if state.closed && state.sink.take().is_some() {
                state.ended = true;
                return;
            }
            state = self.wait(state, &mut look);
        }
    }

    /// Sleeps until there could be something to do.
    fn wait<'a>(&self, mut state: MutexGuard<'a, State>, look: &mut Option<NextCheck>) -> MutexGuard<'a, State> {
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
        state
    }

    /// Writes a whole batch, however many attempts that takes, and switches to another output if there is one. Gives
    /// up on an output that accepts nothing only when the log is closing.
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
                // A pipe is full for a moment if its reader lags.
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
            let mut state = self.lock();
            state.failing = true;
            let (other, closed) = (state.other.take(), state.closed);
            if closed && other.is_none() {
                // The lines that wait for the next write are lost as well.
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
            self.lock().failing = false;
            tracing::warn!(output = &*sink.name, "the audit log can be written again");
        }
        self.give_back(sink, batch, lost);
    }
}

/// Time between checks. A line that no request waits for is written after once to twice this time. A write that takes
/// longer is considered to block its thread.
const GATHER: Duration = Duration::from_millis(20);
/// Pause between attempts to write to an output that failed.
const RETRY: Duration = Duration::from_millis(500);
/// Pause between attempts to write to a full pipe.
const PAUSE: Duration = Duration::from_millis(5);
/// Number of these pauses after which the write has failed.
const MAX_PAUSES: u32 = 100;
