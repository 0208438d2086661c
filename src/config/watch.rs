//! Notices changes of the configuration file, and of other files, such as those of
//! [`Config::secret_files`](super::Config::secret_files).
//!
//! This module watches directories, because editors replace the file, and Kubernetes replaces a symbolic link in the
//! path of the file. It compares contents, so a `touch` is not a change. It never parses a file.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, RecommendedCache, new_debouncer};
use tokio::sync::mpsc;

use crate::files;

/// How long robotgate waits after a change before it reads the files. Most editors save a file in less time.
const QUIET: Duration = Duration::from_millis(100);
/// Maximum number of symbolic links in the path of a file. More are probably a loop, and Linux does not follow them
/// either.
const MAX_LINKS: usize = 40;
/// Maximum number of attempts to watch the right directories. Another attempt is necessary if a directory was moved
/// before it was watched.
const MAX_ROUNDS: usize = 4;

/// Waits for the content of files to change.
///
/// Create the watcher before loading the file, so that it also notices a change during the load.
#[derive(Debug)]
pub struct Watcher {
    main: Watched,
    /// The files to watch in addition to the configuration file.
    beside: Vec<Watched>,
    watched: BTreeSet<PathBuf>,
    debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    stirred: mpsc::Receiver<()>,
    /// Whether the system reported a change since the contents were last compared. This is a field, so that the report
    /// is kept if the future of [`Watcher::changed`] is dropped.
    dirty: bool,
}

struct Watched {
    path: PathBuf,
    /// The known content. `None` if the last [`Watched::look`] could not read the file, and no later read could either.
    seen: Option<Vec<u8>>,
    /// Whether the last read failed.
    is_unreadable: bool,
}

/// Why a file cannot be watched. robotgate can still load it, but does not notice changes.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(
        "cannot watch files for changes (if a limit is the cause, raise fs.inotify.max_user_instances and restart \
         robotgate): {0}"
    )]
    Start(#[source] notify::Error),
    #[error(
        "cannot watch {} for changes (if a limit is the cause, raise fs.inotify.max_user_watches and restart \
         robotgate): {source}",
        directory.display()
    )]
    Directory { directory: PathBuf, source: notify::Error },
    /// The path cannot be made absolute.
    #[error(
        "cannot watch {} for changes, because the current folder is not known: {source}; name the file by an absolute \
         path",
        path.display()
    )]
    Path { path: PathBuf, source: io::Error },
}

// === impl Watcher ===

impl Watcher {
    /// Starts to watch a file. Its current content becomes the known content, with which [`Watcher::changed`] compares.
    /// The file need not exist yet.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be watched. The caller then reloads only on SIGHUP.
    pub fn new(path: &Path) -> Result<Self, WatchError> {
        let path = std::path::absolute(path).map_err(|source| WatchError::Path {
            path: path.to_owned(),
            source,
        })?;
        // One message is enough, because each makes the receiver read all files.
        let (stir, stirred) = mpsc::channel(1);
        let debouncer = new_debouncer(QUIET, None, move |result: DebounceEventResult| {
            let worth_a_look = match &result {
                Ok(events) => events.iter().any(|event| may_change_content(&event.kind)),
                // The system may have lost events, so read the files.
                Err(_) => true,
            };
            if worth_a_look {
                let _ = stir.try_send(());
            }
        })
        .map_err(WatchError::Start)?;

        let mut watcher = Self {
            main: Watched::new(path),
            beside: Vec::new(),
            watched: BTreeSet::new(),
            debouncer,
            stirred,
            dirty: false,
        };
        watcher.watch_directories()?;
        watcher.main.look();
        Ok(watcher)
    }

    /// Sets which files are watched in addition to the configuration file. If the list has changed, the current content
    /// of its files becomes the known content. Tries again to watch what could not be watched before.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be watched. The list is changed nevertheless.
    pub fn follow(&mut self, beside: &[PathBuf]) -> Result<(), WatchError> {
        if self.beside.iter().map(|watched| &watched.path).eq(beside) {
            return self.watch_directories();
        }
        self.beside = beside.iter().cloned().map(Watched::new).collect();
        let watching = self.watch_directories();
        self.beside.iter_mut().for_each(Watched::look);
        watching
    }

    /// Makes the current content of all files the known content. Call this before loading the files: otherwise, a
    /// change before the load is reported later, although it is already loaded.
    pub fn look(&mut self) {
        self.files_mut().for_each(Watched::look);
    }

    /// Waits until the content of a watched file differs from the known content, and makes it the known content. A file
    /// that cannot be read, for example because it is missing, is not a change: robotgate logs a warning.
    ///
    /// Cancel safe: no change is lost if the future is dropped.
    pub async fn changed(&mut self) {
        loop {
            if !self.dirty {
                // The debouncer owns the sender, so the channel is never closed.
                let _ = self.stirred.recv().await;
                self.dirty = true;
            }
            // Set the watches before reading, so that a change after the read is noticed.
            if let Err(error) = self.watch_directories() {
                tracing::warn!(%error, "cannot watch the configuration file or a file with secrets, so robotgate may \
                    miss changes; send SIGHUP after a change");
            }
            let mut contents = self.read().await;
            if contents
                .iter()
                .any(|content| content.as_ref().map_or(true, Vec::is_empty))
            {
                // The file is probably being written or replaced, so wait for the whole content.
                tokio::time::sleep(QUIET).await;
                contents = self.read().await;
            }
            self.dirty = false;
            let mut changed = false;
            for (file, content) in self.files_mut().zip(contents) {
                changed |= file.take(content);
            }
            if changed {
                return;
            }
        }
    }

