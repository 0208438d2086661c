//! Opens the file of the copies. Renames a damaged file to a dated name and starts a new one.
//!
//! It never deletes a file that another program created, and never touches a file that another process has open.

use std::{
    any::Any,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use redb::Builder;

use super::file::{CopyFile, FileError};
use crate::text::Timestamp;

/// Whether to check the whole file on opening, which reads all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Full,
    Skip,
}

/// Opens the file like [`open`], and waits a little if it is locked: the process that has it open might be about to
/// end.
pub(super) fn open_patiently(path: &Path, cache_bytes: usize, check: Check) -> Result<CopyFile, FileError> {
    let started = Instant::now();
    loop {
        match open(path, cache_bytes, check) {
            Err(FileError::Locked) if started.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            opened => return opened,
        }
    }
}

/// Opens the file at `path` or creates it. Moves a damaged file aside first.
fn open(path: &Path, cache_bytes: usize, check: Check) -> Result<CopyFile, FileError> {
    if let Some(folder) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
            _ => error,
        })?;
    }
    let mut options = OpenOptions::new();
    // The file reveals which sites the bots visit, so not every user may read it.
    options.read(true).write(true).mode(0o640);
    let (file, is_new) = match options.clone().create_new(true).open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (options.open(path)?, false),
        Err(error) => return Err(error.into()),
    };
    let same = file.try_clone()?;
    match open_database(file, path, cache_bytes, check) {
        Err(FileError::Damaged(what)) if !is_new => {
            move_aside(path, &same, &what)?;
            open(path, cache_bytes, check)
        }
        Err(error) if is_new && !matches!(error, FileError::Locked) => {
            // The file is empty. If it stayed, the next start would treat it as damaged.
            let _ = fs::remove_file(path);
            Err(error)
        }
        opened => opened,
    }
}

/// Opens the file at `path` without creating or repairing it.
pub(super) fn open_existing(path: &Path, cache_bytes: usize) -> Result<CopyFile, FileError> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    open_database(file, path, cache_bytes, Check::Skip)
}

fn open_database(file: File, path: &Path, cache_bytes: usize, check: Check) -> Result<CopyFile, FileError> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file").into());
    }
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let shown = path.display().to_string();
    builder.set_repair_callback(move |repair| {
        tracing::info!(
            path = shown,
            done = repair.progress(),
            "repairing the file of cached robots.txt files"
        );
    });
    guarded(|| {
        let mut database = builder.create_file(file)?;
        if check == Check::Full && !database.check_integrity()? {
            tracing::warn!(path = %path.display(), "the file of cached robots.txt files was damaged and has been repaired");
        }
        CopyFile::new(database)
    })
}

/// Renames a damaged file that no other process has open.
fn move_aside(path: &Path, damaged: &File, what: &str) -> Result<(), FileError> {
    let stays = |why: String| FileError::Stays {
        what: what.to_owned(),
        why,
    };
    // While this process holds the lock, others find the file locked and retry.
    damaged.try_lock().map_err(|_| FileError::Locked)?;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let there = fs::metadata(path).ok().map(identity);
    if there != Some(identity(damaged.metadata()?)) {
        // Another process has already moved the file aside.
        return Ok(());
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".damaged-");
    let beside = PathBuf::from(beside);
    let earlier = count_named_like(&beside).map_err(|error| stays(error.to_string()))?;
    if earlier >= MAX_ASIDE {
        return Err(stays(format!(
            "there are already {earlier} damaged files next to it: check the disk for errors, then delete them"
        )));
    }
    let mut aside = beside.into_os_string();
    // Some programs take the part before a colon for a host name.
    aside.push(Timestamp(SystemTime::now()).to_string().replace(':', ""));
    fs::rename(path, &aside)
        .map_err(|error| stays(format!("{error}; move it away, or let robotgate write to its folder")))?;
    tracing::error!(
        path = %path.display(),
        moved_to = %aside.display(),
        "the file of cached robots.txt files was damaged ({what}). robotgate renamed it, so that you can inspect or \
         delete it, and started a new one. It fetches each robots.txt again when it is needed"
    );
    Ok(())
}

/// Counts the files in the folder of `start` whose names begin with the file name of `start`.
fn count_named_like(start: &Path) -> io::Result<usize> {
    let folder = start.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = start.file_name().unwrap_or_default().as_encoded_bytes();
    let mut count = 0;
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        count += usize::from(entry?.file_name().as_encoded_bytes().starts_with(name));
    }
    Ok(count)
}

/// Runs `work` on the database and reports a panic as damage: the database can panic on bytes that it did not write.
/// The standard library also prints the panic.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
    // The file is closed after a panic, so its half-done work is never used.
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(FileError::Damaged(text_of(&*panic))))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "reading it failed".to_owned())
}

/// Maximum number of damaged files next to the path, so that a failing disk does not fill up with them.
const MAX_ASIDE: usize = 8;
/// How long to wait for a locked file.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
