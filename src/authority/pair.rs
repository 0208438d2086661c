//! The two files of an authority: its certificate and its key. This module never overwrites or removes them, and does
//! not judge what they contain.
//!
//! The process can be killed at any time while it creates the pair, so it works in three steps. During all of them, it
//! holds a lock on the key's directory, because another process can try to create the same pair:
//!
//! 1. It writes both files completely under temporary names and flushes them to the disk.
//! 2. It links each to its final name, which fails if that name exists already.
//! 3. It removes the temporary names.
//!
//! If the process is killed, the next start repeats step 1, or completes step 2 or 3.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use super::error::AuthorityError;
use crate::files::{self, SecretError, create_unfinished, folder_of, unfinished};

#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    certificate: &'a Path,
    key: &'a Path,
}

pub(super) enum Presence<'a> {
    Both,
    Half { present: &'a Path, missing: &'a Path },
    Neither,
}

pub(super) struct Contents<'a> {
    pub(super) certificate_path: &'a Path,
    pub(super) certificate: Vec<u8>,
    pub(super) key_path: &'a Path,
    pub(super) key: Vec<u8>,
}

pub(super) struct NewPair {
    pub(super) certificate_pem: String,
    /// The key as PKCS #8 (RFC 5958).
    pub(super) key_pem: String,
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

    /// Returns which of the files exist. If only one does, first waits for a process that may be creating the other.
    pub(super) fn settled_presence(&self) -> Result<Presence<'a>, AuthorityError> {
        let presence = self.presence()?;
        if let Presence::Half { .. } = presence {
            // If the lock cannot be taken, a result that may be outdated is better than an error.
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

    /// Reads the pair while the file `missing` still has its temporary name.
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

    pub(super) fn lock(&self) -> Result<File, AuthorityError> {
        let folder = folder_of(self.key);
        let lock = files::lock(folder).map_err(AuthorityError::read(folder))?;
        lock.ok_or_else(|| AuthorityError::Locked(folder.to_owned()))
    }

    /// The caller must hold the lock.
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

    /// The caller must hold the lock, and must have checked what the unfinished file contains.
    pub(super) fn finish(&self, missing: &Path) -> Result<(), AuthorityError> {
        link(missing)?;
        self.flush_directories()?;
        self.remove_unfinished();
        Ok(())
    }

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
                    tracing::warn!(
                        path = %path.display(),
                        %error,
                        "cannot remove a temporary file, which may contain the authority's private key; delete this \
                         file"
                    );
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

/// A symbolic link counts even if its target does not exist.
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

/// Gives the unfinished file its final name `path`. Fails if `path` already exists.
fn link(path: &Path) -> Result<(), AuthorityError> {
    let unfinished = unfinished(path);
    match fs::hard_link(&unfinished, path) {
        Ok(()) => Ok(()),
        // Some file systems have no hard links. Renaming could overwrite a file, but the lock keeps other proxies from
        // creating one.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !exists(path)? => {
            fs::rename(&unfinished, path).map_err(AuthorityError::write(path))
        }
        Err(error) => Err(AuthorityError::write(path)(error)),
    }
}
