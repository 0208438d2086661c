//! Writes lines to a file or to standard output.
//!
//! # What is promised
//!
//! - A line is with the operating system when [`AuditLog::write`] or [`Enqueued::wait_until_written`] returns `Ok`: write(2) has
//!   returned for its last byte. No end of this process takes it back, `kill -9` included. It is not synced to the disk:
//!   a machine that loses its power may lose the last seconds.
//! - Lines are in the log whole, and in the order in which they were handed over.
//! - Nothing that was handed over is dropped. After an error of the disk, writing goes on at the byte where it stopped,
//!   as often as it takes. Requests wait meanwhile, [`MAX_WAIT`] at most; then they get an [`AuditError`], and their
//!   lines are written when that is possible again. Only what cannot be written when the program ends is lost, and an
//!   error says so.
//! - A line that nobody waits for is written with the next batch, 40 ms later at most.
//!
//! # Who writes
//!
//! Lines that come at about the same time are written together, as a batch, by one write(2). One writes at a time, and
//! holds no lock while it does.
//!
//! - Where the output is a regular file and fast, the first request that waits for a line of the batch writes it, on the
//!   thread that serves that request (`inline`). Where many requests run, it first lets those that are ready add their
//!   lines. No other thread is woken for it.
//! - Where the output is something else (a pipe, a socket, a terminal), is slow or fails, the log's own thread writes
//!   (`thread`). It gives a file back once that is fast again (`pace`). It also writes what no request waits for: while
//!   lines come, it looks every 20 ms whether some were left.
//!
//! # When a disk hangs
//!
//! The request that writes at that moment holds up its thread until the disk goes on. It may hold up one more request, whose
//! line is written: the last one that this thread woke, which tokio lets no other thread take. All others wait for their
//! lines without holding up anything: the log's own thread sees the hang within 40 ms and has another thread of the runtime
//! take over the sockets, timers and tasks of the one that is held up. After the hang, the log's own thread writes for ten
//! times as long as the hang took, so that a disk that hangs again and again holds up threads for a tenth of the time at
//! most. A runtime with one thread has no other that could take over, and so the log's own thread always writes there.

mod file;
mod inline;
mod pace;
mod reserve;
mod state;
mod thread;

use std::{
    borrow::Cow,
    fs::File,
    io,
    os::fd::AsFd as _,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

pub use self::reserve::Reserved;
use self::{
    file::{append_on_a_new_line, append_to},
    state::{SharedLog, Sink, State, parity},
};
use super::{AuditCounts, LogFormat, text::TextLines};

/// The log. What is left is written when it is dropped.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<SharedLog>,
    writer: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<AuditCounts>,
    /// `None` where it is no file.
    path: Option<PathBuf>,
    /// `None` where the lines are JSON.
    text: Option<TextLines>,
}

/// Where log lines go: `stdout` or `path` in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// A file, appended to.
    File(PathBuf),
}

/// Why a line could not be logged.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("audit.path: cannot open the audit log {}: {error}; check the path and its permissions", path.display())]
    Open { path: PathBuf, error: io::Error },
    #[error("cannot write the audit log to stdout: {0}")]
    Stdout(io::Error),
    #[error("cannot start the audit log's thread: {0}")]
    Thread(io::Error),
    /// The line waits to be written.
    #[error("the audit log cannot be written")]
    Stalled,
    /// The line is not in the log and will not be.
    #[error("too many lines wait to be written to the audit log")]
    Full,
}

/// A line on its way. It is written even where nobody waits for it.
#[derive(Debug)]
#[must_use = "the line may not be written yet"]
pub struct Enqueued<'a> {
    shared: &'a SharedLog,
    /// The number of its batch.
    batch: u64,
}

// === impl AuditLog ===

impl AuditLog {
    /// Opens the log, appending to what is there, on a line of its own.
    ///
    /// # Errors
    /// The file cannot be opened for writing, or no thread can be started.
    pub fn open(output: &Output) -> Result<Self, AuditError> {
        let (file, path) = match output {
            // Not `io::stdout()`, which has a buffer of its own.
            Output::Stdout => {
                let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(AuditError::Stdout)?;
                (File::from(stdout), None)
            }
            Output::File(path) => {
                let file = append_on_a_new_line(path).map_err(|error| AuditError::Open {
                    path: path.clone(),
                    error,
                })?;
                (file, Some(path.clone()))
            }
        };
        Self::to_sink(file.into(), path)
    }

    /// Whether the log could be opened. It makes no file.
    ///
    /// # Errors
    /// As [`AuditLog::open`].
    pub fn check(output: &Output) -> Result<(), AuditError> {
        let Output::File(path) = output else { return Ok(()) };
        file::check(path).map_err(|error| AuditError::Open {
            path: path.clone(),
            error,
        })
    }

    /// Opens the file of that name anew, after someone may have moved it away. Every line is whole in one of the two, in
    /// order, and those that are handed over from now on are in the new one. Standard output stays as it is.
    ///
    /// # Errors
    /// The file cannot be opened. Lines go on to where they went.
    pub fn reopen(&self) -> Result<(), AuditError> {
        let Some(path) = &self.path else { return Ok(()) };
        let file = append_to(path).map_err(|error| AuditError::Open {
            path: path.clone(),
            error,
        })?;
        self.go_on_with(file.into());
        Ok(())
    }

    fn go_on_with(&self, sink: Sink) {
        let mut state = self.shared.lock();
        let replaced = state.other.replace(sink);
        self.shared.wake(state);
        // Closing a file can take long.
        drop(replaced);
    }

