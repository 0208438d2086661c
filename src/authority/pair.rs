//! The two files of an authority. It never overwrites or removes either, never judges their contents, and never leaves
//! a half-made pair that the next start cannot complete.
//!
//! Creating a pair takes several steps in the file system. A process can be killed between any two, or run at the same
//! time as another one. So, under a lock on the key's directory:
//!
//! 1. It writes both files in full under temporary names and flushes them to the disk.
//! 2. It links each to its final name, which fails if that name is taken.
//! 3. It removes the temporary names.
//!
//! After a kill in step 1, no final name exists, and the next start creates another pair. After a kill in step 2, one
//! final name exists next to the temporary file of the other, which the next start links. After a kill in step 3, the
//! pair is complete, and the next start removes what is left.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use super::{create::NewPair, error::AuthorityError};
use crate::files::{self, SecretError, create_unfinished, folder_of, unfinished};

/// The paths of an authority's two files.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    certificate: &'a Path,
    key: &'a Path,
}

/// Which of the two files exist.
pub(super) enum Presence<'a> {
    Both,
    Half { present: &'a Path, missing: &'a Path },
    Neither,
}

/// The contents of the two files, and their paths for error messages.
pub(super) struct Contents<'a> {
    pub(super) certificate_path: &'a Path,
    pub(super) certificate: Vec<u8>,
    pub(super) key_path: &'a Path,
    pub(super) key: Vec<u8>,
}

// === impl Pair ===

impl<'a> Pair<'a> {
    pub(super) fn new(certificate: &'a Path, key: &'a Path) -> Self {
        Self { certificate, key }
    }

    pub(super) fn presence(&self) -> Result<Presence<'a>, AuthorityError> {
        Ok(match (exists(self.certificate)?, exists(self.key)?) {
            (true, true) => Presence::Both,
            (false, false) => Presence::Neither,
            (true, false) => Presence::Half {
                present: self.certificate,
                missing: self.key,
            },
            (false, true) => Presence::Half {
                present: self.key,
                missing: self.certificate,
            },
        })
    }

    /// Returns [`Self::presence`], but waits while another process is creating the pair.
    pub(super) fn settled_presence(&self) -> Result<Presence<'a>, AuthorityError> {
        let presence = self.presence()?;
        if let Presence::Half { .. } = presence {
            // Without the lock, the result can be slightly out of date, which is better than an error.
            let _lock = self.lock();
            return self.presence();
        }
        Ok(presence)
    }

    pub(super) fn read(&self) -> Result<Contents<'a>, AuthorityError> {
        Ok(Contents {
            certificate_path: self.certificate,
            certificate: files::read(self.certificate).map_err(AuthorityError::read(self.certificate))?,
            key_path: self.key,
            key: read_key(self.key)?,
        })
    }

    /// Reads a pair of which the file `missing` still has its temporary name. Returns `None` if either file cannot be
    /// read.
    pub(super) fn read_unfinished(&self, missing: &Path) -> Option<Contents<'a>> {
        let path = |path: &Path| {
            if path == missing {
                unfinished(path)
            } else {
                path.to_owned()
            }
        };
        Some(Contents {
            certificate_path: self.certificate,
            certificate: files::read(&path(self.certificate)).ok()?,
            key_path: self.key,
            key: read_key(&path(self.key)).ok()?,
        })
    }

    pub(super) fn make_directories(&self) -> Result<(), AuthorityError> {
        for path in [self.key, self.certificate].map(folder_of) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(AuthorityError::write(path))?;
        }
        Ok(())
    }

    /// Waits for the lock that a process holds while it creates a pair.
    pub(super) fn lock(&self) -> Result<File, AuthorityError> {
        let folder = folder_of(self.key);
        let lock = files::lock(folder).map_err(AuthorityError::read(folder))?;
        lock.ok_or_else(|| AuthorityError::Locked(folder.to_owned()))
    }

    /// Writes a new pair. The caller holds the lock.
    pub(super) fn create(&self, new: &NewPair) -> Result<(), AuthorityError> {
        if self.certificate == self.key {
            return Err(AuthorityError::SamePath(self.key.to_owned()));
        }
        write_unfinished(self.key, new.key_pem.as_bytes(), 0o600)?;
        write_unfinished(self.certificate, new.certificate_pem.as_bytes(), 0o644)?;
        self.flush_directories()?;
        link(self.key)?;
        link(self.certificate)?;
        self.flush_directories()?;
        self.remove_unfinished();
        Ok(())
    }

    /// Links `missing` to its final name. The caller holds the lock and has checked the unfinished file.
    pub(super) fn finish(&self, missing: &Path) -> Result<(), AuthorityError> {
        link(missing)?;
        self.flush_directories()?;
        self.remove_unfinished();
        Ok(())
    }

    /// Removes temporary names left by a creation that was killed in its last step.
    pub(super) fn tidy(&self) {
        let left = |path| unfinished(path).symlink_metadata().is_ok();
        if (left(self.key) || left(self.certificate))
            && let Ok(_lock) = self.lock()
        {
            self.remove_unfinished();
        }
    }

    fn remove_unfinished(&self) {
        for path in [self.key, self.certificate] {
            let path = unfinished(path);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove a leftover temporary file");
                }
                _ => {}
            }
        }
    }

    fn flush_directories(&self) -> Result<(), AuthorityError> {
        for path in [self.key, self.certificate].map(folder_of) {
            File::open(path)
                .and_then(|directory| directory.sync_all())
                .map_err(AuthorityError::write(path))?;
        }
        Ok(())
    }
}

/// Returns whether the path exists, even as a dangling symbolic link.
fn exists(path: &Path) -> Result<bool, AuthorityError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(AuthorityError::read(path)(error)),
    }
}

fn read_key(path: &Path) -> Result<Vec<u8>, AuthorityError> {
    files::read_secret(path).map_err(|error| match error {
        SecretError::Read { path, source } => AuthorityError::Read { path, source },
        SecretError::Exposed(exposure) => AuthorityError::Exposed(exposure),
    })
}

fn write_unfinished(path: &Path, contents: &[u8], mode: u32) -> Result<(), AuthorityError> {
    let path = unfinished(path);
    let write = || {
        let mut file = create_unfinished(&path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(contents)?;
        file.sync_all()
    };
    write().map_err(AuthorityError::write(&path))
}

/// Gives an unfinished file its final name unless that name is taken.
fn link(path: &Path) -> Result<(), AuthorityError> {
    let unfinished = unfinished(path);
    match fs::hard_link(&unfinished, path) {
        Ok(()) => Ok(()),
        // Some file systems have no hard links. Renaming would overwrite, but the lock keeps other proxies away.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !exists(path)? => {
            fs::rename(&unfinished, path).map_err(AuthorityError::write(path))
        }
        Err(error) => Err(AuthorityError::write(path)(error)),
    }
}
