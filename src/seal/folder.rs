//! The folder of a sealed log: reads its files, and replaces them so that no kill leaves a half-written one.

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::{
    SealError,
    tree::{FULL, TileName},
};
use crate::{copy::Sha256, files};

/// The folder. Names of files are relative to it.
#[derive(Debug, Clone)]
pub(super) struct Folder(pub(super) PathBuf);

/// Files that are written together. None is certain to survive a loss of power before [`Batch::sync`] returns.
pub(super) struct Batch<'a> {
    folder: &'a Folder,
    /// Folders whose names changed.
    touched: BTreeSet<PathBuf>,
}

// === impl Folder ===

impl Folder {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates the folder if necessary, and takes its lock for as long as the returned file is open.
    ///
    /// # Errors
    /// Fails if another process has the lock for ten seconds, or the folder cannot be created.
    pub(super) fn lock(&self) -> Result<File, SealError> {
        self.make_folder(&self.0).map_err(|error| self.unwritable("", error))?;
        let lock = files::lock(&self.0).map_err(|error| self.unwritable("", error))?;
        lock.ok_or_else(|| SealError::Locked(self.0.clone()))
    }

    /// Reads a file. Returns `None` if it does not exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SealError> {
        match files::read(&self.path(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SealError::Read {
                path: self.path(name),
                error,
            }),
        }
    }

    /// Reads the hashes of a tile.
    pub(super) fn tile(&self, name: TileName) -> Result<Vec<Sha256>, SealError> {
        self.hashes(name, |bytes: &[u8; 32]| Some(Sha256(*bytes)))
    }

    /// Reads the entries of a bundle.
    pub(super) fn entries(&self, name: TileName) -> Result<Vec<Sha256>, SealError> {
        self.hashes(name, |bytes: &[u8; ENTRY]| {
            Some(Sha256(bytes.strip_prefix(&ENTRY_LENGTH)?.try_into().ok()?))
        })
    }

    /// Reads a tile or a bundle. Reads the full one if the partial one was removed, as it may be once the full one is
    /// there.
    fn hashes<const SIZE: usize>(
        &self,
        name: TileName,
        hash: impl Fn(&[u8; SIZE]) -> Option<Sha256>,
    ) -> Result<Vec<Sha256>, SealError> {
        for found in [name, name.full()] {
            let Some(bytes) = self.read(&found.to_string())? else {
                continue;
            };
            let hashes = bytes.as_chunks().0.iter().map(&hash).collect::<Option<Vec<_>>>();
            let hashes = hashes.filter(|_| bytes.len() == found.width * SIZE);
            let mut hashes = hashes.ok_or_else(|| SealError::Damaged(self.path(&found.to_string())))?;
            hashes.truncate(name.width);
            return Ok(hashes);
        }
        Err(SealError::Read {
            path: self.path(&name.to_string()),
            error: ErrorKind::NotFound.into(),
        })
    }

    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            folder: self,
            touched: BTreeSet::new(),
        }
    }

    /// Gives a file another name.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), SealError> {
        let renamed = step().and_then(|()| fs::rename(self.path(from), self.path(to)));
        let synced = renamed.and_then(|()| sync_folder(&self.0));
        synced.map_err(|error| self.unwritable(to, error))
    }

    /// Removes the partial tiles of a full tile. What cannot be removed does no harm.
    pub(super) fn remove_partial(&self, full: TileName) {
        if step().is_ok() {
            let _ = fs::remove_dir_all(self.path(&format!("{full}.p")));
        }
    }

    /// Creates a folder, and those above it that are missing. Returns the folders that have new names in them.
    fn make_folder(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let missing = folder
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let touched: Vec<PathBuf> = missing.map(|made| files::folder_of(made).to_owned()).collect();
        if !touched.is_empty() {
            step()?;
            fs::DirBuilder::new().recursive(true).mode(0o750).create(folder)?;
        }
        Ok(touched)
    }

    fn unwritable(&self, name: &str, error: io::Error) -> SealError {
        SealError::Write {
            path: if name.is_empty() {
                self.0.clone()
            } else {
                self.path(name)
            },
            error,
        }
    }
}

// === impl Batch ===

impl Batch<'_> {
    /// Writes a file under a temporary name, syncs it and gives it its name.
    pub(super) fn write(&mut self, name: &str, bytes: &[u8], mode: u32) -> Result<(), SealError> {
        let path = self.folder.path(name);
        let written = self.replace(&path, bytes, mode);
        written.map_err(|error| SealError::Write { path, error })
    }

    fn replace(&mut self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let folder = files::folder_of(path);
        self.touched.extend(self.folder.make_folder(folder)?);
        let unfinished = files::unfinished(path);
        step()?;
        let mut file = files::create_unfinished(&unfinished)?;
        if let Err(stopped) = step() {
            file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(stopped);
        }
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        step()?;
        file.sync_all()?;
        step()?;
        fs::rename(&unfinished, path)?;
        self.touched.insert(folder.to_owned());
        Ok(())
    }

    /// Writes the hashes of a tile.
    pub(super) fn write_tile(&mut self, name: TileName, hashes: &[Sha256]) -> Result<(), SealError> {
        let mut bytes = Vec::with_capacity(FULL * 32);
        hashes.iter().for_each(|hash| bytes.extend(hash.0));
        self.write(&name.to_string(), &bytes, PUBLIC)
    }

    /// Writes the entries of a bundle.
    pub(super) fn write_entries(&mut self, name: TileName, entries: &[Sha256]) -> Result<(), SealError> {
        let mut bytes = Vec::with_capacity(FULL * ENTRY);
        for entry in entries {
            bytes.extend(ENTRY_LENGTH);
            bytes.extend(entry.0);
        }
        self.write(&name.to_string(), &bytes, PUBLIC)
    }

    /// Makes the files survive a loss of power.
    pub(super) fn sync(&mut self) -> Result<(), SealError> {
        for folder in std::mem::take(&mut self.touched) {
            sync_folder(&folder).map_err(|error| SealError::Write { path: folder, error })?;
        }
        Ok(())
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    step()?;
    File::open(folder)?.sync_all()
}

/// Stands before each change of the disk, so that a test can stop there as a kill would.
fn step() -> io::Result<()> {
    #[cfg(test)]
    return crash::step();
    #[cfg(not(test))]
    Ok(())
}

/// The bytes of an entry in its bundle: a length of 16 bits, and a SHA-256.
const ENTRY: usize = 34;
const ENTRY_LENGTH: [u8; 2] = [0, 32];
/// The mode of the files that are no secret.
pub(super) const PUBLIC: u32 = 0o640;
pub(super) const SECRET: u32 = 0o600;

/// Stops at a chosen change of the disk. Nothing after it succeeds, as after a kill.
#[cfg(test)]
pub(super) mod crash {
    use std::{cell::Cell, io};

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Runs `work`, which gets no further than `steps` changes.
    pub(in super::super) fn after<T>(steps: usize, work: impl FnOnce() -> T) -> T {
        LEFT.set(Some(steps));
        let done = work();
        LEFT.set(None);
        done
    }

    pub(super) fn step() -> io::Result<()> {
        match LEFT.get() {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                LEFT.set(Some(left - 1));
                Ok(())
            }
        }
    }
}
