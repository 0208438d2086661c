//! Reads the store of evidence while a proxy runs: waits until the proxy closes the file for a moment.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use redb::{Builder, ReadTransaction, ReadableDatabase};

use super::{
    Version,
    file::{self, EVIDENCE, VERSION},
    history,
};
use crate::{
    copy::Sha256,
    database::{FileError, guarded, open_existing},
    origin::Origin,
};

#[derive(Debug, Clone)]
pub struct EvidenceReader {
    path: PathBuf,
}

// === impl EvidenceReader ===

impl EvidenceReader {
    /// Checks that the file can be read. Does not keep it open.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let reader = Self { path: path.to_owned() };
        reader.read(&[])?;
        Ok(reader)
    }

    /// Reads texts by their digests, and leaves out those that the file does not have. A proxy cannot write to the file
    /// during the read, so pass a few thousand digests at most.
    pub fn read(&self, digests: &[Sha256]) -> Result<HashMap<Sha256, Vec<u8>>, FileError> {
        let texts = self.patiently(|transaction| {
            let mut texts = HashMap::with_capacity(digests.len());
            for sha256 in digests {
                if let Some(text) = file::read(transaction, sha256)? {
                    texts.insert(*sha256, text);
                }
            }
            Ok(texts)
        })?;
        Ok(texts.unwrap_or_default())
    }

    /// Reads the versions of an origin's robots.txt, the oldest first.
    pub fn history(&self, origin: &Origin) -> Result<Vec<Version>, FileError> {
        Ok(self.histories(&[&origin.to_string()])?.pop().unwrap_or_default())
    }

    /// Reads for each origin the versions of its robots.txt, the oldest first. A proxy cannot write to the file during
    /// the read.
    pub fn histories(&self, origins: &[&str]) -> Result<Vec<Vec<Version>>, FileError> {
        let histories = self.patiently(|transaction| {
            let histories = origins.iter().map(|origin| history::read(transaction, origin));
            histories.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(histories.unwrap_or_else(|| vec![Vec::new(); origins.len()]))
    }

    /// Waits while another process has the file open, then runs `read`. Returns `None` if the file has no tables yet.
    fn patiently<T>(&self, read: impl Fn(&ReadTransaction) -> Result<T, FileError>) -> Result<Option<T>, FileError> {
        let started = Instant::now();
        loop {
            match guarded(|| self.read_now(&read)) {
                Err(FileError::Locked) if started.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                read => return read,
            }
        }
    }

    fn read_now<T>(&self, read: impl Fn(&ReadTransaction) -> Result<T, FileError>) -> Result<Option<T>, FileError> {
        let transaction = match Builder::new().set_cache_size(CACHE).open_read_only(&self.path) {
            Ok(database) => database.begin_read()?,
            // The proxy was killed while it had the file open. Opening the file for writing repairs it.
            Err(redb::DatabaseError::RepairAborted) => {
                drop(open_existing(&EVIDENCE, &self.path, CACHE)?);
                return Err(FileError::Locked);
            }
            Err(error) => return Err(error.into()),
        };
        match file::version(&transaction)? {
            Some(VERSION) => read(&transaction).map(Some),
            Some(later) => Err(FileError::Later(format!("file format version {later}"))),
            None => Ok(None),
        }
    }
}

/// Maximum memory for pages of the store's file, in bytes.
const CACHE: usize = 16 * 1024 * 1024;
/// How long to wait while a proxy has the file open. A proxy closes the file every few seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two attempts. A busy proxy closes the file only for a moment.
const PAUSE: Duration = Duration::from_millis(5);
