//! The thread that writes the copies, many at a time, opens the file again after an error, and looks for
//! origins that nobody asks for any more.
//!
//! It ends when all is written and the copies are closed, or when the file turns out to be damaged.

use std::{
    sync::{PoisonError, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use super::{file::FileError, open::mark_behind, shared::Shared};

// === impl Shared ===

impl Shared {
    pub(super) fn write_until_closed(&self) {
        let mut collecting = Collecting::new();
        let mut troubles = Troubles::default();
        // Whether the file lacks something at the end.
        let mut behind = false;
        loop {
            let closing = self.wait_for_work(&collecting, &troubles);
            let opened = self.reopen();
            // A disk that takes nothing may still be read; then it is opened again at once.
            troubles.reopens = opened.is_ok();
            if troubles.count > 0 {
                // Again and again, because opening it may have written to it.
                mark_behind(&self.path);
            }
            if opened.is_ok() && !closing && !troubles.rest().is_zero() {
                continue;
            }
            let done = opened.and_then(|()| self.write_batch());
            match done.and_then(|()| self.collect(&mut collecting)) {
                Ok(()) => {
                    if std::mem::take(&mut troubles).count > 0 {
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
                    behind = true;
                    break;
                }
                Err(error) => {
                    if troubles.count == 0 {
                        tracing::error!(
                            path = %self.path.display(),
                            "the copies cannot be kept on disk: {error}; they wait in memory until they can, so see \
                             to the disk"
                        );
                    }
                    troubles.add();
                    mark_behind(&self.path);
                    if closing {
                        tracing::error!(origins = self.lock().len(), "the last copies are not on disk");
                        break;
                    }
                }
            }
        }
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = None;
        if behind || troubles.count > 0 {
            mark_behind(&self.path);
        }
        let mut queue = self.lock();
        queue.closed = true;
        queue.clear();
    }

    /// Waits until there is something to do that may be done, and then a moment for more. Whether it is
    /// the last.
    fn wait_for_work(&self, collecting: &Collecting, troubles: &Troubles) -> bool {
        let mut queue = self.lock();
        while !queue.closed {
            let rest = match troubles.rest() {
                rest if !rest.is_zero() && (self.is_open() || !troubles.reopens) => rest,
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
        let written = match batch.changes.is_empty() {
            true => Ok(()),
            false => self.with_file(|file| file.write(&batch.changes)),
        };
        if let Err(error) = written {
            self.lock().give_back(batch);
            return Err(error);
        }
        self.lock().written();
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
                "the copies on disk have reached cache.max-disk-bytes, and those that were not needed for the longest \
                 time were forgotten"
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
        // Once in a while an operator may hear of it again.
        self.told.store(false, Ordering::Relaxed);
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

/// How long the disk has been taking nothing.
#[derive(Debug, Default)]
struct Troubles {
    count: u32,
    /// When it is tried again.
    until: Option<Instant>,
    /// Whether the file could be opened the last time.
    reopens: bool,
}

// === impl Troubles ===

impl Troubles {
    fn add(&mut self) {
        self.until = Some(Instant::now() + RETRY.saturating_mul(1 << self.count));
        self.count = (self.count + 1).min(MAX_TROUBLES);
    }

    fn rest(&self) -> Duration {
        let until = self.until.unwrap_or_else(Instant::now);
        until.saturating_duration_since(Instant::now())
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

/// How long changes gather before they are written together.
const GATHER: Duration = Duration::from_millis(2);
/// Between two tries to write to a disk that took nothing.
const RETRY: Duration = Duration::from_secs(1);
/// Doublings of that.
const MAX_TROUBLES: u32 = 4;
/// Between two looks for old origins, and within one.
const COLLECT_EVERY: Duration = Duration::from_secs(60 * 60);
const COLLECT_ON: Duration = Duration::from_secs(1);
const COLLECTED_AT_ONCE: usize = 2_000;
