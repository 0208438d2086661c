//! Reloads the configuration on SIGHUP, or when its file or a file with secrets changes. If the new configuration
//! cannot be used, the current one stays in force.

mod changes;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{runtime::Handle, signal::unix::Signal, sync::watch};

use self::changes::ReloadChanges;
use super::{Daemon, status_reporter::StatusReporter};
use crate::{
    admin::http::LastReload,
    audit::MAX_WAIT,
    config::{Config, Sources, Watcher},
    expect::{self, LoadError},
    proxy::{self, ListenError, SetupError},
    store::Disk,
    text::Timestamp,
};

pub(super) struct WatchedConfig {
    file: PathBuf,
    sources: Sources,
    watcher: Option<Watcher>,
}

/// Reloads when a watched file changes and on SIGHUP, until `stopping` becomes true. Without a configuration file, only
/// logs a warning on SIGHUP.
pub(super) async fn run(
    daemon: Arc<Daemon>,
    mut reloads: Option<WatchedConfig>,
    mut hangup: Signal,
    mut stopping: watch::Receiver<bool>,
    report: Arc<StatusReporter>,
) {
    loop {
        let cause = tokio::select! {
            () = changed(reloads.as_mut()) => FILE_CHANGED,
            received = hangup.recv() => match received {
                Some(()) => HANGUP,
                None => return,
            },
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        match &mut reloads {
            Some(reloads) => {
                // Before loading the configuration, note the contents of all files to watch, so that no later change is
                // missed.
                reloads.follow().await;
                report.reloading();
                reload(&daemon, &reloads.sources, cause).await;
                report.reloaded();
            }
            None => tracing::warn!(
                trigger = cause,
                "there is no configuration file to reload; start with --config FILE"
            ),
        }
    }
}

pub(super) fn log_warnings(config: &Config, file: Option<&Path>) {
    for warning in config.warnings(file, SystemTime::now()) {
        tracing::warn!("{warning}");
    }
    for warning in proxy::beyond_files(config) {
        tracing::warn!("{warning}");
    }
    for name in config.bots.idle_credentials() {
        tracing::warn!(
            name,
            "a credential identifies no bot, so clients that present it are refused; add it to the credentials of a \
             [[bot]], or remove it"
        );
    }
    for (bot, name) in config.bots.missing_credentials() {
        tracing::warn!(
            bot,
            name,
            "the bot's credential is not in the credentials file, so clients with its User-Agent are refused unless they \
             have another proof; run \"robotgate credential add {name} --config FILE\", or write credentials = [] in its \
             [[bot]]: without identity.required, clients then need no credential for this bot"
        );
    }
}

async fn reload(daemon: &Arc<Daemon>, sources: &Sources, cause: &'static str) {
    let attempt = tokio::task::spawn_blocking({
        let (daemon, sources) = (daemon.clone(), sources.clone());
        move || attempt(&daemon, &sources, cause)
    });
    let outcome = match log_if_slow(attempt).await {
        Ok(attempt) => attempt.map_err(|error| error.to_string()),
        Err(error) => Err(format!("internal error in robotgate: {error}")),
    };
    let in_force = daemon.live.generation();
    let generation = in_force.number;
    if let Err(error) = &outcome {
        in_force.log_rejected(cause, error);
        tracing::error!(
            trigger = cause,
            error,
            current_generation = generation,
            "the new configuration was rejected; robotgate keeps the current one"
        );
    }
    let time = SystemTime::now();
    daemon.live.metrics().reloads.note(outcome.is_ok(), time);
    let error = outcome.as_ref().err().cloned();
    let ReloadChanges { changes, restart } = outcome.unwrap_or_default();
    daemon.reloads.store(Some(Arc::new(LastReload {
        time: Timestamp(time),
        cause,
        ok: error.is_none(),
        error,
        generation,
        changes: changes.iter().map(ToString::to_string).collect(),
        restart_needed: restart,
    })));
}

/// Logs if the reload takes long, because no other reload can begin in the meantime.
async fn log_if_slow<T>(attempt: impl Future<Output = T>) -> T {
    tokio::pin!(attempt);
    match tokio::time::timeout(LONG, &mut attempt).await {
        Ok(ended) => ended,
        Err(_) => {
            tracing::error!(
                "a reload takes long, and no other reload can start before it ends; probably, reading a file that the \
                 configuration names is slow or hangs"
            );
            attempt.await
        }
    }
}

/// Loads the new configuration and puts it in force. Blocks, and needs a Tokio runtime.
fn attempt(daemon: &Daemon, sources: &Sources, cause: &'static str) -> Result<ReloadChanges, ReloadError> {
    let config = expect::load(sources)?;
    let Daemon { live, listeners, .. } = daemon;
    // `followed_by` creates missing files, such as the authority's. A reload that fails because of another file should
    // not create them.
    proxy::check_reload(&config)?;
    let before = live.generation();
    let planned = listeners.plan(&config)?;
    // After a SIGHUP, also reopen the audit log, and read certificates, keys and resolv.conf again: someone may have
    // replaced them.
    let generation = before.followed_by(config, cause == HANGUP)?;
    let listened: Vec<_> = listeners.open().into_iter().map(|(address, _)| address).collect();
    let open = planned
        .open(generation.listening())
        .inspect_err(|_| generation.listening().set(listened.clone()))?;
    let changes = changes::between(&before, &generation, daemon.threads);
    // From here on, nothing can fail.
    let runtime = Handle::current();
    runtime.block_on(listeners.retire(&open));
    generation.log_applied(&before, cause);
    live.put_in_force(generation.clone());
    listeners.start_accepting(open, live, &daemon.operators);
    generation
        .listening()
        .set(listeners.addresses().into_iter().map(|(address, _)| address).collect());
    daemon.have_sockets_kept(&listened);
    if !Arc::ptr_eq(before.store(), generation.store()) {
        runtime.block_on(daemon.answer_on_socket());
        // Limit the wait, because a disk can block forever.
        let store = before.store().clone();
        let closing = tokio::task::spawn_blocking(move || store.disk().map(Disk::close));
        let _ = runtime.block_on(tokio::time::timeout(MAX_WAIT, closing));
    }
    changes::log(&changes, &generation, cause);
    log_warnings(&generation.config, sources.file());
    Ok(changes)
}

#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Setup(#[from] SetupError),
}

