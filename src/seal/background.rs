//! Seals the log of a running proxy, on a thread of its own. The thread only reads the log, so a disk that hangs, a
//! folder that is full or a key that is missing never stops a request.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{SealError, SealOptions, Sealed, seal};

/// Seals a log until it is closed or dropped.
pub struct Sealer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The state, for the metrics and the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealState {
    /// Number of lines in the last checkpoint; 0 before the first attempt.
    pub lines: u64,
    /// Whether the last attempt failed.
    pub fails: bool,
}

struct Shared {
    options: SealOptions,
    log: PathBuf,
    closing: Mutex<bool>,
    /// Signalled at the end.
    closed: Condvar,
    lines: AtomicU64,
    fails: AtomicBool,
}

// === impl Sealer ===

impl Sealer {
    /// Starts sealing `log`. A thread that cannot be started counts as a failure.
    pub fn start(options: &SealOptions, log: &Path) -> Self {
        let shared = Arc::new(Shared {
            options: options.clone(),
            log: log.to_owned(),
            closing: Mutex::new(false),
            closed: Condvar::new(),
            lines: AtomicU64::new(0),
            fails: AtomicBool::new(false),
        });
        let thread = std::thread::Builder::new().name("seal".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.run()
        });
        if let Err(error) = &thread {
            tracing::error!(%error, "the audit log is not sealed: no thread can be started");
            shared.fails.store(true, Ordering::Relaxed);
        }
        Self {
            shared,
            thread: Mutex::new(thread.ok()),
        }
    }

    /// Whether this seals `log` with these options.
    pub fn is_of(&self, options: &SealOptions, log: &Path) -> bool {
        self.shared.options == *options && self.shared.log == log
    }

    pub fn state(&self) -> SealState {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        // Only a panic ends the thread before it is closed.
        let has_panicked = thread.as_ref().is_some_and(JoinHandle::is_finished);
        SealState {
            lines: self.shared.lines.load(Ordering::Relaxed),
            fails: self.shared.fails.load(Ordering::Relaxed) || (has_panicked && !self.shared.is_closing()),
        }
    }

    /// Seals what is in the log now, and ends. Blocks.
    pub fn close(&self) {
        self.shared.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The panic of a thread is already on stderr.
            let _ = thread.join();
        }
    }
}

impl Drop for Sealer {
    /// Tells the thread to end after it has sealed what is in the log now. Does not wait for it.
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("log", &self.shared.log)
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    fn close(&self) {
        *self.closing.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.closed.notify_all();
    }

    fn is_closing(&self) -> bool {
        *self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut told = None;
        loop {
            let is_last = self.is_closing();
            let started = Instant::now();
            // Lets go of the core for as long as it worked, after each round.
            let pause = || {
                std::thread::sleep(started.elapsed().min(MAX_PAUSE));
                self.is_closing()
            };
            match seal(&self.options, std::slice::from_ref(&self.log), false, pause) {
                Ok(sealed) => self.succeeded(&sealed, &mut told),
                // Nothing is logged yet.
                Err(SealError::NoLog(_)) => {}
                Err(error) => self.failed(&error, &mut told),
            }
            if is_last {
                return;
            }
            let closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
            // Returns at once if it is closing already, and then seals once more.
            let pause = if told.is_some() { AFTER_FAILURE } else { EVERY };
            drop(self.closed.wait_timeout_while(closing, pause, |closing| !*closing));
        }
    }

    fn succeeded(&self, sealed: &Sealed, told: &mut Option<String>) {
        self.lines.store(sealed.size, Ordering::Relaxed);
        self.fails.store(false, Ordering::Relaxed);
        if let Some(key) = &sealed.created {
            tracing::info!(folder = %self.options.path.display(), %key, "created a key that seals the audit log");
        }
        if told.take().is_some() {
            tracing::warn!(folder = %self.options.path.display(), "the audit log is sealed again");
        }
    }

    fn failed(&self, error: &SealError, told: &mut Option<String>) {
        self.fails.store(true, Ordering::Relaxed);
        let error = error.to_string();
        if told.as_ref() != Some(&error) {
            tracing::error!(error, "the audit log is not sealed");
            *told = Some(error);
        }
    }
}

/// How long new lines wait to be sealed.
const EVERY: Duration = Duration::from_secs(10);
/// How long to wait after a failure: an attempt can read the whole log.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How long to pause between two rounds at most.
const MAX_PAUSE: Duration = Duration::from_secs(1);
