//! Which file the copies are kept in: the configured one or, where that cannot be used, one beside
//! it. A file that cannot be used is left as it is.

use std::{
    any::Any,
    cell::Cell,
    fmt,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Once,
    time::{Duration, Instant, SystemTime},
};

use redb::{Builder, CommitError, DatabaseError, StorageError, TableError, TransactionError};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::file::{CopyFile, FileError};

/// A file that was opened.
pub(super) struct Opened {
    pub(super) file: CopyFile,
    pub(super) path: PathBuf,
    /// Why those before it were not taken.
    pub(super) passed_over: Vec<Unusable>,
}

/// A file that cannot be used, and why.
#[derive(Debug)]
pub struct Unusable {
    pub path: PathBuf,
    pub why: Why,
}

/// Why a file cannot be used, so that a person knows what to do.
#[derive(Debug)]
pub enum Why {
    /// Another process has it open.
    Locked,
    /// A later version wrote it.
    Newer(String),
    /// One so early that it cannot be read any more.
    Older(String),
    Damaged(String),
    /// It cannot be read or written.
    Io(io::Error),
}

/// Whether the whole file is looked through when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Through,
    Here,
}

/// None of the files can be used.
#[derive(Debug)]
pub struct NoFile(pub Vec<Unusable>);

/// Opens `path`, or the first file beside it that can be used; waits a little for one that is locked,
/// whose holder may be about to end.
pub(super) fn open(path: &Path, cache_bytes: usize) -> Result<Opened, NoFile> {
    let mut passed_over = Vec::new();
    let all: Vec<PathBuf> = candidates(path).collect();
    if let Some(file) = take_back(path, &all, cache_bytes) {
        return Ok(Opened {
            file,
            path: path.to_owned(),
            passed_over,
        });
    }
    for path in all.iter().cloned() {
        let patience = match passed_over.is_empty() {
            true => PATIENCE,
            false => Duration::ZERO,
        };
        match open_patiently(&path, &all, cache_bytes, patience) {
            Ok(file) => {
                return Ok(Opened {
                    file,
                    path,
                    passed_over,
                });
            }
            Err(why) => {
                if !matches!(why, Why::Locked) {
                    // What is learned from now on it does not take.
                    mark_behind(&path);
                }
                passed_over.push(Unusable { path, why });
            }
        }
    }
    Err(NoFile(passed_over))
}

/// Where the configured file is gone, the one that stood in for it last takes its place: what it learned
/// would be lost.
fn take_back(path: &Path, all: &[PathBuf], cache_bytes: usize) -> Option<CopyFile> {
    let is_gone = fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if !is_gone {
        return None;
    }
    let written = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let last = all
        .iter()
        .filter(|path| path.is_file())
        .max_by_key(|path| written(path))?;
    // While it is open, nobody else can take it.
    let file = open_at(last, cache_bytes, Look::Through, is_stale(last, all)).ok()?;
    // Another that starts now may have made the file meanwhile.
    renameat_with(CWD, last, CWD, path, RenameFlags::NOREPLACE).ok()?;
    tracing::info!(from = %last.display(), to = %path.display(), "the copies that stood in for a missing file take its place");
    Some(file)
}

/// The configured file, and those that may stand in for it: `robots.redb`, `robots.1.redb`, and so on.
pub(super) fn candidates(path: &Path) -> impl Iterator<Item = PathBuf> {
    let beside = |number: usize| {
        let extension = path.extension().map_or_else(
            || number.to_string(),
            |extension| format!("{number}.{}", extension.to_string_lossy()),
        );
        path.with_extension(extension)
    };
    std::iter::once(path.to_owned()).chain((1..=STAND_INS).map(beside))
}

fn open_patiently(path: &Path, all: &[PathBuf], cache_bytes: usize, patience: Duration) -> Result<CopyFile, Why> {
    let started = Instant::now();
    loop {
        // Whoever holds it may leave it behind.
        match open_at(path, cache_bytes, Look::Through, is_stale(path, all)) {
            Err(Why::Locked) if started.elapsed() < patience => std::thread::sleep(PAUSE),
            opened => return opened,
        }
    }
}

/// Opens the file at `path`, or makes it.
pub(super) fn open_at(path: &Path, cache_bytes: usize, look: Look, stale: bool) -> Result<CopyFile, Why> {
    if let Some(folder) = path.parent() {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
            _ => error,
        })?;
    }
    let mut options = OpenOptions::new();
    // It tells where the bots go: not for every user of the machine to read.
    options.read(true).write(true).mode(0o640);
    let (file, is_new) = match options.clone().create_new(true).open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (options.open(path)?, false),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file").into());
    }
    refuse_later_format(&file)?;
    let opened = guarded(|| open_file(file, path, cache_bytes, look, stale));
    if is_new && opened.as_ref().is_err_and(|error| !error.is_lock()) {
        // What was not there before holds nothing, and would be taken for a damaged one next time.
        let _ = fs::remove_file(path);
    }
    Ok(opened?)
}

/// Whether another of the files was written to after the one at `path`, which then says nothing of the
/// last answers.
pub(super) fn is_stale(path: &Path, all: &[PathBuf]) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(own) = written(path) else {
        return false;
    };
    if is_marked(own) {
        return true;
    }
    let mut others = all.iter().filter(|other| *other != path);
    others.any(|other| written(other).is_some_and(|other| other > own))
}

