//! Stores the robots.txt copies on disk, so that they survive a restart and their eviction from memory. A thread writes
//! them in the background. An error of the disk does not make requests fail: robotgate fetches again what it cannot
//! read.

mod file;
mod queue;
mod tables;
mod writer;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::Semaphore;

pub use self::{
    file::{Contents, CopyFile},
    tables::OriginRecord,
};
use self::{queue::StoreChange, writer::SharedDisk};
pub use crate::database::FileError;
use crate::{
    copy::OriginState,
    database::{self, Check, DatabaseKind, Trouble, guarded, open_existing, open_patiently},
    ratelimited::ratelimited,
};

/// The robots.txt copies on disk.
pub struct Disk {
    shared: Arc<SharedDisk>,
    writer: Mutex<Option<JoinHandle<()>>>,
    readers: Arc<Semaphore>,
}

/// Limits of the file with the robots.txt copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskOptions {
    /// How long to remember an origin after [`OriginState::useful_until`].
    pub keep: Duration,
    /// Maximum size of the stored texts and records, in bytes. Above it, robotgate forgets the origins with the
    /// earliest [`OriginState::useful_until`].
    pub max_bytes: u64,
}

/// Why robots.txt copies cannot be stored in the file at `path`.
#[derive(Debug, thiserror::Error)]
#[error("robots.txt files cannot be saved in {}: {why}", path.display())]
pub struct DiskError {
    pub path: PathBuf,
    /// The message of this error names no path.
    pub why: FileError,
}

// === impl Disk ===

impl Disk {
    /// Opens or creates the file at `path`, and renames a damaged one first. Blocks: it checks the whole file, and
    /// waits a little if another process has it open.
    pub fn open(path: &Path, options: DiskOptions, cache_bytes: usize) -> Result<Self, DiskError> {
        let unusable = |why| DiskError {
            path: path.to_owned(),
            why,
        };
        let file = open_patiently(&COPIES, path, cache_bytes, Check::Full).map_err(unusable)?;
        let shared = Arc::new(SharedDisk {
            path: path.to_owned(),
            cache_bytes,
            keep: Mutex::new(options.keep),
            max_bytes: AtomicU64::new(options.max_bytes),
            file: RwLock::new(Some(Arc::new(file))),
            is_suspect: AtomicBool::new(false),
            queue: Mutex::default(),
            work: Condvar::new(),
            trouble: Trouble::default(),
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

    /// Checks whether this process may read and write a file of robots.txt copies at `path`. Creates nothing.
    pub fn check(path: &Path) -> Result<(), DiskError> {
        database::check(path).map_err(|why| DiskError {
            path: path.to_owned(),
            why,
        })
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns why nothing can be written to the file now, or `None` if there is no such error. The text names no path.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.text()
    }

    /// Returns how many times the writer thread could not open or change the file since this `Disk` was created.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Changes the limits of the file.
    pub fn set_options(&self, options: DiskOptions) {
        *self.shared.keep.lock() = options.keep;
        self.shared.max_bytes.store(options.max_bytes, Ordering::Relaxed);
    }

    /// Returns the state that is stored under [`name`](crate::copy::SiteDocument::name), including changes that are not
    /// in the file yet.
    pub(super) async fn recall(&self, name: String) -> Result<Option<Arc<OriginState>>, FileError> {
        let part = {
            let queue = self.shared.queue.lock();
            match queue.find(&name) {
                Some(StoreChange::Keep { state, complete: true }) => return Ok(Some(state.clone())),
                Some(StoreChange::Keep { state, complete: false }) => Some(state.clone()),
                Some(StoreChange::Forget) => return Ok(None),
                // The writer thread has closed the file or will do so soon.
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
            // Keep the permit until the read ends, even if the request no longer waits for the result.
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

    /// Queues an origin's state for writing under `name`. `complete` says that the state already includes what the file
    /// says. Otherwise, the writer merges it with the state in the file.
    pub(super) fn keep(&self, name: String, state: Arc<OriginState>, complete: bool) {
        self.change(name, StoreChange::Keep { state, complete });
    }

    pub(super) fn forget(&self, name: String) {
        self.change(name, StoreChange::Forget);
    }

    fn change(&self, name: String, change: StoreChange) {
        let mut queue = self.shared.queue.lock();
        if queue.closed {
            return;
        }
        let is_first = !queue.has_work();
        let has_room = queue.put(name, change);
        if is_first {
            // If other changes were queued before this one, the writer is awake already.
            self.shared.work.notify_one();
        }
        drop(queue);
        if !has_room {
            ratelimited!(
                error,
                path = %self.path().display(),
                "too many robots.txt files wait to be written, because the disk is too slow or fails. robotgate keeps \
                 further ones in memory only, so it may have to fetch them again"
            );
        }
    }

    /// Returns the approximate size of the texts and records in the file (`None` while an error keeps the file closed),
    /// and their maximum size, both in bytes.
    pub fn bytes(&self) -> (Option<u64>, u64) {
        let file = self.shared.file.read();
        let held = file.as_ref().map(|file| file.held());
        (held, self.shared.max_bytes.load(Ordering::Relaxed))
    }

    /// Returns the number of changes that are not written yet.
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock().len()
    }

    /// Waits until all changes that are queued now are written, for at most ten seconds. Returns whether they were
    /// written.
    pub async fn flush(&self) -> bool {
        let flushed = {
            let mut queue = self.shared.queue.lock();
            if queue.closed && !self.shared.is_open() {
                // The writer thread has ended, or it is ending and cannot open the file.
                return false;
            }
            queue.flush()
        };
        self.shared.work.notify_one();
        matches!(tokio::time::timeout(MAX_FLUSH, flushed).await, Ok(Ok(())))
    }

    /// Runs `work` on the file, and blocks the thread until `work` ends.
    pub fn with_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        self.shared.read_file(work)
    }

    /// Writes the queued changes and closes the file. Blocks the thread until this is done.
    pub fn close(&self) {
        self.shared.close();
        let writer = self.writer.lock().take();
        if let Some(writer) = writer {
            // A panic of the writer has been printed already.
            let _ = writer.join();
        }
    }

    /// Opens the file at `path` for a subcommand, while no proxy has it open. Never creates it: a proxy of another user
    /// could not open a file that belongs to the user of the command.
    ///
    /// # Errors
    /// [`FileError::Locked`] means that another process, usually the proxy, has the file open.
    pub fn read_only(path: &Path) -> Result<CopyFile, FileError> {
        open_existing(&COPIES, path, READER_CACHE)
    }

    /// Runs `work` on a file from [`read_only`](Self::read_only). Fails if redb panics because the file is damaged.
    pub fn guarded<T>(file: CopyFile, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        guarded(move || work(&file))
    }
}

impl Drop for Disk {
    /// Tells the writer to end after it has written all changes. Does not wait for it.
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

const COPIES: DatabaseKind<CopyFile> = DatabaseKind {
    name: "the cache file",
    loss: "robotgate fetches each robots.txt again when a bot needs it",
    wrap: CopyFile::new,
};
const MAX_FLUSH: Duration = Duration::from_secs(10);
/// Most reads take microseconds, because they find the data in the page cache of redb or of the system. So a few
/// threads are enough.
const MAX_READERS: usize = 8;
/// Maximum size of redb's page cache in a subcommand, in bytes.
const READER_CACHE: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests;
