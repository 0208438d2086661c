//! Notices changes of the configuration file, and of the files with secrets that it names.
//!
//! It watches directories, not the file, because editors and `mv` replace the file, and Kubernetes swaps a symbolic
//! link two levels up. It compares contents, so a change of another file or a `touch` is not a change. It never parses
//! the file and never decides whether a change is good.

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

/// How long no file in a directory must change before the content is read again: longer than an editor takes to save,
/// shorter than a person waits.
const QUIET: Duration = Duration::from_millis(100);
/// Maximum number of symbolic links to follow, as in Linux's own path lookup. More links are assumed to be a loop.
const MAX_LINKS: usize = 40;
/// How often to repeat the search for directories if they keep moving. By then they are watched, so later moves are
/// noticed.
const MAX_ROUNDS: usize = 4;

/// Waits for a file's content to change.
///
/// Create it before the file is loaded, so that changes between the two are noticed.
#[derive(Debug)]
pub struct Watcher {
    main: Watched,
    /// Other files to watch.
    beside: Vec<Watched>,
    watched: BTreeSet<PathBuf>,
    debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    stirred: mpsc::Receiver<()>,
    /// Whether an event arrived since the content was last compared. This is a field so that the future of
    /// [`Watcher::changed`] can be dropped while it waits.
    dirty: bool,
}

/// A file and its last known content; `None` if the file has never existed.
struct Watched {
    path: PathBuf,
    seen: Option<Vec<u8>>,
}

/// Why a file cannot be watched. It can still be loaded, but its changes go unnoticed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system cannot create a watcher, most often because of a limit.
    #[error("cannot watch files for changes (if a limit is the cause, raise fs.inotify.max_user_instances): {0}")]
    Start(#[source] notify::Error),
    /// A directory cannot be watched.
    #[error("cannot watch {} for changes (if a limit is the cause, raise fs.inotify.max_user_watches): {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        source: notify::Error,
    },
    /// The path cannot be made absolute.
    #[error("cannot watch {} for changes: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

// === impl Watcher ===

impl Watcher {
    /// Starts to watch a file, with its current content as the known content. The file need not exist yet.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be watched. The caller then reloads only on request.
    pub fn new(path: &Path) -> Result<Self, WatchError> {
        let path = std::path::absolute(path).map_err(|source| WatchError::Path {
            path: path.to_owned(),
            source,
        })?;
        // A capacity of one is enough, because one event causes all files to be read.
        let (stir, stirred) = mpsc::channel(1);
        let debouncer = new_debouncer(QUIET, None, move |result: DebounceEventResult| {
            let worth_a_look = match &result {
                Ok(events) => events.iter().any(|event| may_change_content(&event.kind)),
                // Events may have been lost.
                Err(_) => true,
            };
            if worth_a_look {
                let _ = stir.try_send(());
            }
        })
        .map_err(WatchError::Start)?;

        let mut watcher = Self {
            main: Watched { path, seen: None },
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

    /// Watches these files in addition to the configuration, and no longer those of an earlier call. Their current
    /// content becomes the known content.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Watcher::new`].
    pub fn follow(&mut self, beside: &[PathBuf]) -> Result<(), WatchError> {
        if self.beside.iter().map(|watched| &watched.path).eq(beside) {
            return Ok(());
        }
        let watched = |path: &PathBuf| Watched {
            path: path.clone(),
            seen: None,
        };
        self.beside = beside.iter().map(watched).collect();
        let watching = self.watch_directories();
        self.beside.iter_mut().for_each(Watched::look);
        watching
    }

    /// Makes the current content of all files the known content. Call it before reading the files, so that a change
    /// since [`Watcher::changed`] returned is not reported again.
    pub fn look(&mut self) {
        self.files_mut().for_each(Watched::look);
    }

    /// Waits until the content of a file differs from the known content.
    ///
    /// While a file is missing, this waits for it to appear; a file that comes back with the same content is not a
    /// change. Cancel safe: no change is lost if the future is dropped.
    pub async fn changed(&mut self) {
        loop {
            if !self.dirty {
                // The debouncer owns the sender, so the channel is never closed.
                let _ = self.stirred.recv().await;
                self.dirty = true;
            }
            // Set the watches before reading, so that a change after the read is noticed.
            if let Err(error) = self.watch_directories() {
                tracing::warn!(%error, "cannot watch the configuration, so robotgate may miss changes to it; send \
                    SIGHUP after a change");
            }
            let mut contents = self.read().await;
            if contents.iter().flatten().any(Vec::is_empty) {
                // An empty file is probably being rewritten, so wait for its content.
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

    /// Reads the files; `None` for a file that cannot be read.
    async fn read(&self) -> Vec<Option<Vec<u8>>> {
        let mut contents = Vec::with_capacity(1 + self.beside.len());
        for file in self.files() {
            let path = file.path.clone();
            let content = tokio::task::spawn_blocking(move || files::read(&path)).await;
            let content = content.unwrap_or_else(|ended| Err(ended.into()));
            if let Err(error) = &content {
                tracing::debug!(%error, path = %file.path.display(), "a configured file does not exist");
            }
            contents.push(content.ok());
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

    /// Watches exactly the directories in which a change could make the path lead to another file.
    ///
    /// A directory can appear or disappear just before it is watched, so this repeats, at most [`MAX_ROUNDS`] times,
    /// until nothing changes.
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

    /// Watches these directories. Renews existing watches too, because the name of a watched directory can now belong
    /// to a different directory.
    fn watch_all(&mut self, directories: &BTreeSet<PathBuf>) -> Result<(), WatchError> {
        for gone in self.watched.difference(directories) {
            // This fails if the directory or its watch no longer exists.
            let _ = self.debouncer.unwatch(gone);
        }
        self.watched.clone_from(directories);
        let mut result = Ok(());
        for directory in directories {
            let watched = self.debouncer.watch(directory, RecursiveMode::NonRecursive);
            result = result.and(watched.map_err(|source| WatchError::Directory {
                directory: directory.clone(),
                source,
            }));
        }
        result
    }
}

// === impl Watched ===

impl Watched {
    fn look(&mut self) {
        self.seen = files::read(&self.path).ok();
    }

    /// Stores this content and returns whether it differs from the stored content. A missing file is not a change.
    fn take(&mut self, content: Option<Vec<u8>>) -> bool {
        let changed = content.is_some() && self.seen != content;
        if changed {
            self.seen = content;
        }
        changed
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.path)
    }
}

/// Returns whether an event could mean that a file's content has changed. Reads cause events too, and must be ignored:
/// this module reads the files itself, so each read would trigger the next.
fn may_change_content(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write))
}

/// Returns the directories that contain the file and every symbolic link on the way to it. In place of a missing
/// directory, returns its nearest existing ancestor. All paths are real paths, because removing one of two watches on a
/// directory would remove both.
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
            // Join component by component: joining an empty path would add a slash, as if the file were a directory.
            let real: PathBuf = parent.join(target).components().chain(rest.components()).collect();
            if paths.len() < MAX_LINKS && !paths.contains(&real) {
                paths.push(real);
            }
        }
    }
    found
}
