//! Writes lines to a file or to stdout from a thread of its own, many at a time, so that no
//! request's thread ever waits for a disk.
//!
//! What is handed over is written, in order, whole lines only: an error of the disk is tried
//! again from the byte where it stopped, and requests wait meanwhile.

mod file;
mod reserve;

use std::{
    fmt,
    fs::File,
    io::{self, Write},
    os::fd::AsFd as _,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::{Notify, oneshot};

use self::file::{append_on_a_new_line, append_to};
pub use self::reserve::Reserved;
use super::AuditCounts;

/// The log. What is left is written when it is dropped.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<AuditCounts>,
    /// `None` where it is no file.
    path: Option<PathBuf>,
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
    #[error("the audit log takes nothing")]
    Stalled,
    /// The line is not in the log and will not be.
    #[error("the audit log is full of lines that wait to be written")]
    Full,
}

/// A line on its way.
#[derive(Debug)]
pub struct Enqueued(oneshot::Receiver<()>);

struct Shared {
    /// Where the lines go, for people.
    output: String,
    pending: Mutex<Pending>,
    /// Signalled when the writer has something to do.
    work: Condvar,
    /// Since when the writer is busy with the lines that it took last, and how many bytes those are.
    busy: Mutex<Option<(Instant, usize)>>,
    /// Told when there may be room again for those who want to reserve some.
    freed: Notify,
}

type Sink = Box<dyn Write + Send>;

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Where the bytes go, if no longer where those before them went.
    sink: Option<Sink>,
    /// Those who wait for `bytes` to be written.
    waiting: Vec<oneshot::Sender<()>>,
    /// Bytes of lines that are to come.
    reserved: usize,
    /// Whether the last write failed.
    failing: bool,
    /// Whether the writer may let a few more lines gather first.
    unhurried: bool,
    closed: bool,
}

/// What the writer does next.
enum Work {
    /// Writes the lines, and tells those who wait for them.
    Lines(Vec<oneshot::Sender<()>>),
    /// Goes on with another output.
    Sink(Sink),
}

// === impl AuditLog ===

impl AuditLog {
    /// Opens the log, appending to what is there, on a line of its own.
    ///
    /// # Errors
    /// The file cannot be opened for writing, or no thread can be started.
    pub fn open(output: &Output) -> Result<Self, AuditError> {
        let (sink, path): (Sink, _) = match output {
            // Not `io::stdout()`, which has a buffer of its own.
            Output::Stdout => {
                let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(AuditError::Stdout)?;
                (Box::new(File::from(stdout)), None)
            }
            Output::File(path) => {
                let file = append_on_a_new_line(path).map_err(|error| AuditError::Open {
                    path: path.clone(),
                    error,
                })?;
                (Box::new(file), Some(path.clone()))
            }
        };
        Self::to_sink(sink, path)
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
        self.go_on_with(Box::new(file));
        Ok(())
    }

    fn go_on_with(&self, sink: Sink) {
        self.shared.lock().sink = Some(sink);
        self.shared.work.notify_one();
    }

    /// `path` is that of the file which `sink` is, if it is one.
    fn to_sink(sink: Sink, path: Option<PathBuf>) -> Result<Self, AuditError> {
        let shared = Arc::new(Shared {
            output: path
                .as_ref()
                .map_or("standard output".to_owned(), |path| path.display().to_string()),
            pending: Mutex::default(),
            work: Condvar::new(),
            busy: Mutex::default(),
            freed: Notify::new(),
        });
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn({
                let shared = shared.clone();
                move || shared.write_to(sink)
            })
            .map_err(AuditError::Thread)?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
            counts: Arc::default(),
            path,
        })
    }

    /// Counts into `counts`, which others may count into, too.
    #[must_use]
    pub fn counting(mut self, counts: Arc<AuditCounts>) -> Self {
        self.counts = counts;
        self
    }

    /// Where the lines go, for people: the file's path, or `standard output`.
    pub fn output(&self) -> &str {
        &self.shared.output
    }

    /// Bytes that wait to be written.
    pub fn waiting_bytes(&self) -> usize {
        let taken = self.shared.busy().map_or(0, |(_, bytes)| bytes);
        taken + self.shared.lock().bytes.len()
    }

    /// Whether lines wait and the output takes nothing.
    pub fn is_stalled(&self) -> bool {
        let busy = *self.shared.busy();
        busy.is_some_and(|(since, _)| since.elapsed() >= STALLED)
    }

    /// Logs a line and waits until the operating system has it.
    ///
    /// # Errors
    /// The output takes nothing for [`MAX_WAIT`].
    pub async fn write(&self, line: &[u8]) -> Result<(), AuditError> {
        self.enqueue(line).await?.written().await
    }

    /// Hands a line over, which is written then whatever becomes of the caller, and returns before
    /// it is.
    ///
    /// # Errors
    /// There is no room for [`MAX_WAIT`]; the line is not in the log and will not be.
    pub async fn enqueue(&self, line: &[u8]) -> Result<Enqueued, AuditError> {
        self.room().await?;
        let (written, wait) = oneshot::channel();
        {
            let mut pending = self.shared.lock();
            pending.bytes.extend_from_slice(line);
            pending.waiting.push(written);
            pending.unhurried = false;
        }
        self.counts.add(line);
        self.shared.work.notify_one();
        Ok(Enqueued(wait))
    }

    /// Logs a line without waiting until it is written, as long as not too many are.
    ///
    /// # Errors
    /// As [`AuditLog::write`], where the wait for room took as long.
    pub async fn append(&self, line: &[u8]) -> Result<(), AuditError> {
        self.room().await?;
        self.append_now(line);
        Ok(())
    }

    /// As [`AuditLog::append`], whether there is room or not: for what cannot wait.
    pub fn append_now(&self, line: &[u8]) {
        self.counts.add(line);
        let mut pending = self.shared.lock();
        let first = pending.bytes.is_empty();
        pending.bytes.extend_from_slice(line);
        if first {
            pending.unhurried = true;
            drop(pending);
            self.shared.work.notify_one();
        }
    }

    /// Writes what is left and waits for it, for the end of the program. It blocks; a line that
    /// comes after it is lost.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has said so on stderr.
            let _ = writer.join();
        }
    }

    /// Waits until there is room for a line.
    async fn room(&self) -> Result<(), AuditError> {
        loop {
            let wait = {
                let mut pending = self.shared.lock();
                if pending.bytes.len() < MAX_PENDING {
                    return Ok(());
                }
                let (written, wait) = oneshot::channel();
                pending.waiting.push(written);
                wait
            };
            finished(wait).await.map_err(|_| AuditError::Full)?;
        }
    }
}

