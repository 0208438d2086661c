//! Writes the lines of the audit log to a file or to standard output.
//!
//! # Guarantees
//!
//! - When [`Enqueued::wait_until_written`] returns `Ok`, write(2) has returned for the whole line. The line survives a
//!   `kill -9`, but it is not synced: a machine that loses power can lose the last seconds.
//! - The log has the lines in the order in which they were submitted, and never mixes two of them.
//! - While the log is open, it drops no submitted line. After a disk error, writing continues at the byte where it
//!   stopped. A request that has waited for its line for [`MAX_WAIT`] gets an [`AuditError`], and the line is written
//!   later. If lines cannot be written when the log is closed or dropped, they are lost, and the loss is logged.
//! - A line that no request waits for is written within 40 ms if the output works.
//!
//! # Who writes
//!
//! Lines that arrive at about the same time are a batch, which is usually written by one write(2). Only one thread
//! writes at a time, and it holds no lock while it writes.
//!
//! - If the output is a regular file and fast, a request that waits for its line writes the batch on its own thread
//!   (`inline`). No other thread has to be woken.
//! - If the output is anything else, is slow or fails, the log's own thread writes (`thread`, `pace`). It also writes
//!   lines that no request has written in time.
//!
//! # When a disk hangs
//!
//! The request that is writing blocks its thread until the disk responds. The log's own thread notices this within 40
//! ms, and makes another thread of the runtime take over the sockets, timers and tasks.
//!
//! After the hang, the log's own thread writes for ten times as long as the hang took, at most 5 minutes, so that other
//! threads are seldom blocked. In a runtime with one thread, the log's own thread always writes.

mod file;
mod inline;
mod pace;
mod reserve;
mod state;
mod thread;

use std::{
    borrow::Cow,
    fs::{File, Metadata},
    io,
    os::{fd::AsFd as _, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

pub use self::reserve::Reserved;
use self::{
    file::{append_on_a_new_line, append_to, begin_line},
    state::{SharedLog, Sink, State, parity},
};
use super::{LogFormat, text::TextLines};

/// The log. After it is dropped, its own thread writes the remaining lines and ends.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<SharedLog>,
    writer: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<AuditCounts>,
    /// `None` for standard output.
    path: Option<PathBuf>,
    /// `None` if the output gets JSON.
    text: Option<TextLines>,
}

/// The output of the log, as in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Stdout,
    File(PathBuf),
}

/// Why the log could not be opened, or why a line could not be logged.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("audit.path: cannot open the audit log {}: {error}; {}", path.display(), match error.kind() {
        io::ErrorKind::StorageFull => "make room on the disk",
        io::ErrorKind::NotFound => "create its folder, or correct the path",
        io::ErrorKind::ReadOnlyFilesystem => "choose a writable folder, or add this one to systemd's ReadWritePaths",
        _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => "first start the program that reads this pipe",
        _ => "check the path and its permissions",
    })]
    Open { path: PathBuf, error: io::Error },
    #[error("cannot open standard output for the audit log: {0}")]
    Stdout(io::Error),
    #[error("cannot start the audit log's thread: {0}")]
    Thread(io::Error),
    /// The line was not written in time. The log writes it later if the output accepts data again before the log ends.
    #[error("robotgate could not write the request to the audit log in time")]
    Stalled,
    /// The line is not in the log and never will be.
    #[error("the audit log had no room for the request for 10 s, because its output is slow or fails")]
    Full,
}

/// What happened to the file of the log since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Displaced {
    /// It is still at the log's path. Or the log is written to standard output.
    No,
    /// It has another name, as after a rotation.
    Renamed,
    /// It has no name any more, so nobody can read the lines that are written to it.
    Removed,
}

/// Number and total bytes of the submitted lines. A reload can pass these counts to the new log.
#[derive(Debug, Default)]
pub struct AuditCounts {
    lines: AtomicU64,
    bytes: AtomicU64,
}

/// A submitted line. It is written even if no request waits for it.
#[derive(Debug)]
#[must_use = "the line might not be written yet"]
pub struct Enqueued<'a> {
    shared: &'a SharedLog,
    batch: u64,
}

// === impl Output ===

impl Output {
    /// Returns the path if the output is a file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }
}

// === impl AuditLog ===

impl AuditLog {
    /// Opens the log. Appends to an existing file, starting on a new line.
    ///
    /// # Errors
    /// Fails if the output cannot be opened for writing, or no thread can be started.
    pub fn open(output: &Output) -> Result<Self, AuditError> {
        let (file, path) = open(output)?;
        let opened = file.try_clone().ok();
        let log = Self::to_sink(Sink::new(file, path.as_deref()), path)?;
        *log.shared.opened.lock() = opened;
        Ok(log)
    }

