//! What those who hand lines over and those who write them share.

use std::{
    fmt,
    fs::File,
    io::Write,
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use tokio::sync::Notify;

use super::{
    AuditError,
    inline::Home,
    pace::{Crowd, Pace},
};

/// An output.
pub(super) struct Sink {
    pub(super) writer: Box<dyn Write + Send>,
    /// Whether a thread that serves requests may write to it.
    pub(super) is_file: bool,
}

pub(super) struct SharedLog {
    /// Where the lines go, for people.
    pub(super) output: String,
    state: Mutex<State>,
    /// Wakes the log's own thread.
    work: Condvar,
    /// Told when a batch is written or lost; those of batches with even numbers, and those with odd ones. Only two batches
    /// are waited for at a time: the one that is being written, and the next.
    pub(super) done: [Notify; 2],
    /// Told when there may be room again.
    pub(super) freed: Notify,
    /// Known once a request waits for a line.
    pub(super) home: OnceLock<Home>,
}

/// Nobody holds the lock of this while they write, wait, or serialise a record.
#[derive(Default)]
pub(super) struct State {
    /// Lines that are in no batch yet.
    pub(super) lines: Vec<u8>,
    /// How many of them requests wait for.
    pub(super) awaited: usize,
    /// The number of the batch that they will be. The first is 1.
    pub(super) batch: u64,
    /// The last batch that was written or lost.
    pub(super) finished: u64,
    /// The first batch that was lost.
    pub(super) lost: Option<u64>,
    /// The output; `None` while someone writes to it.
    pub(super) sink: Option<Sink>,
    /// The output to go on with.
    pub(super) other: Option<Sink>,
    /// A batch that is written in part or not at all, and that the log's own thread has to go on with.
    pub(super) rest: Option<Batch>,
    /// Since when someone writes, and how many bytes.
    pub(super) busy: Option<(Instant, usize)>,
    /// An empty buffer for the next lines.
    pub(super) spare: Vec<u8>,
    pub(super) pace: Pace,
    pub(super) crowd: Crowd,
    /// Whether a request is about to write the lines, once other requests have had the time to add theirs.
    pub(super) gathering: bool,
    /// Whether the log's own thread has to write the lines.
    pub(super) hurry: bool,
    /// Whether the log's own thread looks now and then for lines that nobody writes.
    pub(super) looking: bool,
    /// Whether the log's own thread sleeps.
    pub(super) asleep: bool,
    /// Bytes of lines that are to come.
    pub(super) reserved: usize,
    /// Whether the last write failed.
    pub(super) failing: bool,
    pub(super) closed: bool,
    /// Whether the log's own thread has ended.
    pub(super) ended: bool,
}

/// Lines that are written together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    /// How many of the bytes the output has.
    pub(super) done: usize,
}

// === impl Sink ===

impl From<File> for Sink {
    fn from(file: File) -> Self {
        Self {
            is_file: file.metadata().is_ok_and(|metadata| metadata.is_file()),
            writer: Box::new(file),
        }
    }
}

// === impl SharedLog ===

impl fmt::Debug for SharedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLog").finish_non_exhaustive()
    }
}

impl SharedLog {
    pub(super) fn new(sink: Sink, output: String) -> Self {
        Self {
            output,
            state: Mutex::new(State {
                sink: Some(sink),
                batch: 1,
                ..State::default()
            }),
            work: Condvar::new(),
            done: Default::default(),
            freed: Notify::new(),
            home: OnceLock::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // The lines are whole at every point where a panic could occur.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the lock, and wakes the log's own thread.
    pub(super) fn wake(&self, mut state: MutexGuard<'_, State>) {
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.work.notify_one();
        }
    }

    /// Adds a line, and returns the number of its batch.
    pub(super) fn push(&self, mut state: MutexGuard<'_, State>, line: &[u8], awaited: bool) -> u64 {
        if !state.ended {
            state.lines.extend_from_slice(line);
        }
        state.awaited += usize::from(awaited);
        let batch = state.batch;
        let crowded = state.lines.len() >= MAX_GATHER && !state.hurry;
        state.hurry |= crowded;
        if crowded || !state.looking {
            state.looking = true;
            self.wake(state);
        }
        batch
    }

    /// Sleeps until `until`, if that is some time, or until it is woken.
    pub(super) fn sleep<'a>(&self, mut state: MutexGuard<'a, State>, until: Option<Instant>) -> MutexGuard<'a, State> {
        state.asleep = true;
        let mut state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(left) => {
                let slept = self.work.wait_timeout(state, left);
                slept.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.asleep = false;
        state
    }

    /// Takes the output back from whoever wrote `batch` to it, and tells those who wait for it. What is not written is
    /// left to the log's own thread, or given up as lost.
    pub(super) fn give_back(&self, sink: Sink, mut batch: Batch, lost: bool) {
        let mut state = self.lock();
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
        if finished {
            self.done[parity(number)].notify_waiters();
            self.freed.notify_waiters();
        }
    }
}

// === impl State ===

impl State {
    /// What became of a batch; `None` as long as it is on its way.
    pub(super) fn outcome(&self, batch: u64) -> Option<Result<(), AuditError>> {
        if self.lost.is_some_and(|lost| lost <= batch) || (self.ended && batch > self.finished) {
            return Some(Err(AuditError::Stalled));
        }
        (batch <= self.finished).then_some(Ok(()))
    }

    /// Whether a thread that serves requests may write now.
    pub(super) fn is_free(&self) -> bool {
        let usual = self.other.is_none() && self.rest.is_none() && !self.closed;
        usual && self.pace.is_fast() && self.sink.as_ref().is_some_and(|sink| sink.is_file)
    }

    /// The output and what is to be written next, for the one that writes it. `None` where nothing is to be written or
    /// someone else writes.
    pub(super) fn take(&mut self) -> Option<(Sink, Batch)> {
        if self.rest.is_none() && self.lines.is_empty() {
            return None;
        }
        let sink = self.sink.take()?;
        let batch = self.rest.take().unwrap_or_else(|| self.next_batch());
        self.busy = Some((Instant::now(), batch.left()));
        Some((sink, batch))
    }

    /// Goes on with the other output, where there is one and nobody writes, and returns the old one.
    pub(super) fn change_sink(&mut self) -> Option<Sink> {
        let sink = self.sink.as_mut()?;
        let old = std::mem::replace(sink, self.other.take()?);
        if let Some(rest) = &mut self.rest {
            rest.move_on();
        }
        Some(old)
    }

    fn next_batch(&mut self) -> Batch {
        let spare = std::mem::take(&mut self.spare);
        let number = self.batch;
        self.batch += 1;
        self.crowd.wrote(std::mem::take(&mut self.awaited));
        self.gathering = false;
        self.hurry = false;
        Batch {
            number,
            bytes: std::mem::replace(&mut self.lines, spare),
            done: 0,
        }
    }
}

// === impl Batch ===

impl Batch {
    /// Bytes that the output does not have yet.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.done
    }

    /// Goes on in another output, where the line has to be whole that the first has in part.
    pub(super) fn move_on(&mut self) {
        self.done = memchr::memrchr(b'\n', &self.bytes[..self.done]).map_or(0, |end| end + 1);
    }
}

/// Which of the two [`SharedLog::done`] is told of a batch.
pub(super) fn parity(batch: u64) -> usize {
    usize::from(!batch.is_multiple_of(2))
}

/// Bytes of lines that nobody waits for until the log's own thread writes them at once.
const MAX_GATHER: usize = 256 * 1024;
/// The largest buffer that is kept for the next lines.
const MAX_SPARE: usize = 512 * 1024;
