//! Where reloads come from: the configuration file, the files with secrets that it names, and who watches them.

use std::path::{Path, PathBuf};

use crate::config::{Config, Watcher};

/// Where reloads come from.
pub(in crate::service) struct Source {
    file: PathBuf,
    watcher: Option<Watcher>,
}

// === impl Source ===

impl Source {
    /// Watches the files by which the configuration changes. It reads them, so there must be nobody yet to keep waiting.
    pub(in crate::service) fn begin(file: &Path) -> Self {
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

    pub(in crate::service) fn file(&self) -> &Path {
        &self.file
    }

    /// Watches the files that the configuration names now, if that can be read at all.
    pub(super) async fn follow(&mut self) {
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

/// Waits until one of the files has changed; for ever where none is watched.
pub(super) async fn changed(source: Option<&mut Source>) {
    match source.and_then(|source| source.watcher.as_mut()) {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}
