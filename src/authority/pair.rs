//! The two files of an authority. What it never does: overwrite or remove either, judge what they hold, or leave a pair
//! half made that the next start cannot finish.
//!
//! Making a pair takes more than one step of the file system, and a process can be killed between any two, or meet
//! another that is at it. So, under a lock on the key's directory:
//!
//! 1. both files are written in full under names of their own, and flushed to the disk;
//! 2. each is linked to its final name, which fails if that name is taken;
//! 3. the first names are removed.
//!
//! Killed within step 1, no final name exists, and the next start makes another pair. Killed within step 2, one final
//! name exists while the other's contents wait beside it, and the next start links them. Killed within step 3, the pair
//! is whole, and the next start tidies up.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use super::{create::NewPair, error::AuthorityError};
use crate::files::{self, create_unfinished, folder_of, unfinished};

/// Where the two files of an authority are.
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

/// What the two files hold, and their paths for messages.
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

    /// As [`Self::presence`], but not of a moment at which another process is between the two files.
    pub(super) fn settled_presence(&self) -> Result<Presence<'a>, AuthorityError> {
        let presence = self.presence()?;
        if let Presence::Half { .. } = presence {
            // Without the lock the answer may be a moment too old, which is no reason to give none.
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

    /// The pair of which `missing` has yet to get its name; `None` when nothing waits for it.
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

    /// Waits for the lock under which a pair is made.
    pub(super) fn lock(&self) -> Result<File, AuthorityError> {
        let folder = folder_of(self.key);
        let lock = files::lock(folder).map_err(AuthorityError::read(folder))?;
        lock.ok_or_else(|| AuthorityError::Locked(folder.to_owned()))
    }

    /// Puts a new pair in place. The caller holds the lock.
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

    /// Gives `missing` its name. The caller holds the lock, and has seen that what waits there fits.
    pub(super) fn finish(&self, missing: &Path) -> Result<(), AuthorityError> {
        link(missing)?;
        self.flush_directories()?;
        self.remove_unfinished();
        Ok(())
    }

    /// Removes what a creation left that was cut short at the very end.
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
                    tracing::warn!(path = %path.display(), %error, "cannot remove an obsolete file");
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

/// Whether there is anything of that name, be it a link that leads nowhere.
fn exists(path: &Path) -> Result<bool, AuthorityError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(AuthorityError::read(path)(error)),
    }
}

fn read_key(path: &Path) -> Result<Vec<u8>, AuthorityError> {
    let (mut file, metadata) = files::open(path).map_err(AuthorityError::read(path))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(AuthorityError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    let mut key = Vec::new();
    file.read_to_end(&mut key).map_err(AuthorityError::read(path))?;
    Ok(key)
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

/// Gives an unfinished file its final name, unless that is taken.
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

/// The permission bits of everyone but the owner.
const OTHERS: u32 = 0o077;
