//! The log's own thread. It writes the lines that no request writes in time. If the output is slow, fails or is not a
//! regular file, it writes all lines.

use std::{
    io,
    time::{Duration, Instant},
};

use parking_lot::MutexGuard;

use super::state::{Batch, SharedLog, Sink, State};

struct NextCheck {
    at: Instant,
    /// [`State::batch`] at the previous check. If it is still the same, no request has written the lines.
    batch: u64,
}

// === impl SharedLog ===

impl SharedLog {
    /// Runs until the log is closed and everything is written or lost.
    pub(super) fn run(&self) {
        let mut look = None;
        let mut state = self.state.lock();
        loop {
            if let Some(old) = state.change_sink() {
                drop(state);
                // Closing the old file can take long, so do it without the lock.
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
            // While a request writes, `sink` is `None`. Do not end yet: if the write fails, this thread continues it.
            if state.closed && state.sink.take().is_some() {
                state.ended = true;
                drop(state);
                self.opened.lock().take();
                return;
            }
            self.wait(&mut state, &mut look);
        }
    }

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

    /// Tries as often as necessary. Gives up only if the log is closing and the output fails.
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
                // The pipe is full, so try again a little later.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && pauses < MAX_PAUSES => {
                    pauses += 1;
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => error,
            };
            let mut state = self.state.lock();
            state.failing = true;
            let (other, closed) = (state.other.take(), state.closed);
            if closed && other.is_none() {
                // This batch and all later lines are lost.
                state.ended = true;
                let bytes = batch.left() + std::mem::take(&mut state.lines).len();
                drop(state);
                tracing::error!(
                    %error,
                    output = &*sink.name,
                    bytes,
                    "the last lines of the audit log are lost: they could not be written before the log was closed"
                );
                lost = true;
                break;
            }
            drop(state);
            if !stalled {
                tracing::error!(
                    %error,
                    output = &*sink.name,
                    "the audit log cannot be written, so requests wait up to 10 s and then get a 503. robotgate keeps \
                     trying. With another audit.path, it writes the waiting lines there. A restart would lose them"
                );
                stalled = true;
            }
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

/// How often to check for unwritten lines and for a blocked write. If no write is running, a line is written after two
/// checks at the latest.
const GATHER: Duration = Duration::from_millis(20);
/// Pause between attempts to write to an output that failed.
const RETRY: Duration = Duration::from_millis(500);
/// Pause between attempts to write to a full pipe.
const PAUSE: Duration = Duration::from_millis(5);
/// After this many pauses, the write counts as failed.
const MAX_PAUSES: u32 = 100;