/// Marks a file as one that could not take what was known last, by the last digits of its time: that needs
/// no room on a full disk, and goes with the next write. Beside others it is as old as it was.
pub(super) fn mark_behind(path: &Path) {
    let mark = |file: File| {
        let since = file.metadata()?.modified()?.duration_since(SystemTime::UNIX_EPOCH);
        let second = Duration::from_secs(since.unwrap_or_default().as_secs());
        file.set_modified(SystemTime::UNIX_EPOCH + second + MARK)
    };
    if let Err(error) = File::options().append(true).open(path).and_then(mark) {
        tracing::debug!(%error, "a file that is behind the times could not be marked as such");
    }
}

fn is_marked(written: SystemTime) -> bool {
    let since = written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.subsec_nanos() == MARK.subsec_nanos()
}

/// The database takes a format that it does not know for damage.
fn refuse_later_format(file: &File) -> Result<(), Why> {
    let mut start = [0; FORMAT_AT + 1];
    let known =
        file.read_exact_at(&mut start, 0).is_err() || !start.starts_with(MAGIC) || !LATER.contains(&start[FORMAT_AT]);
    match known {
        true => Ok(()),
        false => Err(Why::Newer(format!(
            "it was written by a later robotgate, in format {} of its database",
            start[FORMAT_AT]
        ))),
    }
}

fn open_file(file: File, path: &Path, cache_bytes: usize, look: Look, stale: bool) -> Result<CopyFile, FileError> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let shown = path.display().to_string();
    builder.set_repair_callback(move |repair| {
        tracing::info!(
            path = shown,
            done = repair.progress(),
            "the copies on disk are being repaired"
        );
    });
    let mut database = builder.create_file(file)?;
    if stale {
        // Before anything that takes long: opening the file has made it look like the latest.
        CopyFile::distrust(&database)?;
    }
    if look == Look::Through && !CopyFile::check(&mut database)? {
        tracing::warn!(path = %path.display(), "the copies on disk were damaged and have been repaired");
    }
    CopyFile::new(database)
}

/// Runs `work` on the database, which may panic on bytes that it did not write.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // What it would print is told where it becomes an error.
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                loud(panic);
            }
        }));
    });
    QUIET.set(true);
    // Nobody sees what a panic left half done: the file is closed then.
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    done.unwrap_or_else(|panic| Err(FileError::Panic(text_of(&*panic))))
}

thread_local! {
    /// Whether this thread works on a database.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "for no reason that it tells".to_owned())
}

// === impl FileError ===

impl FileError {
    /// Whether another process has the file open.
    pub(super) fn is_lock(&self) -> bool {
        matches!(self, Self::Database(DatabaseError::DatabaseAlreadyOpen))
    }

    /// Whether the file holds what it should not, and would also after it is opened again.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Panic(_) | Self::Database(DatabaseError::RepairAborted) => true,
            _ => match self.storage() {
                Some(StorageError::Corrupted(_)) => true,
                Some(StorageError::Io(error)) => {
                    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
                }
                Some(_) => false,
                // Tables that are of other types than these.
                None => matches!(self, Self::Table(_)),
            },
        }
    }

    /// What went wrong beneath, wherever it came up.
    fn storage(&self) -> Option<&StorageError> {
        match self {
            Self::Storage(error)
            | Self::Database(DatabaseError::Storage(error))
            | Self::Transaction(TransactionError::Storage(error))
            | Self::Table(TableError::Storage(error))
            | Self::Commit(CommitError::Storage(error)) => Some(error),
            _ => None,
        }
    }
}

impl From<FileError> for Why {
    fn from(error: FileError) -> Self {
        match error {
            error if error.is_lock() => Why::Locked,
            error @ FileError::Version(_) => Why::Newer(error.to_string()),
            error @ FileError::Database(DatabaseError::UpgradeRequired(_)) => Why::Older(error.to_string()),
            error if error.is_damage() => Why::Damaged(error.to_string()),
            FileError::Io(error)
            | FileError::Storage(StorageError::Io(error))
            | FileError::Database(DatabaseError::Storage(StorageError::Io(error))) => Why::Io(error),
            other => Why::Io(io::Error::other(other)),
        }
    }
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Self {
        Why::Io(error)
    }
}

impl From<Why> for FileError {
    fn from(why: Why) -> Self {
        match why {
            Why::Locked => DatabaseError::DatabaseAlreadyOpen.into(),
            Why::Newer(error) | Why::Older(error) | Why::Damaged(error) => StorageError::Corrupted(error).into(),
            Why::Io(error) => error.into(),
        }
    }
}

// === impl Why ===

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Locked => f.write_str("another process has it open; give each robotgate a cache.path of its own"),
            Why::Newer(error) => write!(f, "{error}; use a robotgate that is as new, or another cache.path"),
            Why::Older(error) => write!(f, "{error}; move it away to start with a new one"),
            Why::Damaged(error) => write!(f, "it is damaged ({error}); mend it or move it away"),
            Why::Io(error) => write!(f, "{error}; check the path, its permissions and the room on the disk"),
        }
    }
}

// === impl NoFile ===

impl fmt::Display for NoFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Unusable { path, why }) = self.0.first() else {
            return f.write_str("no file was tried");
        };
        write!(
            f,
            "the copies cannot be kept in {} ({why}), nor in a file beside it",
            path.display()
        )
    }
}

/// What the time of a file that is marked as behind has beyond whole seconds.
const MARK: Duration = Duration::from_nanos(1);
/// Files beside the configured one.
const STAND_INS: usize = 9;
/// How a database begins, where the version of its format stands, and those that can come.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
const FORMAT_AT: usize = 64;
const LATER: std::ops::RangeInclusive<u8> = 4..=19;
/// How long a locked file is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