    /// Checks whether [`open`](Self::open) could open the file of the log. Creates no file.
    pub fn check(output: &Output) -> Result<(), AuditError> {
        let Some(path) = output.file() else { return Ok(()) };
        file::check(path).map_err(|error| AuditError::Open {
            path: path.to_owned(),
            error,
        })
    }

    /// Opens the log's path again, after log rotation has renamed the old file. Later lines go to the new file, and
    /// none is lost or split.
    ///
    /// # Errors
    /// Fails if the file cannot be opened. The log then continues in the old file, unless that was removed: then lines
    /// wait until a later call succeeds.
    pub fn reopen(&self) -> Result<(), AuditError> {
        let Some(path) = &self.path else { return Ok(()) };
        // Call this only while `opened` is not locked, because `displaced` locks it.
        let failed = |error| {
            // Nobody could read lines in a removed file. Let requests wait until the path can be opened.
            if self.displaced() == Displaced::Removed {
                self.switch_sink(Sink::removed(path));
            }
            let path = path.clone();
            AuditError::Open { path, error }
        };
        let mut file = append_to(path).map_err(failed)?;
        // If the path still has the same file, keep it. A write that stopped inside a line continues there, so
        // `begin_line` must not add a line end.
        let opened = self.shared.opened.lock();
        if opened.as_ref().is_some_and(|opened| is_same_file(opened, &file)) {
            return Ok(());
        }
        drop(opened);
        begin_line(&mut file, path).map_err(failed)?;
        *self.shared.opened.lock() = file.try_clone().ok();
        self.switch_sink(Sink::new(file, Some(path)));
        Ok(())
    }

