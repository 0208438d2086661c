//! Reloads: when the file has changed, or on SIGHUP, a new configuration is read, checked and
//! built, and only then put in force. One that cannot be used changes nothing.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{runtime::Handle, signal::unix::Signal, sync::watch};

use super::{
    Daemon,
    outcome::{Changes, Reload},
    report::Report,
};
use crate::{
    audit::{MAX_WAIT, plain},
    cache::Disk,
    config::{Change, Config, How, Watcher},
    expect::{self, LoadError},
    proxy::{self, Generation, ListenError, SetupError},
};

/// Where reloads come from.
pub(super) struct Source {
    file: PathBuf,
    watcher: Option<Watcher>,
}

/// Why a reload happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    FileChanged,
    Hangup,
}

/// Reloads until `stopping` turns true. Without a file there is nothing to reload.
pub(super) async fn run(
    daemon: Arc<Daemon>,
    mut reloads: Option<Source>,
    mut hangup: Signal,
    mut stopping: watch::Receiver<bool>,
    report: Arc<Report>,
) {
    loop {
        let watcher = reloads.as_mut().and_then(|reloads| reloads.watcher.as_mut());
        let cause = tokio::select! {
            () = changed(watcher) => Cause::FileChanged,
            received = hangup.recv() => match received {
                Some(()) => Cause::Hangup,
                None => return,
            },
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        match &mut reloads {
            Some(reloads) => {
                // Before they are read, so that no change is missed.
                reloads.follow().await;
                report.reloading();
                reload(&daemon, &reloads.file, cause).await;
                report.reloaded();
            }
            None => tracing::warn!(
                %cause,
                "there is no configuration file to reload; start with --config FILE"
            ),
        }
    }
}

// === impl Source ===

impl Source {
    /// Watches the files by which the configuration changes. It reads them, so there must be nobody yet to keep waiting.
    pub(super) fn begin(file: &Path) -> Self {
        let mut watcher = Watcher::new(file)
            .inspect_err(|error| {
                tracing::warn!(%error, "the configuration file is not watched; SIGHUP reloads it");
            })
            .ok();
        if let (Some(watcher), Some(secrets)) = (&mut watcher, secrets_of(file)) {
            follow(watcher, &secrets);
        }
        Self {
            file: file.to_owned(),
            watcher,
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Watches the files that the configuration names now, if that can be read at all.
    async fn follow(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        let file = self.file.clone();
        // Files and folders are read: not on a thread that serves requests.
        let followed = tokio::task::spawn_blocking(move || {
            if let Some(secrets) = secrets_of(&file) {
                follow(&mut watcher, &secrets);
            }
            watcher.look();
            watcher
        });
        match followed.await {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => tracing::error!(%error, "the configuration file is watched no more; SIGHUP reloads it"),
        }
    }
}

/// The files with secrets that a configuration names, whether or not they are as they have to be.
fn secrets_of(file: &Path) -> Option<Vec<PathBuf>> {
    let config = Config::load_without_credentials(file).ok()?;
    let files = [config.identity.credentials, config.admin.token_file];
    Some(files.into_iter().flatten().collect())
}

fn follow(watcher: &mut Watcher, secrets: &[PathBuf]) {
    if let Err(error) = watcher.follow(secrets) {
        tracing::warn!(%error, "a file with secrets is not watched; SIGHUP reads it again");
    }
}

/// Says which credentials nobody can use, and which bots nobody can be.
pub(super) fn tell_of_idle(config: &Config) {
    for name in config.bots.idle_credentials() {
        tracing::warn!(
            name,
            "a credential stands for no bot, so who presents it is refused; name it in the credentials of a [[bot]], \
             or remove it"
        );
    }
    for (bot, name) in config.bots.missing_credentials() {
        tracing::warn!(
            bot,
            name,
            "a bot is to be known by a credential that is not in the file, so who says that it is that bot is refused; \
             add the credential, or write credentials = [] in the [[bot]] where its User-Agent alone is to be believed"
        );
    }
}

async fn changed(watcher: Option<&mut Watcher>) {
    match watcher {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}

async fn reload(daemon: &Arc<Daemon>, file: &Path, cause: Cause) {
    // Files are read and keys are parsed here: not on a thread that serves requests.
    let attempt = tokio::task::spawn_blocking({
        let (daemon, file) = (daemon.clone(), file.to_owned());
        move || attempt(&daemon, &file, cause)
    });
    let outcome = match tell_if_long(attempt).await {
        Ok(attempt) => attempt.map_err(|error| error.to_string()),
        Err(error) => Err(format!("robotgate failed inside: {error}")),
    };
    let in_force = daemon.live.generation().number;
    if let Err(error) = &outcome {
        tracing::error!(%cause, error, in_force, "configuration rejected");
    }
    let time = SystemTime::now();
    daemon.live.metrics().reloads.note(outcome.is_ok(), time);
    daemon.reloads.note(Reload {
        time,
        cause: cause.as_str(),
        outcome,
        generation: in_force,
    });
}

/// Waits for an attempt, and says so where that takes long: no other begins before it ends.
async fn tell_if_long<T>(attempt: impl Future<Output = T>) -> T {
    tokio::pin!(attempt);
    match tokio::time::timeout(LONG, &mut attempt).await {
        Ok(ended) => ended,
        Err(_) => {
            tracing::error!(
                "a reload takes long, and no other begins before it ends: a file that the configuration names answers slowly \
                 or not at all"
            );
            attempt.await
        }
    }
}

/// Puts the file in force, or says why not. It blocks, within a runtime.
fn attempt(daemon: &Daemon, file: &Path, cause: Cause) -> Result<Changes, ReloadError> {
    let config = expect::load(file)?;
    let Daemon { live, listeners, .. } = daemon;
    // What is not there has to be made, and is left where something else fails after it.
    proxy::check_reload(&config)?;
    let before = live.generation();
    let planned = listeners.plan(&config)?;
    // By SIGHUP an operator also says that files beside the configuration were replaced.
    let generation = before.followed_by(config, cause == Cause::Hangup)?;
    let listened: Vec<_> = listeners.open().into_iter().map(|(address, _)| address).collect();
    let open = planned
        .open(generation.listening())
        .inspect_err(|_| generation.listening().set(listened.clone()))?;
    let changes = changes(&before, &generation, daemon.threads);
    // Nothing fails from here on.
    let runtime = Handle::current();
    runtime.block_on(listeners.retire(&open));
    live.put_in_force(generation.clone());
    listeners.take_up(open, live, &daemon.desk);
    generation
        .listening()
        .set(listeners.addresses().into_iter().map(|(address, _)| address).collect());
    daemon.have_sockets_kept(&listened);
    if !Arc::ptr_eq(before.store(), generation.store()) {
        runtime.block_on(daemon.answer_operators());
        // What it is written to may take nothing for ever.
        let store = before.store().clone();
        let closing = tokio::task::spawn_blocking(move || store.disk().map(Disk::close));
        let _ = runtime.block_on(tokio::time::timeout(MAX_WAIT, closing));
    }
    tell(&changes, &generation, cause);
    tell_of_idle(&generation.config);
    Ok(changes)
}

/// What the second has that the first had not, in a process that began with so many `threads`.
fn changes(before: &Generation, after: &Generation, threads: usize) -> Changes {
    let mut changes = before.config.settings.changes(&after.config.settings);
    let unseen = |key: String, how| Change {
        key,
        how: How::Unseen(how),
    };
    let credentials = [before, after].map(|generation| generation.config.bots.credentials());
    if let [Some(before), Some(after)] = credentials {
        let changed = before.changes(after).into_iter();
        changes.extend(changed.map(|(name, how)| unseen(format!("{CREDENTIALS}.{name}"), how)));
    }
    if let (Some(before), Some(after)) = (before.authority(), after.authority())
        && before.fingerprint() != after.fingerprint()
    {
        changes.push(unseen(AUTHORITY.to_owned(), "another certificate"));
    }
    if before.config.admin.token != after.config.admin.token {
        changes.push(unseen(TOKEN.to_owned(), "another token"));
    }
    if let (Some(before), Some(after)) = (before.server_certificate(), after.server_certificate())
        && before != after
    {
        changes.push(unseen(SERVER.to_owned(), "another certificate"));
    }
    if before.config.https.extra_roots != after.config.https.extra_roots
        && !changes.iter().any(|change| change.key == EXTRA_ROOTS)
    {
        changes.push(unseen(EXTRA_ROOTS.to_owned(), "other certificates"));
    }
    let mut restart = Vec::new();
    if after.config.proxy.threads != threads {
        restart.push(THREADS);
    }
    Changes { changes, restart }
}

/// Tells the operator what is in force now, key by key.
fn tell(Changes { changes, restart }: &Changes, generation: &Generation, cause: Cause) {
    for change in changes.iter().take(MAX_TOLD) {
        match &change.how {
            How::Value { before, after } => tracing::info!(
                key = change.key,
                before = before
                    .as_deref()
                    .map(|value| plain(value, MAX_VALUE))
                    .as_deref()
                    .unwrap_or("default"),
                after = after
                    .as_deref()
                    .map(|value| plain(value, MAX_VALUE))
                    .as_deref()
                    .unwrap_or("default"),
                "a setting changed"
            ),
            How::Unseen(how) => tracing::info!(key = change.key, how, "a setting changed"),
        }
    }
    if let Some(more @ 1..) = changes.len().checked_sub(MAX_TOLD) {
        tracing::info!(more, "more settings changed");
    }
    for key in restart {
        tracing::warn!(key, "this setting takes effect at the next start");
    }
    tracing::info!(
        generation = generation.number,
        %cause,
        changes = changes.len(),
        "configuration reloaded"
    );
}

/// Why a reload changes nothing.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Setup(#[from] SetupError),
}

// === impl Cause ===

impl Cause {
    fn as_str(self) -> &'static str {
        match self {
            Cause::FileChanged => "the file changed",
            Cause::Hangup => "SIGHUP",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const CREDENTIALS: &str = "identity.credentials";
const AUTHORITY: &str = "https.ca-certificate";
/// Past it, an operator wonders.
const LONG: Duration = Duration::from_secs(10);
const SERVER: &str = "proxy.tls.certificate";
const EXTRA_ROOTS: &str = "https.extra-roots";
const TOKEN: &str = "admin.token-file";
const THREADS: &str = "proxy.threads";
/// Settings that the log tells of, of one reload, and bytes of the values of each.
const MAX_TOLD: usize = 200;
const MAX_VALUE: usize = 256;
