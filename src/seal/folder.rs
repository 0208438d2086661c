//! The folder that contains the seal of a log. A killed program leaves half-written files only under temporary names.

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::{
    SealError,
    keys::VKEY,
    tree::{FULL, TileName},
};
use crate::{copy::Sha256, files};

/// The methods take file names relative to this folder.
#[derive(Debug, Clone)]
pub(super) struct Folder(pub(super) PathBuf);

// === impl Folder ===

impl Folder {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates the folder if necessary, and locks it until the returned file is dropped. Waits at most ten seconds.
    pub(super) fn lock(&self) -> Result<File, SealError> {
        let lock = make(&self.0).and_then(|()| {
            if !self.path(VKEY).exists() {
                // Sync the folder above, so that a loss of power does not lose the new folder with the private key.
                // Ignore an error, because this user may not be allowed to read the folder above.
                let _ = File::open(files::folder_of(&self.0)).and_then(|above| above.sync_all());
            }
            files::lock(&self.0)
        });
        let lock = lock.map_err(|error| SealError::Open {
            path: self.0.clone(),
            error,
        })?;
        lock.ok_or_else(|| SealError::Locked(self.0.clone()))
    }

    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SealError> {
        match files::read(&self.path(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SealError::read(&self.path(name))(error)),
        }
    }

    /// Reads the hashes of a tile or bundle. If a partial one was removed because it has become full, reads the full
    /// one.
    pub(super) fn hashes(&self, name: TileName) -> Result<Vec<Sha256>, SealError> {
        let prefix = prefix(name);
        for found in [name, name.full()] {
            let Some(bytes) = self.read(&found.to_string())? else {
                continue;
            };
            let items = bytes.chunks(prefix.len() + 32);
            let hashes = items.map(|item| Some(Sha256(item.strip_prefix(prefix)?.try_into().ok()?)));
            let hashes: Option<Vec<_>> = hashes.collect();
            let hashes = hashes.filter(|hashes| hashes.len() == found.width);
            let mut hashes = hashes.ok_or_else(|| SealError::Damaged(self.path(&found.to_string())))?;
            hashes.truncate(name.width);
            return Ok(hashes);
        }
        Err(SealError::Damaged(self.path(&name.to_string())))
    }

    pub(super) fn entries(&self, start: u64, size: u64) -> impl Iterator<Item = Result<Sha256, SealError>> {
        let first = start - start % FULL as u64;
        let bundles = (first..size).step_by(FULL).map(move |at| TileName::bundle(at, size));
        let entries = bundles.flat_map(|bundle| match self.hashes(bundle) {
            Ok(entries) => entries.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        entries.skip((start - first) as usize)
    }

    pub(super) fn write_hashes(&self, tiles: &[(TileName, Vec<Sha256>)]) -> Result<(), SealError> {
        let bytes = |name, hashes: &[Sha256]| {
            hashes
                .iter()
                .flat_map(|hash| [prefix(name), &hash.0].concat())
                .collect()
        };
        let files = tiles
            .iter()
            .map(|(name, hashes)| (name.to_string(), bytes(*name, hashes)));
        self.write_all(files, PUBLIC)
    }

    pub(super) fn write(&self, name: &str, bytes: impl Into<Vec<u8>>, mode: u32) -> Result<(), SealError> {
        self.write_all([(name.to_owned(), bytes.into())], mode)
    }

    /// Renames each file into its place when it is on disk. The files then survive a loss of power.
    fn write_all(&self, files: impl IntoIterator<Item = (String, Vec<u8>)>, mode: u32) -> Result<(), SealError> {
        // Each folder that gets a new file, and those above it, up to the folder of the seal.
        let mut touched = BTreeSet::new();
        for (name, bytes) in files {
            let path = self.path(&name);
            let above = path.ancestors().skip(1).take_while(|above| above.starts_with(&self.0));
            touched.extend(above.map(Path::to_owned));
            replace(&path, &bytes, mode).map_err(SealError::write(&path))?;
        }
        for folder in touched {
            let synced = step().and_then(|()| File::open(&folder)?.sync_all());
            synced.map_err(SealError::write(&folder))?;
        }
        Ok(())
    }

    /// The partial files of a full tile are of no use, so errors are ignored.
    pub(super) fn remove_partial(&self, full: TileName) {
        if step().is_ok() {
            let _ = fs::remove_dir_all(self.path(&format!("{full}.p")));
        }
    }
}

fn make(folder: &Path) -> io::Result<()> {
    step()?;
    fs::DirBuilder::new().recursive(true).mode(0o750).create(folder)
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    make(files::folder_of(path))?;
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
    fs::rename(&unfinished, path)
}

/// Runs before each change on disk. In a test it can fail, as if the program was killed there.
fn step() -> io::Result<()> {
    #[cfg(test)]
    return crash::step();
    #[cfg(not(test))]
    Ok(())
}

/// Returns the bytes before each hash in a file (c2sp.org/tlog-tiles): in a bundle, the hash's length as 16 bits; in a
/// tile, none.
fn prefix(name: TileName) -> &'static [u8] {
    match name.level {
        Some(_) => &[],
        None => &[0, 32],
    }
}

pub(super) const PUBLIC: u32 = 0o640;
pub(super) const SECRET: u32 = 0o600;

/// Lets a chosen change on disk and all later ones fail, as if the program was killed.
#[cfg(test)]
pub(super) mod crash {
    use std::{cell::Cell, io};

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

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
