//! The state shared by the threads that submit lines and those that write them.

use std::{
    fmt,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{Arc, OnceLock},
    time::Instant,
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Notify,
};

use super::{
    AuditError,
    pace::{Coalescing, Pace},
};

pub(super) struct Sink {
    /// The file's path, or `standard output`.
    pub(super) name: Arc<str>,
    pub(super) writer: Box<dyn Write + Send>,
    /// Whether the output is a regular file. Only then do requests write to it.
    pub(super) is_file: bool,
}

struct RemovedFile;

pub(super) struct SharedLog {
    /// See [`Sink::name`].
    pub(super) output: Arc<str>,
    pub(super) state: Mutex<State>,
    /// The file that was last opened at the log's path. The log's own thread closes it, because that can block.
    pub(super) opened: Mutex<Option<File>>,
    /// Wakes the log's own thread.
    work: Condvar,
    /// Notified when a batch was written or lost: `done[0]` for batches with even numbers, `done[1]` for the others.
    /// At any time, requests wait for at most two batches: the one that is being written, and the next.
    pub(super) done: [Notify; 2],
    /// Notified when there may be room for more lines.
    pub(super) freed: Notify,
    /// Set when a request first waits for a line.
    pub(super) request_runtime: OnceLock<RequestRuntime>,
}

/// No thread holds the lock of this state while it writes or serialises a record.
#[derive(Default)]
pub(super) struct State {
    /// Lines that are in no batch yet.
    pub(super) lines: Vec<u8>,
    /// Number of `lines` that requests wait for.
    pub(super) awaited: usize,
    /// The number of the batch that `lines` will become. The first batch has the number 1.
    pub(super) batch: u64,
    /// The number of the last batch that was written or lost.
    pub(super) finished: u64,
    /// The number of the first batch that was lost.
    pub(super) lost: Option<u64>,
    /// `None` while a thread writes to the output, and after the log has ended.
    pub(super) sink: Option<Sink>,
    /// The new output, for example after log rotation. Replaces `sink` at once, or when the running write ends
    /// or fails.
    pub(super) other: Option<Sink>,
    /// A batch that is not completely written, because a write failed. The log's own thread continues it.
    pub(super) rest: Option<Batch>,
    /// When the current write began, and how many bytes it has.
    pub(super) busy: Option<(Instant, usize)>,
    pub(super) spare: Vec<u8>,
    pub(super) pace: Pace,
    pub(super) crowd: Coalescing,
    /// Whether a request has promised to write `lines`.
    pub(super) gathering: bool,
    pub(super) needs_log_thread: bool,
    /// Whether the log's own thread periodically checks for lines that no request writes.
    pub(super) is_polling: bool,
    pub(super) asleep: bool,
    /// Number of bytes that are reserved for future lines.
    pub(super) reserved: usize,
    pub(super) failing: bool,
    pub(super) closed: bool,
    pub(super) ended: bool,
}

/// Lines that are written together, with one write(2) if possible.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    /// Number of written bytes.
    pub(super) done: usize,
}

#[derive(Debug)]
pub(super) struct RequestRuntime {
    pub(super) handle: Handle,
    /// Whether the runtime has another thread, which can work while a write blocks the current one. Also true for
    /// tokio's current-thread runtime, which only tests use here.
    pub(super) has_others: bool,
}

// === impl Sink ===

impl Sink {
    /// `path` is `None` for standard output.
    pub(super) fn new(file: File, path: Option<&Path>) -> Self {
        Self {
            name: path.map_or(STANDARD_OUTPUT.into(), |path| path.display().to_string().into()),
            is_file: file.metadata().is_ok_and(|metadata| metadata.is_file()),
            writer: Box::new(file),
        }
    }

    /// Creates an output that accepts nothing, for a log whose file was removed.
    pub(super) fn removed(path: &Path) -> Self {
        Self {
            name: path.display().to_string().into(),
            is_file: false,
            writer: Box::new(RemovedFile),
        }
    }
}

// === impl RemovedFile ===

impl Write for RemovedFile {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("the file was removed, and its path cannot be opened"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// === impl SharedLog ===

impl fmt::Debug for SharedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLog").finish_non_exhaustive()
    }
}

impl SharedLog {
    pub(super) fn new(sink: Sink) -> Self {
        Self {
            output: sink.name.clone(),
            state: Mutex::new(State {
                sink: Some(sink),
                batch: 1,
                ..State::default()
            }),
            opened: Mutex::default(),
            work: Condvar::new(),
            done: Default::default(),
            freed: Notify::new(),
            request_runtime: OnceLock::new(),
        }
    }

