//! Opens the redb databases of [`crate::store`] and [`crate::evidence`]. Renames a damaged file and starts a new one.
//! Also records why a file cannot be written.
//!
//! This module never deletes a file that another program created, and never changes a database that another process
//! has open.

use std::{
    any::Any,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use redb::{Builder, Database};

use crate::{
    files::{self, may_make_in},
    text::Timestamp,
};

pub(crate) struct DatabaseKind<T> {
    /// What log messages call the file, such as "the cache file".
    pub(crate) name: &'static str,
    /// What the loss of a damaged file means: a sentence for the log, without its full stop.
    pub(crate) loss: &'static str,
    /// Creates the tables of a new database and checks those of an old one.
    pub(crate) wrap: fn(Database) -> Result<T, FileError>,
}

/// Whether to check the whole file on opening, which reads all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Full,
    Skip,
}

/// Why nothing can be written to a database at present, and what to do. The text names no path.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Mutex<Option<String>>);

/// How long to wait before the next attempt to write, after errors.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    errors: u32,
    until: Option<Instant>,
}

/// Checks whether this process may read and write the file at `path`, or create it. Does not look for damage.
pub(crate) fn check(path: &Path) -> Result<(), FileError> {
    let looked = match files::open_to_write(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => may_make_in(path.parent().unwrap_or(Path::new("/"))),
        opened => opened,
    };
    Ok(looked?)
}

/// Opens the file, or creates it if it is missing. If it is damaged, renames it and creates a new one. Waits a little
/// if another process has the file open.
pub(crate) fn open_patiently<T>(
    kind: &DatabaseKind<T>,
    path: &Path,
    cache_bytes: usize,
    check: Check,
) -> Result<T, FileError> {
    let started = Instant::now();
    loop {
        match open(kind, path, cache_bytes, check) {
            Err(FileError::Locked) if started.elapsed() < PATIENCE => thread::sleep(PAUSE),
            opened => return opened,
        }
    }
}

fn open<T>(kind: &DatabaseKind<T>, path: &Path, cache_bytes: usize, check: Check) -> Result<T, FileError> {
    if let Some(folder) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
            _ => error,
        })?;
    }
    let mut options = OpenOptions::new();
    // The file shows which sites the bots visit, so not all users may read it.
    options.read(true).write(true).mode(0o640);
    let (file, is_new) = match options.clone().create_new(true).open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (options.open(path)?, false),
        Err(error) => return Err(error.into()),
    };
    let same = file.try_clone()?;
    match open_database(kind, file, path, cache_bytes, check) {
        Err(FileError::Damaged(what)) if !is_new => {
            move_aside(kind, path, &same, &what)?;
            open(kind, path, cache_bytes, check)
        }
        Err(error) if is_new && !matches!(error, FileError::Locked) => {
            // Remove the incomplete file, which the next start would treat as damaged.
            let _ = fs::remove_file(path);
            Err(error)
        }
        opened => opened,
    }
}

/// Opens the file at `path`, but never creates or renames it. If a process was killed while it had the file open, redb
/// repairs the file.
pub(crate) fn open_existing<T>(kind: &DatabaseKind<T>, path: &Path, cache_bytes: usize) -> Result<T, FileError> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    open_database(kind, file, path, cache_bytes, Check::Skip)
}

fn open_database<T>(
    kind: &DatabaseKind<T>,
    file: File,
    path: &Path,
    cache_bytes: usize,
    check: Check,
) -> Result<T, FileError> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file").into());
    }
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let (shown, name) = (path.display().to_string(), kind.name);
    builder.set_repair_callback(move |repair| {
        tracing::info!(path = shown, done = repair.progress(), "repairing {name}");
    });
    guarded(|| {
        let mut database = builder.create_file(file)?;
        if check == Check::Full && !database.check_integrity()? {
            tracing::warn!(path = %path.display(), "{name} was damaged and has been repaired");
        }
        (kind.wrap)(database)
    })
}

/// Renames a damaged file, so that a new one can take its place. Fails if another process has the damaged file open.
fn move_aside<T>(kind: &DatabaseKind<T>, path: &Path, damaged: &File, what: &str) -> Result<(), FileError> {
    let stays = |why: String| FileError::Stays {
        what: what.to_owned(),
        why,
    };
    // While this process holds the lock, no other robotgate opens or renames the file.
    damaged.try_lock().map_err(|_| FileError::Locked)?;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let there = fs::metadata(path).ok().map(identity);
    if there != Some(identity(damaged.metadata()?)) {
        // Another process has renamed the damaged file already.
        return Ok(());
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".damaged-");
    let beside = PathBuf::from(beside);
    let earlier = count_named_like(&beside).map_err(|error| stays(error.to_string()))?;
    if earlier >= MAX_ASIDE {
        return Err(stays(format!(
            "there are already {earlier} damaged files next to it: check the disk for errors, then delete the damaged \
             files"
        )));
    }
    let mut aside = beside.into_os_string();
    // The time has no colons, because some programs treat the text before a colon as a host name.
    aside.push(Timestamp(SystemTime::now()).to_string().replace(':', ""));
    fs::rename(path, &aside).map_err(|error| stays(format!("{error}; let robotgate write to its folder")))?;
    tracing::error!(
        path = %path.display(),
        moved_to = %aside.display(),
        "{} was damaged ({what}). robotgate renamed it, so that you can inspect or delete it, and starts a new one. {}",
        kind.name,
        kind.loss
    );
    Ok(())
}

