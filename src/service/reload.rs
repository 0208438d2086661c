//! Reloads: when the file has changed, or on SIGHUP, a new configuration is read, checked and
//! built, and only then put in force. One that cannot be used changes nothing.

use std::{path::PathBuf, sync::Arc};

use tokio::signal::unix::Signal;

use crate::{
    config::{Config, Watcher},
    proxy::Live,
};

/// Where reloads come from.
pub(super) struct Reloads {
    pub(super) file: PathBuf,
    pub(super) watcher: Option<Watcher>,
}

/// Reloads for as long as the daemon runs. Without a file there is nothing to reload.
pub(super) async fn run(live: Arc<Live>, mut reloads: Option<Reloads>, mut hangup: Signal) {
    loop {
        let watcher = reloads.as_mut().and_then(|reloads| reloads.watcher.as_mut());
        let cause = tokio::select! {
            () = changed(watcher) => "the file changed",
            received = hangup.recv() => match received {
                Some(()) => "SIGHUP",
                None => return,
            },
        };
        match &reloads {
            Some(reloads) => reload(&live, &reloads.file, cause).await,
            None => tracing::warn!(
                cause,
                "there is no configuration file to reload; start with --config FILE"
            ),
        }
    }
}

async fn changed(watcher: Option<&mut Watcher>) {
    match watcher {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}

async fn reload(live: &Arc<Live>, file: &std::path::Path, cause: &str) {
    // Files are read and keys are parsed here: not on a thread that serves requests.
    let attempt = tokio::task::spawn_blocking({
        let (live, file) = (live.clone(), file.to_owned());
        move || attempt(&live, &file)
    });
    match attempt.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(
            cause,
            error,
            in_force = live.generation().number,
            "configuration rejected"
        ),
        Err(error) => tracing::error!(%error, "a reload failed inside"),
    }
}

/// Puts the file in force, or says why not.
fn attempt(live: &Arc<Live>, file: &std::path::Path) -> Result<(), String> {
    let config = Config::load(file).map_err(|error| error.to_string())?;
    let unmet: Vec<String> = config
        .unmet_expectations()
        .into_iter()
        .map(|unmet| format!("{}:{}: expect: {}", file.display(), unmet.line, unmet.message))
        .collect();
    if !unmet.is_empty() {
        return Err(unmet.join("\n"));
    }
    let before = live.generation();
    if before.config.proxy.listen != config.proxy.listen || before.config.proxy.threads != config.proxy.threads {
        tracing::warn!("proxy.listen and proxy.threads take effect at the next start");
    }
    let generation = live.replace(config).map_err(|error| error.to_string())?;
    tracing::info!(generation = generation.number, "configuration reloaded");
    Ok(())
}
