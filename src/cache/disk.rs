//! The copies on disk: what is known of every origin outlives the program, and what memory has no
//! room for comes back from here.
//!
//! Writing is done by a thread of its own, behind the requests. A disk that fails costs what is
//! remembered, never a request: what cannot be read is not known, and so is fetched.

mod file;
mod open;
mod queue;
mod record;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use self::{
    file::Change,
    open::{Look, candidates, guarded, open_at},
    queue::{Queue, Queued},
};
pub use self::{
    file::{Contents, CopyFile, FileError},
    open::{NoFile, Unusable, Why},
    record::Record,
};
use tokio::sync::Semaphore;

use super::OriginState;
use crate::origin::Origin;

/// The copies on disk.
pub struct Disk {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// So that a crowd of readers does not become a crowd of threads.
    readers: Semaphore,
}

/// How the copies on disk are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskOptions {
    /// How long an origin is remembered that nobody asks for.
    pub keep: Duration,
    /// Bytes of memory for the pages of the file.
    pub cache_bytes: usize,
}

/// The copies cannot be kept on disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{0}")]
    NoFile(NoFile),
    #[error("cannot start the thread that writes the copies: {0}")]
    Thread(std::io::Error),
}

struct Shared {
    path: PathBuf,
    cache_bytes: usize,
    keep: Mutex<Duration>,
    /// `None` while it is closed because of an error.
    file: RwLock<Option<Arc<CopyFile>>>,
    /// Whether that error may have been damage, for which the file is looked through.
    suspect: AtomicBool,
    queue: Mutex<Queue>,
    /// Signalled when the writer has something to do.
    work: Condvar,
}

// === impl Disk ===

impl Disk {
    /// Opens the copies at `path`, or at a path beside it where that file cannot be used, which the
    /// log tells. It blocks, for as long as it takes to look through the file.
    ///
    /// # Errors
    /// There is no file that can be used.
    pub fn open(path: &Path, options: DiskOptions) -> Result<Self, DiskError> {
        let opened = open::open(path, options.cache_bytes).map_err(DiskError::NoFile)?;
        for Unusable { path, why } in &opened.passed_over {
            tracing::error!(
                path = %path.display(),
                "the copies on disk cannot be used: {why}. The file is left as it is; until the next start, copies \
                 are kept in {}",
                opened.path.display()
            );
        }
        let shared = Arc::new(Shared {
            path: opened.path,
            cache_bytes: options.cache_bytes,
            keep: Mutex::new(options.keep),
            file: RwLock::new(Some(Arc::new(opened.file))),
            suspect: AtomicBool::new(false),
            queue: Mutex::default(),
            work: Condvar::new(),
        });
        let writer = std::thread::Builder::new()
            .name("copies".to_owned())
            .spawn({
                let shared = shared.clone();
                move || shared.write_until_closed()
            })
            .map_err(DiskError::Thread)?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
            readers: Semaphore::new(MAX_READERS),
        })
    }

    /// The file that is used.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The files that may be used for the copies of `path`, in order.
    pub fn candidates(path: &Path) -> impl Iterator<Item = PathBuf> {
        candidates(path)
    }

    /// Changes how long an origin is remembered that nobody asks for.
    pub fn set_keep(&self, keep: Duration) {
        *self.shared.keep.lock().unwrap_or_else(PoisonError::into_inner) = keep;
    }

    /// What is known of an origin.
    ///
    /// # Errors
    /// The file cannot be read now.
    pub(super) async fn recall(&self, origin: &Origin) -> Result<Option<Arc<OriginState>>, FileError> {
        let name = origin.to_string();
        {
            let queue = self.shared.lock();
            match queue.find(&name) {
                Queued::Known(state) => return Ok(Some(state)),
                Queued::Forgotten => return Ok(None),
                // There will be no file any more.
                Queued::No if queue.closed => return Ok(None),
                Queued::No => {}
            }
        }
        if !self.shared.is_open() {
            return Err(FileError::Closed);
        }
        let _turn = self.readers.acquire().await.map_err(|_| FileError::Closed)?;
        let shared = self.shared.clone();
        let reading = tokio::task::spawn_blocking(move || shared.with_file(|file| file.read(&name)));
        let state = reading.await.map_err(|_| FileError::Closed)??;
        Ok(state.map(Arc::new))
    }

    /// Has it written that this is known. With `whole`, that is all there is; else the file may know
    /// more from before.
    pub(super) fn keep(&self, origin: &Origin, state: Arc<OriginState>, whole: bool) {
        self.change(origin, Change::Keep { state, whole });
    }

    /// Has everything removed that is known of an origin.
    pub(super) fn forget(&self, origin: &Origin) {
        self.change(origin, Change::Forget);
    }

    fn change(&self, origin: &Origin, change: Change) {
        let mut queue = self.shared.lock();
        if queue.closed {
            return;
        }
        let has_room = queue.put(origin.to_string(), change);
        drop(queue);
        self.shared.work.notify_one();
        if !has_room {
            tracing::error!(
                path = %self.path().display(),
                "too many copies wait to be written; what has no room is fetched again after a restart"
            );
        }
    }

    /// How many origins wait to be written.
    pub fn waiting(&self) -> usize {
        self.shared.lock().len()
    }

    /// Waits until all that is known now is written; not for ever, as the disk may take nothing.
    /// Whether it is.
    pub async fn flush(&self) -> bool {
        let flushed = {
            let mut queue = self.shared.lock();
            if queue.closed && !self.shared.is_open() {
                // Nobody writes any more.
                return false;
            }
            queue.flush()
        };
        self.shared.work.notify_one();
        matches!(tokio::time::timeout(MAX_FLUSH, flushed).await, Ok(Ok(())))
    }

    /// Works with the file. It blocks.
    ///
    /// # Errors
    /// The file cannot be read now, or what `work` gives.
    pub fn with_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        self.shared.with_file(work)
    }

    /// Writes what is left and closes the file, for the end of the program. It blocks.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has said so on stderr.
            let _ = writer.join();
        }
    }

    /// Opens the file at `path` for a person, while no robotgate has it open. It makes none: that would
    /// belong to the person, and the robotgate of another user could not open it.
    ///
    /// # Errors
    /// It cannot be used; locked means that some robotgate runs.
    pub fn read_only(path: &Path) -> Result<CopyFile, Why> {
        fs::metadata(path)?;
        open_at(path, READER_CACHE, Look::Here)
    }

    /// Works with such a file, which may hold what makes a reader of it panic.
    ///
    /// # Errors
    /// The file cannot be read or written, or what `work` gives.
    pub fn guarded<T>(file: &CopyFile, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        guarded(|| work(file))
    }
}

