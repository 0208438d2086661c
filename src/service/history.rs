//! Keeps the history that the page for operators shows: adds to it about once a second, and saves it about once a
//! minute in a file next to the cache file.
//!
//! The proxy works without this file. If the file is damaged, the history begins empty.

use std::{
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{task::JoinHandle, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::{
    files,
    proxy::{Live, Sampler},
};

pub(super) struct Keeping {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

struct Keeper {
    live: Arc<Live>,
    sampler: Sampler,
    /// The hash of the history that was last saved. An unchanged history is not saved again.
    saved: Option<u64>,
    /// Whether the last attempt to save failed. Further failures are not logged.
    fails: bool,
}

pub(super) async fn restore(live: &Arc<Live>) {
    let Some(path) = path(live) else { return };
    let history = live.history().clone();
    let restoring = tokio::task::spawn_blocking(move || {
        let restored = match fs::metadata(&path) {
            Ok(file) if file.len() > MAX_BYTES => Err(format!("it is larger than {MAX_BYTES} bytes")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            _ => files::read(&path)
                .map_err(|error| error.to_string())
                .and_then(|text| history.restore(&text).map_err(|error| error.to_string())),
        };
        if let Err(error) = restored {
            tracing::warn!(
                path = %path.display(),
                error,
                "the history on the page for operators begins empty, because its file cannot be used; robotgate \
                 tries to overwrite this file within a minute"
            );
        }
    });
    // An error means that the task panicked. The history is then empty.
    let _ = restoring.await;
}

pub(super) fn keep(live: Arc<Live>) -> Keeping {
    let stop = CancellationToken::new();
    let keeper = Keeper {
        sampler: Sampler::new(live.clone()),
        live,
        saved: None,
        fails: false,
    };
    Keeping {
        task: tokio::spawn(keeper.run(stop.clone())),
        stop,
    }
}

// === impl Keeping ===

impl Keeping {
    /// Saves the history for the last time. Waits at most [`MAX_WAIT`], because a disk can hang.
    pub(super) async fn finish(self) {
        self.stop.cancel();
        let _ = tokio::time::timeout(MAX_WAIT, self.task).await;
    }
}

// === impl Keeper ===

impl Keeper {
    async fn run(mut self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for tick in 1u64.. {
            let is_last = tokio::select! {
                () = stop.cancelled() => true,
                _ = ticks.tick() => false,
            };
            let now = SystemTime::now();
            // Sampling parses lines of the log, and saving writes a file, so do both on a thread that may block.
            let working = tokio::task::spawn_blocking(move || {
                self.sampler.sample(now, is_last || tick.is_multiple_of(SITES_EVERY));
                if is_last || tick.is_multiple_of(SAVE_EVERY) {
                    self.save();
                }
                self
            });
            match working.await {
                Ok(keeper) if !is_last => self = keeper,
                Ok(_) => return,
                Err(error) => {
                    tracing::error!(%error, "the history on the page for operators stops because of an internal error; restart robotgate, and report this");
                    return;
                }
            }
        }
    }

    fn save(&mut self) {
        let Some(path) = path(&self.live) else { return };
        let text = self.live.history().saved();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = Some(hasher.finish());
        if hash == self.saved {
            return;
        }
        match replace(&path, text.as_bytes()) {
            Ok(()) => {
                self.saved = hash;
                if std::mem::take(&mut self.fails) {
                    tracing::warn!(path = %path.display(), "the history on the page for operators is saved again");
                }
            }
            Err(error) if !self.fails => {
                self.fails = true;
                tracing::warn!(
                    path = %path.display(),
                    %error,
                    "the history on the page for operators cannot be saved; robotgate tries again every minute until \
                     it stops, and then loses what is not saved"
                );
            }
            Err(_) => {}
        }
    }
}

/// Returns where the history is saved, or `None` if robotgate keeps no copies on disk.
fn path(live: &Live) -> Option<PathBuf> {
    let store = live.store();
    let mut path = OsString::from(store.disk()?.path());
    path.push(".history");
    Some(path.into())
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = files::unfinished(path);
    let mut file = files::create_unfinished(&unfinished)?;
    let result = file.write_all(text).and_then(|()| fs::rename(&unfinished, path));
    result.inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

const PERIOD: Duration = Duration::from_secs(1);
/// `SITES_EVERY` and `SAVE_EVERY` are in units of `PERIOD`.
const SITES_EVERY: u64 = 5;
const SAVE_EVERY: u64 = 60;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const MAX_WAIT: Duration = Duration::from_secs(5);
