//! Files that hold secrets. One that others can read is no secret, and is not read.
//!
//! It never says what is in a file.

use std::{
    fs::Metadata,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::regular_file;

/// Why a secret cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot read {}: {source}{}", path.display(), hint(source))]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Exposed(#[from] Exposure),
}

/// Who has rights to a file that they should not have. Its `Display` says what to run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path}: its mode is {mode:04o}, so {who}; run: chmod {kept:o} {path}",
    path = path.display(),
    who = who(*mode),
    kept = mode & 0o640
)]
pub struct Exposure {
    path: PathBuf,
    mode: u32,
}

/// Reads a file that its owner may read and write, its group at most read, and others not at all. A group is how a
/// service gets at what only root may write.
///
/// # Errors
/// Others have more; the file cannot be read, or is no regular file.
pub fn read(path: &Path) -> Result<Vec<u8>, SecretError> {
    read_with(path).map(|(contents, _)| contents)
}

/// As [`read`], with what else is known of the file that was read.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: &Path) -> Result<(Vec<u8>, Metadata), SecretError> {
    let failed = |source| SecretError::Read {
        path: path.to_owned(),
        source,
    };
    let (mut file, metadata) = regular_file::open(path).map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & (OTHERS | GROUP_CHANGES) != 0 {
        let path = path.to_owned();
        return Err(Exposure { path, mode }.into());
    }
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).map_err(failed)?;
    Ok((contents, metadata))
}

/// What its mode allows that it should not.
fn who(mode: u32) -> &'static str {
    match mode & OTHERS {
        0 => "its group can change it",
        0o1 => "every user can execute it",
        0o2 | 0o3 => "every user can change it",
        0o4 | 0o5 => "every user can read it",
        _ => "every user can read and change it",
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; the user that robotgate runs as has to be its owner, or in its group with the mode 640"
        }
        _ => "",
    }
}

const OTHERS: u32 = 0o007;
/// To write and to execute.
const GROUP_CHANGES: u32 = 0o030;

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn what_others_can_read_is_refused_with_the_command_that_mends_it() {
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
            match (read(&path), mended) {
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
        let missing = read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(
            missing.contains("none") && missing.contains("No such file"),
            "{missing}"
        );
    }

    #[test]
    fn a_pipe_or_a_folder_is_refused_and_not_waited_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        for path in [&*pipe, folder.path(), Path::new("/dev/null")] {
            let error = read(path).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("cannot read {}: it is not a regular file", path.display())
            );
        }
    }
}