    /// Returns whether somebody has renamed, removed or replaced the file of the log. Blocks.
    pub fn displaced(&self) -> Displaced {
        let opened = self.shared.opened.lock();
        let (Some(path), Some(Ok(opened))) = (&self.path, opened.as_ref().map(File::metadata)) else {
            return Displaced::No;
        };
        let is_same = match path.metadata() {
            Ok(now) => file_id(&now) == file_id(&opened),
            // robotgate has no permission to look at the path. Assume that it still names the open file.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        };
        match opened.nlink() {
            _ if is_same => Displaced::No,
            0 => Displaced::Removed,
            _ => Displaced::Renamed,
        }
    }

    /// Switches to `output` if this log's own output accepts nothing. The lines that wait and all later lines then go
    /// to `output`. Lines in the text format keep waiting for this log's own output, because a file gets only JSON.
    ///
    /// # Errors
    /// Fails if `output` cannot be opened. The lines then keep waiting for this log's own output.
    pub fn divert(&self, output: &Output) -> Result<(), AuditError> {
        let is_stuck = self.is_stalled() || self.shared.state.lock().failing;
        if is_stuck && self.text.is_none() {
            let (file, path) = open(output)?;
            self.switch_sink(Sink::new(file, path.as_deref()));
        }
        Ok(())
    }

    fn switch_sink(&self, sink: Sink) {
        let mut state = self.shared.state.lock();
        let replaced = state.other.replace(sink);
        self.shared.wake(state);
        // `replaced` is an output that was never used. Close it only now, after `wake` has released the lock: closing
        // can take long.
        drop(replaced);
    }

    fn to_sink(sink: Sink, path: Option<PathBuf>) -> Result<Self, AuditError> {
        let shared = Arc::new(SharedLog::new(sink));
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

    /// Makes the log count its lines in `counts`.
    #[must_use]
    pub fn counting(mut self, counts: Arc<AuditCounts>) -> Self {
        self.counts = counts;
        self
    }

    /// Writes readable text if `format` asks for it and the output is standard output. A file always gets JSON.
    #[must_use]
    pub fn in_format(mut self, format: LogFormat) -> Self {
        self.text = (self.path.is_none() && format.is_text()).then(TextLines::new);
        self
    }

    /// Returns the output in readable form: the file's path, or `standard output`.
    pub fn output(&self) -> &str {
        &self.shared.output
    }

    /// Returns the number of bytes that wait to be written.
    pub fn waiting_bytes(&self) -> usize {
        let state = self.shared.state.lock();
        let taken = state.busy.map(|(_, bytes)| bytes);
        let rest = state.rest.as_ref().map(|rest| rest.left());
        taken.or(rest).unwrap_or(0) + state.lines.len()
    }

    /// Returns whether a write has been running for a second or longer.
    pub fn is_stalled(&self) -> bool {
        let busy = self.shared.state.lock().busy;
        busy.is_some_and(|(since, _)| since.elapsed() >= STALLED)
    }

    #[cfg(test)]
    pub async fn write(&self, line: &[u8]) -> Result<(), AuditError> {
        self.enqueue(line).await?.wait_until_written().await
    }

    /// Submits a line that the caller can wait for. It is written even if the returned `Enqueued` is dropped.
    ///
    /// # Errors
    /// Fails if there is no room for the line within [`MAX_WAIT`]. The line then never gets into the log.
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

    /// Submits a line that no request waits for. Returns as soon as there is room for it.
    ///
    /// # Errors
    /// Fails if there is no room for the line within [`MAX_WAIT`].
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

    /// Submits a line like [`AuditLog::append`], but without waiting for room.
    pub fn append_now(&self, line: &[u8]) {
        let line = &*self.formatted(line);
        if line.is_empty() {
            return;
        }
        self.shared.push(self.shared.state.lock(), line, false);
        self.counts.add(line);
    }

    /// Blocks until the remaining lines are written, or lost because the output fails. Lines submitted later are lost.
    pub fn close(&self) {
        self.end();
        let writer = self.writer.lock().take();
        if let Some(writer) = writer {
            // A panic of the log's thread is already on stderr.
            let _ = writer.join();
        }
    }

    /// Returns an empty line if the text format does not show this record.
    fn formatted<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        self.text.as_ref().map_or(Cow::Borrowed(line), |text| text.of(line))
    }

    fn end(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        self.shared.wake(state);
    }

    async fn room(&self) -> Result<MutexGuard<'_, State>, AuditError> {
        let room_now = || Some(self.shared.state.lock()).filter(|state| state.lines.len() < MAX_PENDING);
        if let Some(state) = room_now() {
            return Ok(state);
        }
        let room = async {
            loop {
                // `notified()` comes before the check, so that no notification is missed.
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
    /// Does not wait for the log's thread, because the log's last owner can be a request, which must not block.
    fn drop(&mut self) {
        self.end();
    }
}

// === impl AuditCounts ===

impl AuditCounts {
    fn add(&self, line: &[u8]) {
        self.lines.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(line.len() as u64, Ordering::Relaxed);
    }

    /// Returns the numbers of submitted lines and bytes.
    pub fn totals(&self) -> (u64, u64) {
        (self.lines.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

// === impl Enqueued ===

impl Enqueued<'_> {
    /// Waits until the operating system has received the line.
    ///
    /// # Errors
    /// Fails if the line is not written within [`MAX_WAIT`], or if it is lost because the log was closed.
    pub async fn wait_until_written(self) -> Result<(), AuditError> {
        if let Some(claim_write) = self.shared.claim_write(self.batch) {
            if claim_write.gathers {
                tokio::task::yield_now().await;
            }
            drop(claim_write);
        }
        if let Some(outcome) = self.shared.state.lock().outcome(self.batch) {
            return outcome;
        }
        let outcome = async {
            loop {
                let done = self.shared.done[parity(self.batch)].notified();
                if let Some(outcome) = self.shared.state.lock().outcome(self.batch) {
                    return outcome;
                }
                done.await;
            }
        };
        let waited = tokio::time::timeout(MAX_WAIT, outcome).await;
        waited.unwrap_or(Err(AuditError::Stalled))
    }
}

fn is_same_file(one: &File, other: &File) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => one.is_file() && file_id(&one) == file_id(&other),
        _ => false,
    }
}

/// Identifies a file even after it was renamed.
fn file_id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn open(output: &Output) -> Result<(File, Option<PathBuf>), AuditError> {
    match output {
        // `io::stdout()` would buffer the lines, so write to a copy of the file descriptor.
        Output::Stdout => {
            let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(AuditError::Stdout)?;
            Ok((File::from(stdout), None))
        }
        Output::File(path) => {
            let file = append_on_a_new_line(path).map_err(|error| AuditError::Open {
                path: path.clone(),
                error,
            })?;
            Ok((file, Some(path.clone())))
        }
    }
}

/// If the lines that are in no batch yet have this many bytes, requests wait for room.
const MAX_PENDING: usize = 4 * 1024 * 1024;
/// Maximum time that a request waits for room for its line, and then for the line to be written.
pub const MAX_WAIT: Duration = Duration::from_secs(10);
/// If a write takes this long, the output counts as stalled.
const STALLED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
