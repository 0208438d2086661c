//! Reads regular files, and helps to replace whole files. Refuses pipes, because a pipe without a writer could block a
//! reload forever. Refuses a file with a secret if other users have access to it, or if its group can do more
//! than read it.

use std::{
    ffi::OsString,
    fmt::{self, Display},
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::{Access, OFlags};

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot read {}: {}", path.display(), Unreadable(source))]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Exposed(#[from] Exposure),
}

/// The mode of a file with a secret gives permissions to users who must not have them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path}: its mode is {mode:04o}, so {who}: run `chmod {kept:o} {path}`",
    path = path.display(),
    who = who(*mode),
    kept = mode & 0o640
)]
pub struct Exposure {
    path: PathBuf,
    mode: u32,
}

/// Writes why a file cannot be read and what to do about it. The caller writes the name of the file before this text.
pub(crate) struct Unreadable<'a>(pub(crate) &'a io::Error);

/// Opens a file for reading and returns it with its metadata. Fails for folders, pipes, sockets and devices.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .read(true)
        // Without this flag, opening a pipe blocks until it has a writer. Regular files ignore the flag.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // Read the metadata of the open file, because the path may already name another file.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, metadata))
}

/// Checks that an existing regular file can be opened for reading and writing.
pub(crate) fn open_to_write(path: &Path) -> io::Result<()> {
    open(path)?;
    OpenOptions::new().read(true).write(true).open(path).map(drop)
}

/// Reads a whole regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, _) = open(path)?;
    let mut contents = Vec::new();
    file.read_to_end(&mut contents)?;
    Ok(contents)
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Takes the lock that a process must hold while it replaces files in `folder`, until the returned file is dropped.
/// Returns `None` if the lock is not free within ten seconds.
pub(crate) fn lock(folder: &Path) -> io::Result<Option<File>> {
    let lock = File::open(folder)?;
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns the name that a new file has until it is complete and is renamed to `path`.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".robotgate-unfinished");
    path.with_file_name(name)
}

/// Creates the file `unfinished`, which only its owner can read. If such a file exists, replaces it, so the caller must
/// hold a lock that keeps other processes from writing it.
pub(crate) fn create_unfinished(unfinished: &Path) -> io::Result<File> {
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(unfinished)
}

/// Checks whether this process may create a file in `folder`, which need not exist yet. Creates nothing.
pub(crate) fn may_make_in(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|folder| folder.exists());
    // A relative path such as `a/b` can be without an existing ancestor.
    let there = there.unwrap_or(Path::new("."));
    // Root passes the check below even for an executable file.
    if !there.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// Returns whether a call failed because this process may not open more files.
pub(crate) fn hits_file_limit(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// Reads a file with a secret, to which other users must have no access. Its group may read it, so that a service can
/// read a file that only root can change.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, SecretError> {
    read_secret_with(path).map(|(contents, _)| contents)
}

/// Reads a secret like [`read_secret`] and returns it with the metadata of the file.
pub fn read_secret_with(path: &Path) -> Result<(Vec<u8>, Metadata), SecretError> {
    let failed = |source| SecretError::Read {
        path: path.to_owned(),
        source,
    };
    let (mut file, metadata) = open(path).map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & (OTHERS | GROUP_CHANGES) != 0 {
        let path = path.to_owned();
        return Err(Exposure { path, mode }.into());
    }
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).map_err(failed)?;
    Ok((contents, metadata))
}

fn who(mode: u32) -> &'static str {
    match mode & OTHERS {
        0 => "its group can do more than read it",
        0o1 => "every user can execute it",
        0o2 | 0o3 => "every user can change it",
        0o4 | 0o5 => "every user can read it",
        _ => "every user can read and change it",
    }
}

// === impl Unreadable ===

impl Display for Unreadable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.kind() == ErrorKind::NotFound {
            return f.write_str("there is no such file; check the path");
        }
        let text = self.0.to_string();
        f.write_str(text.split(" (os error ").next().unwrap_or(&text))?;
        match self.0.kind() {
            ErrorKind::PermissionDenied => write!(
                f,
                ": the user {} cannot read the file or cannot enter a folder above it",
                rustix::process::geteuid()
            ),
            ErrorKind::IsADirectory => f.write_str("; name a file in it"),
            _ => Ok(()),
        }
    }
}

/// These tries take ten seconds in all. Other processes hold the lock for milliseconds.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const OTHERS: u32 = 0o007;
/// The permissions of the group to write and to execute.
const GROUP_CHANGES: u32 = 0o030;

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_the_chmod_to_run() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "secret").unwrap();
        for (mode, mended) in [
            (0o600, None),
            (0o640, None),
            (0o400, None),
            (0o644, Some("chmod 640")),
            (0o604, Some("chmod 600")),
            (0o660, Some("chmod 640")),
            (0o777, Some("chmod 640")),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match (read_secret(&path), mended) {
                (Ok(contents), None) => assert_eq!(contents, b"secret"),
                (Err(error), Some(command)) => {
                    let error = error.to_string();
                    assert!(
                        error.contains(command) && !error.contains("secret,"),
                        "{mode:o}: {error}"
                    );
                }
                (found, _) => panic!("{mode:o}: {found:?}"),
            }
        }
        let missing = read_secret(&folder.path().join("none")).unwrap_err().to_string();
        assert!(
            missing.contains("none") && missing.contains("there is no such file"),
            "{missing}"
        );
    }

    #[test]
    fn a_pipe_or_a_folder_is_refused_without_waiting() {
        let folder = tempfile::TempDir::new().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        for path in [&*pipe, folder.path(), Path::new("/dev/null")] {
            let error = read_secret(path).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("cannot read {}: it is not a regular file", path.display())
            );
        }
    }

    #[test]
    fn nothing_can_be_made_below_a_file() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = may_make_in(&file.join("a/b")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        may_make_in(&folder.path().join("a/b")).unwrap();
    }

    #[test]
    fn an_io_error_gives_its_cause_and_advice_without_a_number() {
        let user = rustix::process::geteuid();
        let denied =
            format!("Permission denied: the user {user} cannot read the file or cannot enter a folder above it");
        for (number, text) in [
            (2, "there is no such file; check the path"),
            (13, &*denied),
            (21, "Is a directory; name a file in it"),
            (5, "Input/output error"),
        ] {
            assert_eq!(Unreadable(&io::Error::from_raw_os_error(number)).to_string(), text);
        }
    }
}
