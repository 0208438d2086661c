//! What those who read the file and the one who writes it share: the file, which an error closes and
//! the writer opens again, and the changes that wait.

use std::{
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    file::{CopyFile, FileError},
    open::{Look, guarded, open_at},
    queue::Queue,
};

/// See the module's text.
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) cache_bytes: usize,
    pub(super) keep: Mutex<Duration>,
    pub(super) max_bytes: AtomicU64,
    /// `None` while it is closed because of an error.
    pub(super) file: RwLock<Option<Arc<CopyFile>>>,
    /// Whether that error may have been damage, for which the file is looked through.
    pub(super) suspect: AtomicBool,
    /// Whether an operator was told that the file cannot be read.
    pub(super) told: AtomicBool,
    pub(super) queue: Mutex<Queue>,
    /// Signalled when the writer has something to do.
    pub(super) work: Condvar,
}

// === impl Shared ===

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic inside can at worst lose what waits, and that is fetched again.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(file) = file else {
            return Err(FileError::Closed);
        };
        let done = guarded(|| work(&file));
        if let Err(error) = &done {
            self.suspect.fetch_or(error.is_damage(), Ordering::Relaxed);
            self.close_file(&file);
        }
        done
    }

    /// As [`with_file`](Self::with_file), and tells an operator where that fails, not too often.
    pub(super) fn read_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        let read = self.with_file(work);
        match &read {
            Err(error) if !matches!(error, FileError::Closed) && !self.told.swap(true, Ordering::Relaxed) => {
                tracing::warn!(
                    path = %self.path.display(),
                    "the copies on disk could not be read: {error}; the file is opened anew"
                );
            }
            _ => {}
        }
        read
    }

    /// Closes `file`, which is opened anew before it is used again, unless that has happened.
    pub(super) fn close_file(&self, file: &Arc<CopyFile>) {
        let mut current = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, file)) {
            *current = None;
        }
        drop(current);
        // Under the lock, or the writer could be just about to wait.
        let _queue = self.lock();
        self.work.notify_one();
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Opens the file anew where an error has closed it.
    pub(super) fn reopen(&self) -> Result<(), FileError> {
        if self.is_open() {
            return Ok(());
        }
        let look = match self.suspect.swap(false, Ordering::Relaxed) {
            true => Look::Through,
            false => Look::Here,
        };
        let file = open_at(&self.path, self.cache_bytes, look, false).map_err(FileError::from)?;
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
        Ok(())
    }
}