impl Drop for Disk {
    /// Lets the writer end when all is written. It is not waited for.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic inside can at worst lose what waits, and that is fetched again.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(file) = file else {
            return Err(FileError::Closed);
        };
        let done = guarded(|| work(&file));
        if let Err(error) = &done {
            tracing::debug!(%error, "the copies on disk could not be read or written");
            self.suspect.fetch_or(error.is_damage(), Ordering::Relaxed);
            self.close_file(&file);
        }
        done
    }

    /// Closes `file`, which is opened anew before it is used again, unless that has happened.
    fn close_file(&self, file: &Arc<CopyFile>) {
        let mut current = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, file)) {
            *current = None;
        }
        drop(current);
        self.work.notify_one();
    }

    fn write_until_closed(&self) {
        let mut collecting = Collecting::new();
        let mut troubles = 0;
        loop {
            let closing = self.wait_for_work(&collecting);
            let done = self.reopen().and_then(|()| {
                self.write_batch()?;
                self.collect(&mut collecting)
            });
            match done {
                Ok(()) => {
                    if std::mem::take(&mut troubles) > 0 {
                        tracing::warn!(path = %self.path.display(), "the copies can be kept on disk again");
                    }
                    if closing && !self.lock().has_work() {
                        break;
                    }
                }
                Err(error) if error.is_damage() => {
                    tracing::error!(
                        path = %self.path.display(),
                        "the copies on disk are damaged ({error}). The file is left as it is; until the next start, \
                         copies are kept in memory alone"
                    );
                    break;
                }
                Err(error) => {
                    if troubles == 0 {
                        tracing::error!(
                            path = %self.path.display(),
                            "the copies cannot be kept on disk: {error}; they wait in memory until they can, so see to the disk"
                        );
                    }
                    if closing {
                        tracing::error!(origins = self.lock().len(), "the last copies are not on disk");
                        break;
                    }
                    std::thread::sleep(RETRY.saturating_mul(1 << troubles));
                    troubles = (troubles + 1).min(MAX_TROUBLES);
                }
            }
        }
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = None;
        let mut queue = self.lock();
        queue.closed = true;
        queue.clear();
    }

    /// Waits until there is something to do, and then a moment for more. Whether it is the last.
    fn wait_for_work(&self, collecting: &Collecting) -> bool {
        let mut queue = self.lock();
        while !queue.has_work() && !queue.closed && self.is_open() {
            let rest = collecting.rest();
            if rest.is_zero() {
                break;
            }
            let waited = self.work.wait_timeout(queue, rest);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let gathering = Instant::now();
        while !queue.is_urgent() && queue.has_work() {
            let rest = GATHER.saturating_sub(gathering.elapsed());
            if rest.is_zero() {
                break;
            }
            let waited = self.work.wait_timeout(queue, rest);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.closed
    }

    fn is_open(&self) -> bool {
        self.file.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Opens the file anew where an error has closed it.
    fn reopen(&self) -> Result<(), FileError> {
        if self.is_open() {
            return Ok(());
        }
        let look = match self.suspect.swap(false, Ordering::Relaxed) {
            true => Look::Through,
            false => Look::Here,
        };
        let file = open_at(&self.path, self.cache_bytes, look).map_err(FileError::from)?;
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
        Ok(())
    }

    fn write_batch(&self) -> Result<(), FileError> {
        let batch = self.lock().take();
        let written = match batch.changes.is_empty() {
            true => Ok(()),
            false => self.with_file(|file| file.write(&batch.changes)),
        };
        if let Err(error) = written {
            self.lock().give_back(batch);
            return Err(error);
        }
        self.lock().written();
        for flushed in batch.flushing {
            // Whoever went away needs no word.
            let _ = flushed.send(());
        }
        Ok(())
    }

    /// Looks for origins that nobody asks for any more, some at a time.
    fn collect(&self, collecting: &mut Collecting) -> Result<(), FileError> {
        if !collecting.rest().is_zero() {
            return Ok(());
        }
        let keep = *self.keep.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(oldest) = SystemTime::now().checked_sub(keep) else {
            return Ok(());
        };
        let start = collecting.next.take().unwrap_or_default();
        let collected = self.with_file(|file| file.collect(oldest, &start, COLLECTED_AT_ONCE))?;
        if collected.forgotten > 0 {
            tracing::info!(
                origins = collected.forgotten,
                "origins that nobody asked for in a long time were forgotten"
            );
        }
        let pause = if collected.next.is_some() {
            COLLECT_ON
        } else {
            COLLECT_EVERY
        };
        collecting.next = collected.next;
        collecting.at = Instant::now() + pause;
        Ok(())
    }
}

/// How far the look for old origins is.
struct Collecting {
    /// When it goes on.
    at: Instant,
    /// Where it goes on.
    next: Option<String>,
}

// === impl Collecting ===

impl Collecting {
    fn new() -> Self {
        Self {
            at: Instant::now() + COLLECT_ON,
            next: None,
        }
    }

    fn rest(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

// === impl NoFile ===

impl fmt::Display for NoFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Unusable { path, why }) = self.0.first() else {
            return f.write_str("no file was tried");
        };
        write!(
            f,
            "the copies cannot be kept in {} ({why}), nor in a file beside it",
            path.display()
        )
    }
}

/// How long changes gather before they are written together.
const GATHER: Duration = Duration::from_millis(20);
/// Between two tries to write to a disk that took nothing.
const RETRY: Duration = Duration::from_secs(1);
/// Doublings of that.
const MAX_TROUBLES: u32 = 4;
/// How long someone waits for what is known to be written.
const MAX_FLUSH: Duration = Duration::from_secs(10);
/// Between two looks for old origins, and within one.
const COLLECT_EVERY: Duration = Duration::from_secs(60 * 60);
const COLLECT_ON: Duration = Duration::from_secs(1);
const COLLECTED_AT_ONCE: usize = 2_000;
/// Reads that are made at once: most are of memory, and take microseconds.
const MAX_READERS: usize = 8;
/// Bytes of memory for pages, for one that only reads.
const READER_CACHE: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests;
