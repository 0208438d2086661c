//! A thread that writes the robots.txt copies to disk, many in one transaction. It also reopens the file after an
//! error, and removes old origins. It shares `SharedDisk` with readers.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Condvar, Mutex, RwLock};

use super::{COPIES, file::CopyFile, queue::Queue};
use crate::{
    database::{Check, FileError, Pause, Trouble, close, guarded, open_patiently},
    ratelimited::ratelimited,
};

pub(super) struct SharedDisk {
    pub(super) path: PathBuf,
    pub(super) cache_bytes: usize,
    pub(super) keep: Mutex<Duration>,
    pub(super) max_bytes: AtomicU64,
    /// `None` while an error keeps the file closed.
    pub(super) file: RwLock<Option<Arc<CopyFile>>>,
    /// Whether the file was closed because it was damaged. If so, the whole file is checked when it is reopened.
    pub(super) is_suspect: AtomicBool,
    pub(super) queue: Mutex<Queue>,
    pub(super) work: Condvar,
    pub(super) trouble: Trouble,
    pub(super) failures: AtomicU64,
}

// === impl SharedDisk ===

impl SharedDisk {
    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.work.notify_one();
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.read().is_some()
    }

    /// Runs `work` on the file. If `work` fails, closes the file and wakes the writer thread, which opens it again.
    fn with_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        let file = self.file.read().clone();
        let Some(file) = file else {
            return Err(FileError::Closed);
        };
        let done = guarded(|| work(&file));
        if let Err(error) = &done {
            let is_damage = matches!(error, FileError::Damaged(_));
            self.is_suspect.fetch_or(is_damage, Ordering::Relaxed);
            let mut current = self.file.write();
            // The writer may have opened a new file already, which stays open.
            let closed = current.take_if(|current| Arc::ptr_eq(current, &file));
            drop(current);
            close([Some(file), closed]);
            // Without the lock, a writer that is about to wait could miss the notification.
            let _queue = self.queue.lock();
            self.work.notify_one();
        }
        done
    }

    /// Runs `work` on the file for a reader. Logs errors, except [`FileError::Closed`].
    pub(super) fn read_file<T>(&self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, FileError> {
        let read = self.with_file(work);
        if let Err(error) = &read
            && !matches!(error, FileError::Closed)
        {
            ratelimited!(
                warn,
                path = %self.path.display(),
                "cannot read the cache file, which contains the saved robots.txt files: {error}. robotgate will close \
                 this file and open it again"
            );
        }
        read
    }
}

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
                    self.trouble
                        .end(&self.path, "robots.txt files are written to the disk again");
                    if closing && !self.queue.lock().has_work() {
                        break;
                    }
                }
                Err(error) => {
                    pause.lengthen();
                    self.failed(&error);
                    if closing {
                        let origins = self.queue.lock().len();
                        if origins > 0 {
                            tracing::error!(
                                path = %self.path.display(), origins, %error,
                                "the most recent robots.txt files were not saved; robotgate fetches them again when \
                                 bots need them"
                            );
                        }
                        break;
                    }
                    // Open the file for readers: they can often use it although a write has failed.
                    let _ = self.reopen();
                }
            }
        }
        let closed = self.file.write().take();
        close(closed);
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.clear();
    }

    fn failed(&self, error: &FileError) {
        let text =
            format!("robots.txt files wait in memory until they can be written to the file of cache.path: {error}");
        self.trouble.begin(&self.path, text);
        // Count last, so that code that sees the new count also finds the reason in `trouble`.
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    fn reopen(&self) -> Result<(), FileError> {
        if self.is_open() {
            return Ok(());
        }
        let check = match self.is_suspect.load(Ordering::Relaxed) {
            true => Check::Full,
            false => Check::Skip,
        };
        // Wait, because a reader can still have the old file open for a moment.
        let file = open_patiently(&COPIES, &self.path, self.cache_bytes, check)?;
        self.is_suspect.store(false, Ordering::Relaxed);
        *self.file.write() = Some(Arc::new(file));
        Ok(())
    }

    /// Waits until the pause after an error is over and there is something to do, and then a little for more changes.
    /// Returns whether the queue is closed.
    fn wait_for_work(&self, collecting: &Collecting, pause: &Pause) -> bool {
        let mut queue = self.queue.lock();
        while !queue.closed {
            let rest = match pause.rest() {
                rest if !rest.is_zero() => rest,
                _ if queue.has_work() || !self.is_open() => break,
                _ => collecting.rest(),
            };
            if rest.is_zero() {
                break;
            }
            self.work.wait_for(&mut queue, rest);
        }
        let gathering = Instant::now();
        while !queue.is_urgent() && queue.has_work() {
            let rest = GATHER.saturating_sub(gathering.elapsed());
            if rest.is_zero() {
                break;
            }
            self.work.wait_for(&mut queue, rest);
        }
        queue.closed
    }

    fn write_batch(&self) -> Result<(), FileError> {
        let batch = self.queue.lock().take();
        let result = match batch.changes.is_empty() {
            true => Ok(()),
            false => self.with_file(|file| file.write(&batch.changes)),
        };
        if let Err(error) = result {
            self.queue.lock().give_back(batch);
            return Err(error);
        }
        self.queue.lock().mark_written();
        let made_room = self.make_room();
        for flushed in batch.flushing {
            // Fails only if the caller of `flush` no longer waits.
            let _ = flushed.send(());
        }
        made_room
    }

    /// If the texts and records exceed their limit, forgets origins until they take about a tenth less than the limit.
    fn make_room(&self) -> Result<(), FileError> {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let forgotten = self.with_file(|file| match file.held() > max_bytes {
            true => file.make_room(max_bytes - max_bytes / 10),
            false => Ok(0),
        })?;
        if forgotten > 0 {
            tracing::warn!(
                origins = forgotten,
                "the data in the cache file exceeded cache.max-disk-bytes, so robotgate forgot the sites whose \
                 robots.txt files expired first or expire soonest"
            );
        }
        Ok(())
    }

    /// Forgets origins that no bot has requested for a long time. A call scans at most one part of the file.
    fn collect(&self, collecting: &mut Collecting) -> Result<(), FileError> {
        if !collecting.rest().is_zero() {
            return Ok(());
        }
        let keep = *self.keep.lock();
        let Some(oldest) = SystemTime::now().checked_sub(keep) else {
            return Ok(());
        };
        let start = collecting.next.take().unwrap_or_default();
        let collected = self.with_file(|file| file.collect(oldest, &start, COLLECTED_AT_ONCE))?;
        if collected.forgotten > 0 {
            tracing::info!(
                origins = collected.forgotten,
                "forgot sites that no bot has requested for longer than cache.keep"
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

struct Collecting {
    /// When to scan the next part of the file.
    at: Instant,
    /// The origin at which the scan continues.
    next: Option<String>,
}

// === impl Collecting ===

impl Collecting {
    fn new() -> Self {
        Self {
            // A machine that has just booted can have a wrong clock, by which all origins look old.
            at: Instant::now() + COLLECT_EVERY,
            next: None,
        }
    }

    fn rest(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// How long to wait for more changes after the first, because one sync to the disk takes as long for hundreds of
/// changes as for one.
const GATHER: Duration = Duration::from_millis(20);
/// The pause between two scans of the file.
const COLLECT_EVERY: Duration = Duration::from_secs(60 * 60);
/// The pause between two parts of one scan.
const COLLECT_ON: Duration = Duration::from_secs(1);
/// Origins in one part of a scan. More would delay writes for too long.
const COLLECTED_AT_ONCE: usize = 2_000;
