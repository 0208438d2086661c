//! Reloads: when the file has changed, or on SIGHUP, a new configuration is read, checked and
//! built, and only then put in force. One that cannot be used changes nothing.

mod changes;
mod source;

use std::{
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{runtime::Handle, signal::unix::Signal, sync::watch};

pub(super) use self::source::Source;
use super::{
    Daemon,
    outcome::{Changes, Reload},
    report::Report,
};
use crate::{
    audit::MAX_WAIT,
    config::Config,
    expect::{self, LoadError},
    proxy::{self, ListenError, SetupError},
    store::Disk,
};

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
        let cause = tokio::select! {
            () = source::changed(reloads.as_mut()) => Cause::FileChanged,
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
                reload(&daemon, reloads.file(), cause).await;
                report.reloaded();
            }
            None => tracing::warn!(
                %cause,
                "there is no configuration file to reload; start with --config FILE"
            ),
        }
    }
}

/// Says what an operator should know of a configuration that was taken up.
pub(super) fn tell_of_doubts(config: &Config, file: Option<&Path>) {
    for warning in file.map_or_else(Vec::new, |file| config.warnings(file, SystemTime::now())) {
        tracing::warn!("{warning}");
    }
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
    let changes = changes::between(&before, &generation, daemon.threads);
    // Nothing fails from here on.
    let runtime = Handle::current();
    runtime.block_on(listeners.retire(&open));
    live.put_in_force(generation.clone());
    listeners.take_up(open, live, &daemon.operators);
    generation
        .listening()
        .set(listeners.addresses().into_iter().map(|(address, _)| address).collect());
    daemon.have_sockets_kept(&listened);
    if !Arc::ptr_eq(before.store(), generation.store()) {
        runtime.block_on(daemon.answer_on_socket());
        // What it is written to may take nothing for ever.
        let store = before.store().clone();
        let closing = tokio::task::spawn_blocking(move || store.disk().map(Disk::close));
        let _ = runtime.block_on(tokio::time::timeout(MAX_WAIT, closing));
    }
    changes::tell(&changes, &generation, cause.as_str());
    tell_of_doubts(&generation.config, Some(file));
    Ok(changes)
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

/// Past it, an operator wonders.
const LONG: Duration = Duration::from_secs(10);