// === impl WatchedConfig ===

impl WatchedConfig {
    /// Starts to watch the configuration file, if there is one, and the files with secrets that it names. Blocks.
    pub(super) fn begin(sources: &Sources) -> Option<Self> {
        let file = sources.file()?;
        let mut watcher = Watcher::new(file)
            .inspect_err(|error| {
                tracing::warn!(
                    %error,
                    "cannot watch the configuration file and the files with secrets; send SIGHUP after each change"
                );
            })
            .ok();
        if let (Some(watcher), Some(secrets)) = (&mut watcher, secrets_of(sources)) {
            follow(watcher, &secrets);
        }
        Some(Self {
            file: file.to_owned(),
            sources: sources.clone(),
            watcher,
        })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Watches the files with secrets that the configuration file now names. If that file has mistakes, the watched
    /// files stay the same.
    async fn follow(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        let sources = self.sources.clone();
        let followed = tokio::task::spawn_blocking(move || {
            if let Some(secrets) = secrets_of(&sources) {
                follow(&mut watcher, &secrets);
            }
            watcher.look();
            watcher
        });
        match followed.await {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => tracing::error!(
                %error,
                "stopped watching the configuration file and the files with secrets; send SIGHUP after each change"
            ),
        }
    }
}

/// Returns the paths of the files with secrets, without reading these files. `None` if the configuration is invalid.
fn secrets_of(sources: &Sources) -> Option<Vec<PathBuf>> {
    let config = Config::load_without_credentials(sources).ok()?;
    Some(config.secret_files().into_iter().map(Path::to_owned).collect())
}

fn follow(watcher: &mut Watcher, secrets: &[PathBuf]) {
    if let Err(error) = watcher.follow(secrets) {
        tracing::warn!(%error, "cannot watch a file with secrets; send SIGHUP after each change to it");
    }
}

/// Never returns if no file is watched.
async fn changed(source: Option<&mut WatchedConfig>) {
    match source.and_then(|source| source.watcher.as_mut()) {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}

const FILE_CHANGED: &str = "the file changed";
const HANGUP: &str = "SIGHUP";
/// A reload that takes longer is logged as slow.
const LONG: Duration = Duration::from_secs(10);
