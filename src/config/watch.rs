//! Noticing that the configuration file has changed, or a file with secrets that it names.
//!
//! It watches directories, not the file: editors and `mv` put another file in its place, and Kubernetes swaps a
//! symbolic link two steps away. It compares contents, so a neighbour's change or a `touch` is none. It never parses
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

/// How long a directory must be quiet: longer than an editor takes to save, shorter than a person waits.
const QUIET: Duration = Duration::from_millis(100);
/// Links on the way to a file before they must be a circle, as in Linux's own path lookup.
const MAX_LINKS: usize = 40;
/// Looks at directories that keep moving; what moves later stirs a watch that is there by then.
const MAX_ROUNDS: usize = 4;

/// Waits for a file's content to change.
///
/// Make it before the file is loaded: what changes between the two is then noticed.
#[derive(Debug)]
pub struct Watcher {
    main: Watched,
    /// Files that belong to it.
    beside: Vec<Watched>,
    watched: BTreeSet<PathBuf>,
    debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    stirred: mpsc::Receiver<()>,
    /// Something stirred and the content was not compared since. Kept here, so that [`Watcher::changed`] may be
    /// dropped while it waits.
    dirty: bool,
}

/// A file, and the content that was last known of it; nothing before the file was ever there.
struct Watched {
    path: PathBuf,
    seen: Option<Vec<u8>>,
}

/// Why a file cannot be watched. It can still be loaded; only changes go unnoticed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// No watch at all: most often a limit of the system.
    #[error("cannot watch for changes (see fs.inotify.max_user_instances): {0}")]
    Start(#[source] notify::Error),
    /// No watch on a directory.
    #[error("cannot watch {} for changes (see fs.inotify.max_user_watches): {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: notify::Error,
    },
    /// The path says nothing that could be watched.
    #[error("cannot watch {} for changes: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

// === impl Watcher ===

impl Watcher {
    /// Begins to watch; what the file holds now counts as known. The file need not be there yet.
    ///
    /// # Errors
    ///
    /// When the system gives no watch. The caller goes on without, reloading only when told.
    pub fn new(path: &Path) -> Result<Self, WatchError> {
        let path = std::path::absolute(path).map_err(|source| WatchError::Path {
            path: path.to_owned(),
            source,
        })?;
        // One place is enough: a full channel already says what there is to say.
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

    /// Watches these files too, in place of others that were watched beside the first; what they hold now counts as known.
    ///
    /// # Errors
    ///
    /// As [`Watcher::new`].
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

    /// Looks at all files: what they hold now counts as known. For who is about to read them, so that what has been
    /// written since [`Watcher::changed`] returned is no change once more.
    pub fn look(&mut self) {
        self.files_mut().for_each(Watched::look);
    }

    /// Waits until a file holds other bytes than when this last returned, or than at the start.
    ///
    /// A file that is gone is waited for, and one that comes back the same is no change. Nothing is lost when the
    /// future is dropped.
    pub async fn changed(&mut self) {
        loop {
            if !self.dirty {
                // The sender lives in the debouncer, so there is always one.
                let _ = self.stirred.recv().await;
                self.dirty = true;
            }
            // First the watches, then the content: what changes after the look is then noticed.
            if let Err(error) = self.watch_directories() {
                tracing::warn!(%error, "watching the configuration failed, so changes may go unnoticed");
            }
            let mut contents = self.read().await;
            if contents.iter().flatten().any(Vec::is_empty) {
                // Most often it is being written: emptied first, and then filled.
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

    /// What the files hold; `None` for one that is not there.
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

    /// Watches every directory in which a change could put another file behind the path, and no other.
    ///
    /// A directory may come or go just before its watch is there to say so. So they are looked up again until nothing
    /// moves, within reason.
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

    /// Watches these directories, each anew even if it was watched: under the same name there may be another.
    fn watch_all(&mut self, directories: &BTreeSet<PathBuf>) -> Result<(), WatchError> {
        for gone in self.watched.difference(directories) {
            // It may be gone indeed, and its watch with it.
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

    /// Whether this content is another than the one that was known. A file that is not there has none.
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

/// Whether an event could mean other content. Reading a file is an event too, and this module reads: taking it for a
/// change would never end.
fn may_change_content(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write))
}

/// The directories that hold the file, and every symbolic link on the way to it, by their real paths: two watches on
/// one directory would share their end. In place of one that is missing stands the nearest that is there.
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
            // Joined by parts: an empty rest would add a slash, and a file is no directory.
            let real: PathBuf = parent.join(target).components().chain(rest.components()).collect();
            if paths.len() < MAX_LINKS && !paths.contains(&real) {
                paths.push(real);
            }
        }
    }
    found
}
