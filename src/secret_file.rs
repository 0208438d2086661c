//! Files that hold secrets. One that others can read is no secret, and is not read.
//!
//! It never says what is in a file.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Why a secret cannot be had. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "{path} is open to others (mode {mode:03o}), so what it holds is no secret: chmod {strict:03o} {path}",
        path = path.display(),
        mode = mode & 0o777,
        strict = mode & 0o640
    )]
    Open { path: PathBuf, mode: u32 },
    #[error("cannot read {}: {source}{}", path.display(), hint(source))]
    Read { path: PathBuf, source: io::Error },
}

/// Reads a file that its owner may read and write, its group at most read, and others not at all. A group is how a
/// service gets at what only root may write.
///
/// # Errors
/// Others have more; the file cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, SecretError> {
    let failed = |source| SecretError::Read {
        path: path.to_owned(),
        source,
    };
    // The file that is looked at is the file that is read.
    let mut file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(SecretError::Open {
            path: path.to_owned(),
            mode,
        });
    }
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).map_err(failed)?;
    Ok(contents)
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; robotgate's user has to be its owner, or in its group with the mode 640",
        _ => "",
    }
}

/// All of others', and of the group's all but reading.
const OTHERS: u32 = 0o037;

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
}
