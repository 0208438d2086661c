//! The copies on disk: what is known of every origin outlives the program, and what memory has no
//! room for comes back from here.
//!
//! Writing is done by a thread of its own, behind the requests. A disk that fails costs what is
//! remembered, never a request: what cannot be read is not known, and so is fetched.

mod file;
mod open;
mod queue;
mod tables;
mod writer;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tokio::sync::Semaphore;

pub use self::{
    file::{Contents, CopyFile, FileError},
    tables::Record,
};
use self::{
    open::{Check, guarded, open_existing, open_patiently},
    queue::Change,
    writer::SharedDisk,
};
use crate::copy::OriginState;
use crate::{
    files::{self, may_make_in},
    origin::Origin,
    ratelimited::ratelimited,
};

/// The copies on disk.
pub struct Disk {
    shared: Arc<SharedDisk>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// So that a crowd of readers does not become a crowd of threads.
    readers: Arc<Semaphore>,
}

/// How the copies on disk are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskOptions {
    /// How long an origin is remembered that nobody asks for.
    pub keep: Duration,
    /// Bytes of texts and records that the file may hold. Beyond that, origins that nobody asked for in
    /// the longest time are forgotten.
    pub max_bytes: u64,
}

/// The copies cannot be kept on disk.
#[derive(Debug, thiserror::Error)]
#[error("the copies cannot be kept in {}: {why}", path.display())]
pub struct DiskError {
    pub path: PathBuf,
    /// It names no path.
    pub why: FileError,
}

// === impl Disk ===

impl Disk {
    /// Opens the copies at `path`. Where the file there is damaged, it is moved aside and a new one begun, which the log
    /// tells. Pages of the file take up to `cache_bytes` of memory. It blocks, for as long as it takes to check the file.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn open(path: &Path, options: DiskOptions, cache_bytes: usize) -> Result<Self, DiskError> {
        let unusable = |why| DiskError {
            path: path.to_owned(),
            why,
        };
        let file = open_patiently(path, cache_bytes, Check::Full).map_err(unusable)?;
        let shared = Arc::new(SharedDisk {
            path: path.to_owned(),
            cache_bytes,
            keep: Mutex::new(options.keep),
            max_bytes: AtomicU64::new(options.max_bytes),
            file: RwLock::new(Some(Arc::new(file))),
            is_suspect: AtomicBool::new(false),
            queue: Mutex::default(),
            work: Condvar::new(),
            trouble: Mutex::default(),
            failures: AtomicU64::new(0),
        });
        let writer = std::thread::Builder::new()
            .name("copies".to_owned())
            .spawn({
                let shared = shared.clone();
                move || shared.write_until_closed()
            })
            .map_err(|error| unusable(error.into()))?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
            readers: Arc::new(Semaphore::new(MAX_READERS)),
        })
    }

    /// Whether the copies could be kept at `path`, as far as that can be told beside a process that has them open. It
    /// makes nothing.
    ///
    /// # Errors
    /// This user cannot read or write there.
    pub fn check(path: &Path) -> Result<(), DiskError> {
        let looked = match files::open_to_write(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                may_make_in(path.parent().unwrap_or(Path::new("/")))
            }
            opened => opened,
        };
        looked.map_err(|error| DiskError {
            path: path.to_owned(),
            why: error.into(),
        })
    }

    /// The file that is used.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Why nothing can be written now, and what to do; `None` while it can. It names no path.
    pub fn trouble(&self) -> Option<String> {
        self.shared
            .trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How often nothing could be written, since it was opened.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Changes how the copies are kept.
    pub fn set_options(&self, options: DiskOptions) {
        *self.shared.keep.lock().unwrap_or_else(PoisonError::into_inner) = options.keep;
        self.shared.max_bytes.store(options.max_bytes, Ordering::Relaxed);
    }

    /// What is known of an origin.
    ///
    /// # Errors
    /// The file cannot be read now.
    pub(super) async fn recall(&self, origin: &Origin) -> Result<Option<Arc<OriginState>>, FileError> {
        let name = origin.to_string();
        let part = {
            let queue = self.shared.lock();
            match queue.find(&name) {
                Some(Change::Keep { state, complete: true }) => return Ok(Some(state.clone())),
                Some(Change::Keep { state, complete: false }) => Some(state.clone()),
                Some(Change::Forget) => return Ok(None),
                // There will be no file any more.
                None if queue.closed => return Ok(None),
                None => None,
            }
        };
        if !self.shared.is_open() {
            return Err(FileError::Closed);
        }
        let turn = self.readers.clone().acquire_owned().await;
        let turn = turn.map_err(|_| FileError::Closed)?;
        let shared = self.shared.clone();
        let reading = tokio::task::spawn_blocking(move || {
            // It is held for as long as the read takes, whether its reader waits or not.
            let _turn = turn;
            shared.read_file(|file| file.read(&name))
        });
        let earlier = reading.await.map_err(|_| FileError::Closed)??;
        Ok(match (part, earlier) {
            (Some(part), Some(earlier)) => Some(Arc::new(part.resuming(&earlier))),
            (Some(part), None) => Some(part),
            (None, earlier) => earlier.map(Arc::new),
        })
    }

    /// Has it written that this is known. With `complete`, that is all there is; else the file may know
    /// more from before.
    pub(super) fn keep(&self, origin: &Origin, state: Arc<OriginState>, complete: bool) {
        self.change(origin, Change::Keep { state, complete });
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
        let is_first = !queue.has_work();
        let has_room = queue.put(origin.to_string(), change);
        if is_first {
            // Otherwise the writer knows that there is something to write.
            self.shared.work.notify_one();
        }
        drop(queue);
        if !has_room {
            ratelimited!(
                error,
                path = %self.path().display(),
                "too many copies wait to be written to the disk; copies beyond these are only in memory, and \
                 robotgate fetches them again when they are evicted"
            );
        }
    }

    /// Bytes of texts and records that the file holds, about; `None` while it is closed because of an error. And how many
    /// it may hold.
    pub fn bytes(&self) -> (Option<u64>, u64) {
        let file = self.shared.file.read().unwrap_or_else(PoisonError::into_inner);
        let held = file.as_ref().map(|file| file.held());
        (held, self.shared.max_bytes.load(Ordering::Relaxed))
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
        self.shared.read_file(work)
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

    /// Opens the file at `path` for a person, while no robotgate has it open. It makes none: that would belong to the
    /// person, and the robotgate of another user could not open it.
    ///
    /// # Errors
    /// It cannot be used; locked means that some robotgate runs.
    pub fn read_only(path: &Path) -> Result<CopyFile, FileError> {
        open_existing(path, READER_CACHE)
    }

    /// Works with such a file and closes it. What it holds may make a reader panic.
    ///
    /// # Errors
    /// The file cannot be read or written, or what `work` gives.
    pub fn guarded<T>(file: CopyFile, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        guarded(move || work(&file))
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

/// How long someone waits for what is known to be written.
const MAX_FLUSH: Duration = Duration::from_secs(10);
/// Reads that are made at once: most are of memory, and take microseconds.
const MAX_READERS: usize = 8;
/// Bytes of memory for pages, for one that only reads.
const READER_CACHE: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests;