fn count_named_like(start: &Path) -> io::Result<usize> {
    let folder = start.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = start.file_name().unwrap_or_default().as_encoded_bytes();
    let mut count = 0;
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        count += usize::from(entry?.file_name().as_encoded_bytes().starts_with(name));
    }
    Ok(count)
}

/// Runs `work` and turns a panic into [`FileError::Damaged`]. redb can panic on bytes that it did not write.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
    // `AssertUnwindSafe` is right: the file is closed after a panic, so half-done changes are never used.
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(FileError::Damaged(text_of(&*panic))))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "reading it failed".to_owned())
}

/// Drops references to a database. Dropping the last one writes to the file. Ignores a panic of redb.
pub(crate) fn close<T>(database: impl IntoIterator<Item = T>) {
    let _ = guarded(|| {
        database.into_iter().for_each(drop);
        Ok(())
    });
}

// === impl Trouble ===

impl Trouble {
    pub(crate) fn text(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Records and logs why nothing can be written, unless the same text is already recorded.
    pub(crate) fn begin(&self, path: &Path, text: String) {
        let mut trouble = self.0.lock();
        if trouble.as_ref() != Some(&text) {
            tracing::error!(path = %path.display(), "{text}");
            *trouble = Some(text);
        }
    }

    /// Records that writing works. Logs `message` if it did not work before.
    pub(crate) fn end(&self, path: &Path, message: &str) {
        let ended = self.0.lock().take();
        if ended.is_some() {
            tracing::warn!(path = %path.display(), "{message}");
        }
    }
}

// === impl Pause ===

impl Pause {
    pub(crate) fn lengthen(&mut self) {
        self.until = Some(Instant::now() + RETRY * (1 << self.errors));
        self.errors = (self.errors + 1).min(MAX_DOUBLINGS);
    }

    pub(crate) fn rest(&self) -> Duration {
        self.until
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }
}

/// Why the file of a database cannot be used. The message says what to do, unless that depends on the caller.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("another process keeps it open")]
    Locked,
    #[error("a newer robotgate wrote it ({0}); upgrade this robotgate")]
    Later(String),
    #[error("it is damaged ({0})")]
    Damaged(String),
    #[error("it is damaged ({what}) and cannot be moved aside: {why}")]
    Stays { what: String, why: String },
    #[error("{}", with_advice(.0))]
    Io(#[from] io::Error),
    /// The file was closed after an error and is not open again yet, or the program is ending.
    #[error("it is closed, after an error or because robotgate is stopping")]
    Closed,
}

/// Returns the operating system's error message, and what people can do unless the message suggests it.
fn with_advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => format!("{error}; check the permissions of the file and its folder"),
        _ => error.to_string(),
    }
}

// === impl FileError ===

impl FileError {
    /// Returns what people can do if a command that only reads the file fails: a text to append to the message.
    pub fn advice_for_reader(&self) -> &'static str {
        match self {
            Self::Locked => "; try again later",
            _ => "",
        }
    }
}

impl From<redb::Error> for FileError {
    fn from(error: redb::Error) -> Self {
        use redb::Error as E;
        match error {
            E::DatabaseAlreadyOpen => Self::Locked,
            E::Corrupted(what) if is_later_format(&what) => Self::Later(what),
            E::Corrupted(what) => Self::Damaged(what),
            E::Io(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                Self::Damaged(match error.to_string() {
                    text if text.contains("magic number") => "it does not begin like a file of robotgate".to_owned(),
                    text => text,
                })
            }
            E::Io(error) => Self::Io(error),
            E::PreviousIo | E::DatabaseClosed | E::LockPoisoned(_) | E::TransactionPoisoned => {
                Self::Io(io::Error::other("reading or writing it failed before"))
            }
            // The other errors that can occur report an older file format, or tables that are missing or of other
            // types. No robotgate has written such a file, so it is damaged.
            error => Self::Damaged(error.to_string()),
        }
    }
}

/// redb reports the format of a later version as corruption. If the number is implausible, the file really is damaged.
fn is_later_format(what: &str) -> bool {
    let found = what
        .strip_prefix("Expected file format version")
        .and_then(|what| what.rsplit(' ').next());
    found
        .and_then(|found| found.parse().ok())
        .is_some_and(|found: u8| found < 20)
}

macro_rules! from_parts {
    ($($part:ident),*) => {
        $(impl From<redb::$part> for FileError {
            fn from(error: redb::$part) -> Self {
                redb::Error::from(error).into()
            }
        })*
    };
}

from_parts!(DatabaseError, TransactionError, TableError, StorageError, CommitError);

/// How long to wait after the first failed write.
const RETRY: Duration = Duration::from_secs(1);
/// The wait after failed writes is doubled at most this many times.
const MAX_DOUBLINGS: u32 = 4;
/// Maximum number of renamed damaged files of one database. Without a limit, a failing disk could fill up with them.
const MAX_ASIDE: usize = 8;
/// How long to wait for a file that another process has open.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
