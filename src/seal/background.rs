//! Seals the log of a running proxy on a thread of its own. No request waits for the sealing, even if the disk with the
//! seal hangs or is full, or the key is missing.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::Serialize;

use super::{SealError, SealOptions, Sealed, seal};

/// Seals a log in the background. When the sealer is closed or dropped, its thread seals the remaining lines, unless
/// there are very many, and ends.
#[derive(Debug)]
pub struct Sealer {
    shared: Arc<Shared>,
    /// Dropping the sender tells the thread to end.
    running: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

/// The state of the sealer, for the metrics and the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SealState {
    /// Number of lines that the last checkpoint covers; 0 until this sealer has succeeded for the first time.
    pub lines: u64,
    /// Whether the last attempt to seal failed, or the thread could not be started or has panicked.
    pub fails: bool,
}

#[derive(Debug)]
struct Shared {
    options: SealOptions,
    log: PathBuf,
    lines: AtomicU64,
    fails: AtomicBool,
}

// === impl Sealer ===

impl Sealer {
    /// Starts a thread that seals `log`. If the thread cannot be started, the state says that sealing fails.
    pub fn start(options: &SealOptions, log: &Path) -> Self {
        let shared = Arc::new(Shared {
            options: options.clone(),
            log: log.to_owned(),
            lines: AtomicU64::new(0),
            fails: AtomicBool::new(false),
        });
        let (sender, closed) = mpsc::channel();
        let thread = std::thread::Builder::new().name("seal".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.run(&closed)
        });
        if let Err(error) = &thread {
            tracing::error!(
                %error,
                "the audit log is not sealed, because no thread can be started; restart robotgate to try again"
            );
            shared.fails.store(true, Ordering::Relaxed);
        }
        Self {
            shared,
            running: Mutex::new(thread.ok().map(|thread| (sender, thread))),
        }
    }

    /// Returns whether this sealer seals `log` with these options.
    pub fn is_of(&self, options: &SealOptions, log: &Path) -> bool {
        self.shared.options == *options && self.shared.log == log
    }

    pub fn state(&self) -> SealState {
        let running = self.running.lock();
        // `close` takes the thread out of `running` before it lets the thread end. So if the thread has ended but is
        // still there, it has panicked.
        let has_panicked = running.as_ref().is_some_and(|(_, thread)| thread.is_finished());
        SealState {
            lines: self.shared.lines.load(Ordering::Relaxed),
            fails: self.shared.fails.load(Ordering::Relaxed) || has_panicked,
        }
    }

    /// Lets the thread seal the remaining lines, and blocks until it has ended.
    pub fn close(&self) {
        let running = self.running.lock().take();
        if let Some((sender, thread)) = running {
            drop(sender);
            // A panic of the thread is already on stderr.
            let _ = thread.join();
        }
    }
}

// === impl Shared ===

impl Shared {
    fn run(&self, closed: &Receiver<()>) {
        let (mut told, mut pause) = (None, EVERY);
        loop {
            let is_closed = || closed.try_recv() == Err(TryRecvError::Disconnected);
            let is_last = is_closed();
            let started = Instant::now();
            // Sleep for as long as this sealing has taken so far, so that a long log does not take a whole CPU core.
            let rest = || {
                std::thread::sleep(started.elapsed().min(MAX_PAUSE));
                is_closed()
            };
            match seal(&self.options, std::slice::from_ref(&self.log), false, rest) {
                Ok(sealed) => {
                    self.succeeded(&sealed, &mut told);
                    pause = EVERY;
                }
                // A log without lines is no failure.
                Err(SealError::NoLog(_)) => {}
                Err(error) => {
                    self.failed(&error, &mut told);
                    pause = after_failure(&error, pause);
                }
            }
            if is_last {
                return;
            }
            // Returns at once when the sealer is closed.
            let _ = closed.recv_timeout(pause);
        }
    }

    fn succeeded(&self, sealed: &Sealed, told: &mut Option<String>) {
        self.lines.store(sealed.size, Ordering::Relaxed);
        self.fails.store(false, Ordering::Relaxed);
        if let Some(key) = &sealed.created {
            tracing::info!(
                folder = %self.options.path.display(),
                %key,
                "created a key pair to seal the audit log; the field `key` has the public key"
            );
        }
        if told.take().is_some() {
            tracing::warn!(
                folder = %self.options.path.display(),
                "the audit log can be sealed again; robotgate has sealed the waiting lines"
            );
        }
    }

    fn failed(&self, error: &SealError, told: &mut Option<String>) {
        self.fails.store(true, Ordering::Relaxed);
        let error = error.to_string();
        if told.as_ref() != Some(&error) {
            tracing::error!(
                error,
                "cannot seal the new lines of the audit log; robotgate tries again later"
            );
            *told = Some(error);
        }
    }
}

/// The pause after a failure that only a person can repair doubles each time, because each attempt can read a long log.
fn after_failure(error: &SealError, last: Duration) -> Duration {
    match error {
        SealError::Differs(_) | SealError::OldCheckpoint(_) => (last * 2).clamp(AFTER_FAILURE, MAX_AFTER_FAILURE),
        _ => AFTER_FAILURE,
    }
}

const EVERY: Duration = Duration::from_secs(10);
const AFTER_FAILURE: Duration = Duration::from_secs(60);
const MAX_AFTER_FAILURE: Duration = Duration::from_secs(60 * 60);
/// Maximum pause between two rounds of sealing a long log.
const MAX_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_before_a_changed_log_is_read_again_grows() {
        let differs = SealError::Differs(String::new());
        let mut pause = EVERY;
        let minutes: Vec<u64> = std::iter::repeat_with(|| {
            pause = after_failure(&differs, pause);
            pause.as_secs() / 60
        })
        .take(8)
        .collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        let old = SealError::OldCheckpoint(PathBuf::new());
        assert_eq!(
            after_failure(&old, AFTER_FAILURE),
            2 * AFTER_FAILURE,
            "only a person can repair that"
        );
        let locked = SealError::Locked(PathBuf::new());
        assert_eq!(after_failure(&locked, pause), AFTER_FAILURE, "that costs nothing");
    }
}