    async fn read(&self) -> Vec<io::Result<Vec<u8>>> {
        let mut contents = Vec::with_capacity(1 + self.beside.len());
        for file in self.files() {
            let path = file.path.clone();
            let content = tokio::task::spawn_blocking(move || files::read(&path)).await;
            contents.push(content.unwrap_or_else(|ended| Err(ended.into())));
        }
        contents
    }

    fn files(&self) -> impl Iterator<Item = &Watched> {
        [&self.main].into_iter().chain(&self.beside)
    }

    fn files_mut(&mut self) -> impl Iterator<Item = &mut Watched> {
        [&mut self.main].into_iter().chain(&mut self.beside)
    }

    fn directories(&self) -> BTreeSet<PathBuf> {
        self.files().flat_map(|file| directories(&file.path)).collect()
    }

    /// A directory can change just before it is watched, so this repeats until nothing changes, but at most
    /// [`MAX_ROUNDS`] times.
    fn watch_directories(&mut self) -> Result<(), WatchError> {
        let mut result = Ok(());
        for _ in 0..MAX_ROUNDS {
            let directories = self.directories();
            result = self.watch_all(&directories);
            if result.is_ok() && directories == self.directories() {
                break;
            }
        }
        result
    }

    /// Renews existing watches too, because a name may belong to a different directory now.
    fn watch_all(&mut self, directories: &BTreeSet<PathBuf>) -> Result<(), WatchError> {
        for gone in self.watched.difference(directories) {
            // This fails only if the directory or its watch no longer exists.
            let _ = self.debouncer.unwatch(gone);
        }
        self.watched.clone_from(directories);
        let mut result = Ok(());
        for directory in directories {
            let watched = self.debouncer.watch(directory, RecursiveMode::NonRecursive);
            result = result.and(watched.map_err(|mut source| {
                // The message of `WatchError` already names the directory.
                source.paths.clear();
                let directory = directory.clone();
                WatchError::Directory { directory, source }
            }));
        }
        result
    }
}

// === impl Watched ===

impl Watched {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: None,
            is_unreadable: false,
        }
    }

    fn look(&mut self) {
        self.seen = files::read(&self.path).ok();
        self.is_unreadable = self.seen.is_none();
    }

    /// Stores `content`, and returns whether it differs from the content before. A file that cannot be read counts as
    /// unchanged, and causes a warning: robotgate goes on using what it read before, for example a secret that has been
    /// revoked since.
    fn take(&mut self, content: io::Result<Vec<u8>>) -> bool {
        let was_unreadable = std::mem::replace(&mut self.is_unreadable, content.is_err());
        match content {
            Ok(content) => {
                let changed = self.seen.as_ref() != Some(&content);
                self.seen = Some(content);
                changed
            }
            Err(error) => {
                if !was_unreadable {
                    tracing::warn!(
                        %error,
                        path = %self.path.display(),
                        "cannot read this file any more; what robotgate read from it before still applies"
                    );
                }
                false
            }
        }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.path)
    }
}

/// Returns false for an event that only says that a file was opened or read. This module reads the files itself, so if
/// these events counted, each read would cause the next one.
fn may_change_content(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write))
}

/// Returns the directories that contain the file or a symbolic link in its path. In place of a missing directory,
/// returns its nearest existing ancestor. All are real paths: if a directory were watched by two paths, unwatching one
/// would end both.
fn directories(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut paths = vec![path.to_owned()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        found.extend(path.ancestors().skip(1).find_map(|parent| parent.canonicalize().ok()));
        for ancestor in path.ancestors() {
            let (Ok(target), Some(parent)) = (ancestor.read_link(), ancestor.parent()) else {
                continue;
            };
            found.extend(parent.canonicalize());
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            // Join the components one by one: joining an empty path would add a slash, as if the file were a directory.
            let real: PathBuf = parent.join(target).components().chain(rest.components()).collect();
            if paths.len() < MAX_LINKS && !paths.contains(&real) {
                paths.push(real);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn following_the_same_files_again_renews_a_lost_watch() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [main, secret] = ["robotgate.toml", "below/credentials"].map(|name| folder.path().join(name));
        let directory = secret.parent().expect("a folder").to_owned();
        std::fs::create_dir(&directory).expect("a folder");
        for file in [&main, &secret] {
            std::fs::write(file, "old").expect("a file");
        }
        let mut watcher = Watcher::new(&main).expect("a watch");
        watcher.follow(std::slice::from_ref(&secret)).expect("a watch");
        let real = directory.canonicalize().expect("the folder exists");
        watcher.debouncer.unwatch(real).expect("the folder is watched");

        watcher.follow(std::slice::from_ref(&secret)).expect("a watch");
        std::fs::write(&secret, "new").expect("the file is writable");
        let noticed = tokio::time::timeout(std::time::Duration::from_secs(60), watcher.changed()).await;
        assert_eq!(noticed, Ok(()));
    }
}
