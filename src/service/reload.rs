//! Reloads: when the file has changed, or on SIGHUP, a new configuration is read, checked and
//! built, and only then put in force. One that cannot be used changes nothing.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::signal::unix::Signal;

use crate::{
    config::{Config, Watcher},
    expect::{self, LoadError},
    proxy::{Live, SetupError},
};

/// Where reloads come from.
pub(super) struct Reloads {
    file: PathBuf,
    watcher: Option<Watcher>,
}

/// Why a reload happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    FileChanged,
    Hangup,
}

/// Reloads for as long as the daemon runs. Without a file there is nothing to reload.
pub(super) async fn run(live: Arc<Live>, mut reloads: Option<Reloads>, mut hangup: Signal) {
    loop {
        let watcher = reloads.as_mut().and_then(|reloads| reloads.watcher.as_mut());
        let cause = tokio::select! {
            () = changed(watcher) => Cause::FileChanged,
            received = hangup.recv() => match received {
                Some(()) => Cause::Hangup,
                None => return,
            },
        };
        match &mut reloads {
            Some(reloads) => {
                // Before they are read, so that no change is missed.
                reloads.follow().await;
                reload(&live, &reloads.file, cause).await;
            }
            None => tracing::warn!(
                %cause,
                "there is no configuration file to reload; start with --config FILE"
            ),
        }
    }
}

// === impl Reloads ===

impl Reloads {
    /// Watches the files by which the configuration changes. It reads them, so there must be nobody yet to keep waiting.
    pub(super) fn begin(file: &Path) -> Self {
        let mut watcher = Watcher::new(file)
            .inspect_err(|error| {
                tracing::warn!(%error, "the configuration file is not watched; SIGHUP reloads it");
            })
            .ok();
        if let (Some(watcher), Some(credentials)) = (&mut watcher, credentials_of(file)) {
            follow(watcher, credentials.as_deref());
        }
        Self {
            file: file.to_owned(),
            watcher,
        }
    }

    /// Watches the credentials file that the configuration names now, if that can be read at all.
    async fn follow(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        let file = self.file.clone();
        // Files and folders are read: not on a thread that serves requests.
        let followed = tokio::task::spawn_blocking(move || {
            if let Some(credentials) = credentials_of(&file) {
                follow(&mut watcher, credentials.as_deref());
            }
            watcher
        });
        match followed.await {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => tracing::error!(%error, "the configuration file is watched no more; SIGHUP reloads it"),
        }
    }
}

/// The credentials file that a configuration names, whether or not that file is as it has to be.
fn credentials_of(file: &Path) -> Option<Option<PathBuf>> {
    let config = Config::load_without_credentials(file).ok()?;
    Some(config.identity.credentials)
}

fn follow(watcher: &mut Watcher, credentials: Option<&Path>) {
    if let Err(error) = watcher.follow(credentials) {
        tracing::warn!(%error, "the credentials file is not watched; SIGHUP reads it again");
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

async fn reload(live: &Arc<Live>, file: &Path, cause: Cause) {
    // Files are read and keys are parsed here: not on a thread that serves requests.
    let attempt = tokio::task::spawn_blocking({
        let (live, file) = (live.clone(), file.to_owned());
        move || attempt(&live, &file, cause)
    });
    match attempt.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(
            %cause,
            %error,
            in_force = live.generation().number,
            "configuration rejected"
        ),
        Err(error) => tracing::error!(%error, "a reload failed inside"),
    }
}

/// Puts the file in force, or says why not.
fn attempt(live: &Arc<Live>, file: &Path, cause: Cause) -> Result<(), ReloadError> {
    if std::fs::read(file).is_ok_and(|bytes| bytes.trim_ascii().is_empty()) {
        return Err(ReloadError::Empty(file.to_owned()));
    }
    let config = expect::load(file)?;
    let before = live.generation();
    let tls = |config: &Config| config.proxy.tls.as_ref().map(|tls| tls.listen.clone());
    if before.config.proxy.listen != config.proxy.listen
        || before.config.proxy.threads != config.proxy.threads
        || tls(&before.config) != tls(&config)
    {
        tracing::warn!("proxy.listen, proxy.tls.listen and proxy.threads take effect at the next start");
    }
    if before.config.cache.path != config.cache.path {
        tracing::warn!("cache.path and cache.persist take effect at the next start");
    }
    // By SIGHUP an operator also says that files beside the configuration were replaced.
    let generation = live.replace(config, cause == Cause::Hangup)?;
    tell_of_idle(&generation.config);
    tracing::info!(generation = generation.number, %cause, "configuration reloaded");
    Ok(())
}

/// Why a reload changes nothing.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    /// A file that is being written is empty for a moment, and one on a full disk for longer; to
    /// take it for "every default" would open what was closed.
    #[error(
        "{} is empty; to go back to the defaults, restart, or write a comment into it", .0.display()
    )]
    Empty(PathBuf),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Setup(#[from] SetupError),
}

// === impl Cause ===

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::FileChanged => "the file changed",
            Cause::Hangup => "SIGHUP",
        })
    }
}