impl Drop for AuditLog {
    /// Lets the writer end when all is written. It is not waited for: the last one to hold the
    /// log may be a request on an asynchronous thread.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
    }
}

// === impl Enqueued ===

impl Enqueued {
    /// Waits until the operating system has the line.
    ///
    /// # Errors
    /// The output takes nothing for [`MAX_WAIT`].
    pub async fn written(self) -> Result<(), AuditError> {
        finished(self.0).await
    }
}

// === impl Shared ===

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        // The bytes are whole lines at every point where a panic could occur.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) -> MutexGuard<'_, Option<(Instant, usize)>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, mut sink: Sink) {
        let mut bytes = Vec::new();
        while let Some(work) = self.next(&mut bytes) {
            let waiting = match work {
                Work::Lines(waiting) => waiting,
                Work::Sink(other) => {
                    sink = other;
                    continue;
                }
            };
            *self.busy() = Some((Instant::now(), bytes.len()));
            let written = self.write_all(&mut sink, &bytes);
            *self.busy() = None;
            self.freed.notify_waiters();
            bytes.clear();
            if !written {
                // Those who wait see that nobody answers them any more.
                continue;
            }
            for done in waiting {
                // Whoever went away needs no word.
                let _ = done.send(());
            }
        }
    }

    /// What to do next, with the lines to be written in `bytes`. `None` when there is nothing and will be nothing.
    fn next(&self, bytes: &mut Vec<u8>) -> Option<Work> {
        let mut pending = self.lock();
        loop {
            if let Some(sink) = pending.sink.take() {
                return Some(Work::Sink(sink));
            }
            if pending.bytes.is_empty() {
                if pending.closed {
                    return None;
                }
                pending = self.work.wait(pending).unwrap_or_else(PoisonError::into_inner);
            } else if pending.unhurried && !pending.closed {
                let (woken, wait) = self
                    .work
                    .wait_timeout(pending, GATHER)
                    .unwrap_or_else(PoisonError::into_inner);
                pending = woken;
                if wait.timed_out() {
                    pending.unhurried = false;
                }
            } else {
                std::mem::swap(&mut pending.bytes, bytes);
                return Some(Work::Lines(std::mem::take(&mut pending.waiting)));
            }
        }
    }

    /// Writes all of `bytes`, however often it takes, and goes on in another output where there is one by then. Only when
    /// the log is closing does it give up on an output that takes nothing: `false` then.
    fn write_all(&self, sink: &mut Sink, bytes: &[u8]) -> bool {
        let mut done = 0;
        let mut stalled = false;
        let mut pauses = 0;
        while done < bytes.len() {
            let error = match sink.write(&bytes[done..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(written) => {
                    done += written;
                    pauses = 0;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A pipe whose reader is a little behind.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && pauses < MAX_PAUSES => {
                    pauses += 1;
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => error,
            };
            if !stalled {
                let output = &*self.output;
                tracing::error!(%error, output, "the audit log cannot be written; requests wait until it can");
                stalled = true;
            }
            let (other, closed) = {
                let mut pending = self.lock();
                pending.failing = true;
                (pending.sink.take(), pending.closed)
            };
            if let Some(other) = other {
                *sink = other;
                // The line that the first has in part is whole in the other.
                done = memchr::memrchr(b'\n', &bytes[..done]).map_or(0, |end| end + 1);
                continue;
            }
            if closed {
                tracing::error!(
                    output = &*self.output,
                    bytes = bytes.len() - done,
                    "the end of the audit log is lost"
                );
                return false;
            }
            std::thread::sleep(RETRY);
        }
        if stalled {
            self.lock().failing = false;
            tracing::warn!(output = &*self.output, "the audit log can be written again");
        }
        true
    }
}

async fn finished(wait: oneshot::Receiver<()>) -> Result<(), AuditError> {
    match tokio::time::timeout(MAX_WAIT, wait).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(AuditError::Stalled),
    }
}

/// Bytes that may wait to be written before requests wait for room.
const MAX_PENDING: usize = 4 * 1024 * 1024;
/// How long a request waits for its line to be written.
pub const MAX_WAIT: Duration = Duration::from_secs(10);
/// How long a line that nobody waits for may stand back for others to join it.
const GATHER: Duration = Duration::from_millis(20);
/// An output that is busy with a few megabytes for so long takes nothing.
const STALLED: Duration = Duration::from_secs(1);
/// Between two tries to write to an output that took nothing.
const RETRY: Duration = Duration::from_millis(500);
/// Between two tries to write to a pipe that is full, and how often before that is a trouble.
const PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSES: u32 = 100;

#[cfg(test)]
mod tests;
