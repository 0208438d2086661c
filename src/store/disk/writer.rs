//! What those who read the file and the one who writes it share, and the thread that writes: many copies at a time. It
//! opens the file again after an error, and looks for origins that nobody asks for any more.
//!
//! It ends when all is written and the copies are closed.

use std::{
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use super::{
    file::{CopyFile, FileError},
    open::{Check, guarded, open_patiently},
    queue::Queue,
};
use crate::ratelimited::ratelimited;

/// The state that readers and the writer share.
pub(super) struct SharedDisk {
    pub(super) path: PathBuf,
    pub(super) cache_bytes: usize,
    pub(super) keep: Mutex<Duration>,
    pub(super) max_bytes: AtomicU64,
    /// `None` while it is closed because of an error.
    pub(super) file: RwLock<Option<Arc<CopyFile>>>,
    /// Whether that error was damage, for which the file is checked.
    pub(super) is_suspect: AtomicBool,
    pub(super) queue: Mutex<Queue>,
    /// Signalled when the writer has something to do.
    pub(super) work: Condvar,
    /// Why nothing can be written now.
    pub(super) trouble: Mutex<Option<String>>,
    /// How often nothing could be written.
    pub(super) failures: AtomicU64,
}

// === impl SharedDisk ===

/// For all.
impl SharedDisk {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic inside can at worst lose what waits, and that is fetched again.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Works with the file. An error closes it, and the writer opens it again.
    fn with_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(file) = file else {
            return Err(FileError::Closed);
        };
        let done = guarded(|| work(&file));
        if let Err(error) = &done {
            let is_damage = matches!(error, FileError::Damaged(_));
            self.is_suspect.fetch_or(is_damage, Ordering::Relaxed);
            let mut current = self.file.write().unwrap_or_else(PoisonError::into_inner);
            // Unless another has done so, and the file is open again.
            let closed = current.take_if(|current| Arc::ptr_eq(current, &file));
            drop(current);
            close([Some(file), closed]);
            // Under the lock, or the writer could be just about to wait.
            let _queue = self.lock();
            self.work.notify_one();
        }
        done
    }

    /// As [`with_file`](Self::with_file), for those who read: nobody else tells of the error.
    pub(super) fn read_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        let read = self.with_file(work);
        if let Err(error) = &read
            && !matches!(error, FileError::Closed)
        {
            ratelimited!(
                warn,
                path = %self.path.display(),
                "cannot read the copies on disk: {error}. robotgate opens the file again"
            );
        }
        read
    }
}

/// For the writer.
impl SharedDisk {
    pub(super) fn write_until_closed(&self) {
        let mut collecting = Collecting::new();
        let mut pause = Pause::default();
        loop {
            let closing = self.wait_for_work(&collecting, &pause);
            let opened = self.reopen();
            let result = opened.and_then(|()| self.write_batch());
            match result.and_then(|()| self.collect(&mut collecting)) {
                Ok(()) => {
                    pause = Pause::default();
                    self.succeeded();
                    if closing && !self.lock().has_work() {
                        break;
                    }
                }
                Err(error) => {
                    pause.lengthen();
                    self.failed(&error);
                    if closing {
                        tracing::error!(
                            origins = self.lock().len(),
                            "the latest copies were not written to the disk"
                        );
                        break;
                    }
                    // What cannot be written can often be read.
                    let _ = self.reopen();
                }
            }
        }
        let closed = self.file.write().unwrap_or_else(PoisonError::into_inner).take();
        close(closed);
        let mut queue = self.lock();
        queue.closed = true;
        queue.clear();
    }

    fn failed(&self, error: &FileError) {
        let text = format!("copies wait in memory until they can be written to the disk: {error}");
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.as_ref() != Some(&text) {
            tracing::error!(path = %self.path.display(), "{text}");
            *trouble = Some(text);
        }
        // Last, under the lock: who sees the count finds out why.
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    fn succeeded(&self) {
        let ended = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        if ended.is_some() {
            tracing::warn!(path = %self.path.display(), "copies are written to the disk again");
        }
    }

    /// Opens the file again where an error has closed it.
    fn reopen(&self) -> Result<(), FileError> {
        if self.is_open() {
            return Ok(());
        }
        let check = match self.is_suspect.load(Ordering::Relaxed) {
            true => Check::Full,
            false => Check::Skip,
        };
        // One who reads may have the file that was closed for a moment longer.
        let file = open_patiently(&self.path, self.cache_bytes, check)?;
        self.is_suspect.store(false, Ordering::Relaxed);
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
        Ok(())
    }

    /// Waits until there is something to do that may be done, and then a moment for more. Whether it is
    /// the last.
    fn wait_for_work(&self, collecting: &Collecting, pause: &Pause) -> bool {
        let mut queue = self.lock();
        while !queue.closed {
            let rest = match pause.rest() {
                rest if !rest.is_zero() => rest,
                _ if queue.has_work() || !self.is_open() => break,
                _ => collecting.rest(),
            };
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

    fn write_batch(&self) -> Result<(), FileError> {
        let batch = self.lock().take();
        let result = match batch.changes.is_empty() {
            true => Ok(()),
            false => self.with_file(|file| file.write(&batch.changes)),
        };
        if let Err(error) = result {
            self.lock().give_back(batch);
            return Err(error);
        }
        self.lock().mark_written();
        self.make_room()?;
        for flushed in batch.flushing {
            // Whoever went away needs no word.
            let _ = flushed.send(());
        }
        Ok(())
    }

    /// Keeps the file within its bound, and makes some room at once where it is over it.
    fn make_room(&self) -> Result<(), FileError> {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let forgotten = self.with_file(|file| match file.held() > max_bytes {
            true => file.make_room(max_bytes - max_bytes / 10),
            false => Ok(0),
        })?;
        if forgotten > 0 {
            tracing::warn!(
                origins = forgotten,
                "the copies on disk reached cache.max-disk-bytes, so robotgate forgot those that were not needed for \
                 the longest time"
            );
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
                "forgot origins that no bot requested for a long time (cache.keep)"
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

/// Lets go of a file. The last to do so closes it, which writes to it and may panic as any work on it may.
fn close(file: impl IntoIterator) {
    let _ = guarded(|| {
        file.into_iter().for_each(drop);
        Ok(())
    });
}

/// How long the disk is left alone after an error.
#[derive(Debug, Default)]
struct Pause {
    /// Errors since it last took something.
    errors: u32,
    until: Option<Instant>,
}

// === impl Pause ===

impl Pause {
    fn lengthen(&mut self) {
        self.until = Some(Instant::now() + RETRY * (1 << self.errors));
        self.errors = (self.errors + 1).min(MAX_DOUBLINGS);
    }

    fn rest(&self) -> Duration {
        self.until
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
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
            // Not at once: a machine that has just started may have the time still to learn.
            at: Instant::now() + COLLECT_EVERY,
            next: None,
        }
    }

    fn rest(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// How long changes gather before they are written together: each write makes the disk keep it, which costs as much for one
/// change as for hundreds.
const GATHER: Duration = Duration::from_millis(20);
/// Between two tries to write to a disk that took nothing.
const RETRY: Duration = Duration::from_secs(1);
/// How often that doubles.
const MAX_DOUBLINGS: u32 = 4;
/// Between two looks for old origins, and within one.
const COLLECT_EVERY: Duration = Duration::from_secs(60 * 60);
const COLLECT_ON: Duration = Duration::from_secs(1);
const COLLECTED_AT_ONCE: usize = 2_000;