    /// Releases the lock and wakes the log's own thread if it sleeps.
    pub(super) fn wake(&self, mut state: MutexGuard<'_, State>) {
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.work.notify_one();
        }
    }

    pub(super) fn push(&self, mut state: MutexGuard<'_, State>, line: &[u8], awaited: bool) -> u64 {
        if !state.ended {
            state.lines.extend_from_slice(line);
        }
        state.awaited += usize::from(awaited);
        let batch = state.batch;
        let crowded = state.lines.len() >= MAX_GATHER && !state.needs_log_thread;
        state.needs_log_thread |= crowded;
        if crowded || !state.is_polling {
            state.is_polling = true;
            self.wake(state);
        }
        batch
    }

    pub(super) fn sleep(&self, state: &mut MutexGuard<'_, State>, until: Option<Instant>) {
        state.asleep = true;
        match until {
            None => self.work.wait(state),
            Some(until) => _ = self.work.wait_until(state, until),
        }
        state.asleep = false;
    }

    /// If `batch` is complete or `lost`, notifies the requests that wait for it. Otherwise, the log's own thread writes
    /// the rest.
    pub(super) fn give_back(&self, sink: Sink, mut batch: Batch, lost: bool) {
        let mut state = self.state.lock();
        state.sink = Some(sink);
        let began = state.busy.take().map(|(since, _)| since);
        let number = batch.number;
        let finished = lost || batch.left() == 0;
        if finished {
            if let Some(began) = began {
                state.pace.wrote(began, Instant::now());
            }
            state.finished = number;
            if lost {
                state.lost.get_or_insert(number);
            }
            if batch.bytes.capacity() <= MAX_SPARE {
                batch.bytes.clear();
                state.spare = batch.bytes;
            }
        } else {
            state.rest = Some(batch);
        }
        if state.rest.is_some() || state.other.is_some() || state.closed {
            self.wake(state);
        } else {
            drop(state);
        }
        if lost {
            // All later lines are lost too, so notify the requests that wait for the next batch as well.
            self.done[parity(number + 1)].notify_waiters();
        }
        if finished {
            self.done[parity(number)].notify_waiters();
            self.freed.notify_waiters();
        }
    }
}

// === impl State ===

impl State {
    /// Returns `Ok` if the batch was written, `Err` if it was lost, and `None` if it still has to be written.
    pub(super) fn outcome(&self, batch: u64) -> Option<Result<(), AuditError>> {
        if self.lost.is_some_and(|lost| lost <= batch) || (self.ended && batch > self.finished) {
            return Some(Err(AuditError::Stalled));
        }
        (batch <= self.finished).then_some(Ok(()))
    }

    /// Returns whether a request may write now.
    pub(super) fn is_free(&self) -> bool {
        let usual = self.other.is_none() && self.rest.is_none() && !self.closed;
        usual && self.pace.is_fast() && self.sink.as_ref().is_some_and(|sink| sink.is_file)
    }

    /// Returns `None` if there is nothing to write, or another thread is writing.
    pub(super) fn take(&mut self) -> Option<(Sink, Batch)> {
        if self.rest.is_none() && self.lines.is_empty() {
            return None;
        }
        let sink = self.sink.take()?;
        let batch = self.rest.take().unwrap_or_else(|| self.next_batch());
        self.busy = Some((Instant::now(), batch.left()));
        Some((sink, batch))
    }

    /// Replaces the output with `other`, if there is one and no thread is writing. Returns the old output.
    pub(super) fn change_sink(&mut self) -> Option<Sink> {
        let sink = self.sink.as_mut()?;
        let old = std::mem::replace(sink, self.other.take()?);
        if let Some(rest) = &mut self.rest {
            rest.restart_cut_line();
        }
        Some(old)
    }

    fn next_batch(&mut self) -> Batch {
        let spare = std::mem::take(&mut self.spare);
        let number = self.batch;
        self.batch += 1;
        self.crowd.wrote(std::mem::take(&mut self.awaited));
        self.gathering = false;
        self.needs_log_thread = false;
        Batch {
            number,
            bytes: std::mem::replace(&mut self.lines, spare),
            done: 0,
        }
    }
}

// === impl Batch ===

impl Batch {
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.done
    }

    /// Goes back to the start of a line that was cut, so that another output gets the whole line.
    pub(super) fn restart_cut_line(&mut self) {
        self.done = memchr::memrchr(b'\n', &self.bytes[..self.done]).map_or(0, |end| end + 1);
    }
}

// === impl RequestRuntime ===

impl RequestRuntime {
    pub(super) fn current() -> Self {
        let handle = Handle::current();
        let alone = handle.runtime_flavor() == RuntimeFlavor::MultiThread && handle.metrics().num_workers() == 1;
        Self {
            handle,
            has_others: !alone,
        }
    }

    /// Wakes an idle thread of the runtime, so that it takes over the sockets, timers and tasks of a blocked thread.
    pub(super) fn rouse(&self) {
        self.handle.spawn(async {});
    }
}

/// Returns the index in [`SharedLog::done`] for a batch.
pub(super) fn parity(batch: u64) -> usize {
    usize::from(!batch.is_multiple_of(2))
}

const STANDARD_OUTPUT: &str = "standard output";
/// If this many bytes wait, the log's own thread writes them immediately.
const MAX_GATHER: usize = 256 * 1024;
/// Maximum size of a buffer to reuse, in bytes.
const MAX_SPARE: usize = 512 * 1024;