    /// `path` is that of the file which `sink` is, if it is one.
    fn to_sink(sink: Sink, path: Option<PathBuf>) -> Result<Self, AuditError> {
        let output = path.as_ref().map(|path| path.display().to_string());
        let output = output.unwrap_or_else(|| "standard output".to_owned());
        let shared = Arc::new(SharedLog::new(sink, output));
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn({
                let shared = shared.clone();
                move || shared.run()
            })
            .map_err(AuditError::Thread)?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
            counts: Arc::default(),
            path,
            text: None,
        })
    }

    /// Counts into `counts`, which others may count into, too.
    #[must_use]
    pub fn counting(mut self, counts: Arc<AuditCounts>) -> Self {
        self.counts = counts;
        self
    }

    /// Writes text for a person if `format` asks for it and the log goes to standard output. A file always has JSON.
    #[must_use]
    pub fn in_format(mut self, format: LogFormat) -> Self {
        self.text = (self.path.is_none() && format.is_text()).then(TextLines::new);
        self
    }

    /// Where the lines go, for people: the file's path, or `standard output`.
    pub fn output(&self) -> &str {
        &self.shared.output
    }

    /// Bytes that wait to be written.
    pub fn waiting_bytes(&self) -> usize {
        let state = self.shared.lock();
        let taken = state.busy.map(|(_, bytes)| bytes);
        let rest = state.rest.as_ref().map(|rest| rest.left());
        taken.or(rest).unwrap_or(0) + state.lines.len()
    }

    /// Whether lines wait and the output takes nothing.
    pub fn is_stalled(&self) -> bool {
        let busy = self.shared.lock().busy;
        busy.is_some_and(|(since, _)| since.elapsed() >= STALLED)
    }

    /// Logs a line and waits until the operating system has it.
    ///
    /// # Errors
    /// The output takes nothing for [`MAX_WAIT`].
    pub async fn write(&self, line: &[u8]) -> Result<(), AuditError> {
        self.enqueue(line).await?.wait_until_written().await
    }

    /// Hands a line over, which is written then whatever becomes of the caller, and returns before it is.
    ///
    /// # Errors
    /// There is no room for [`MAX_WAIT`]; the line is not in the log and will not be.
    pub async fn enqueue(&self, line: &[u8]) -> Result<Enqueued<'_>, AuditError> {
        let line = &*self.formatted(line);
        let state = self.room().await?;
        let batch = self.shared.push(state, line, true);
        self.counts.add(line);
        Ok(Enqueued {
            shared: &self.shared,
            batch,
        })
    }

    /// Logs a line without waiting until it is written, as long as not too many are.
    ///
    /// # Errors
    /// As [`AuditLog::write`], where the wait for room took as long.
    pub async fn append(&self, line: &[u8]) -> Result<(), AuditError> {
        let line = &*self.formatted(line);
        if line.is_empty() {
            return Ok(());
        }
        let state = self.room().await?;
        self.shared.push(state, line, false);
        self.counts.add(line);
        Ok(())
    }

    /// As [`AuditLog::append`], whether there is room or not: for what cannot wait.
    pub fn append_now(&self, line: &[u8]) {
        let line = &*self.formatted(line);
        self.shared.push(self.shared.lock(), line, false);
        self.counts.add(line);
    }

    /// Writes what is left and waits for it, for the end of the program. It blocks; a line that
    /// comes after it is lost.
    pub fn close(&self) {
        self.end();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has said so on stderr.
            let _ = writer.join();
        }
    }

    /// The line as the output gets it; empty where it gets none.
    fn formatted<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        self.text.as_ref().map_or(Cow::Borrowed(line), |text| text.of(line))
    }

    fn end(&self) {
        let mut state = self.shared.lock();
        state.closed = true;
        self.shared.wake(state);
    }

    /// Waits until there is room for a line.
    async fn room(&self) -> Result<MutexGuard<'_, State>, AuditError> {
        let room_now = || Some(self.shared.lock()).filter(|state| state.lines.len() < MAX_PENDING);
        if let Some(state) = room_now() {
            return Ok(state);
        }
        let room = async {
            loop {
                // It is told of what happens from here on.
                let freed = self.shared.freed.notified();
                if let Some(state) = room_now() {
                    return state;
                }
                freed.await;
            }
        };
        tokio::time::timeout(MAX_WAIT, room).await.map_err(|_| AuditError::Full)
    }
}

impl Drop for AuditLog {
    /// Lets the writer end when all is written. It is not waited for: the last one to hold the
    /// log may be a request on an asynchronous thread.
    fn drop(&mut self) {
        self.end();
    }
}

// === impl Enqueued ===

impl Enqueued<'_> {
    /// Waits until the operating system has the line.
    ///
    /// # Errors
    /// The output takes nothing for [`MAX_WAIT`].
    pub async fn wait_until_written(self) -> Result<(), AuditError> {
        if let Some(lead) = self.shared.lead(self.batch) {
            if lead.gathers {
                tokio::task::yield_now().await;
            }
            drop(lead);
        }
        if let Some(outcome) = self.shared.lock().outcome(self.batch) {
            return outcome;
        }
        let outcome = async {
            loop {
                let done = self.shared.done[parity(self.batch)].notified();
                if let Some(outcome) = self.shared.lock().outcome(self.batch) {
                    return outcome;
                }
                done.await;
            }
        };
        let waited = tokio::time::timeout(MAX_WAIT, outcome).await;
        waited.unwrap_or(Err(AuditError::Stalled))
    }
}

/// Bytes that may wait to be written before requests wait for room.
const MAX_PENDING: usize = 4 * 1024 * 1024;
/// How long a request waits for its line to be written.
pub const MAX_WAIT: Duration = Duration::from_secs(10);
/// An output that is busy with a few megabytes for so long takes nothing.
const STALLED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
