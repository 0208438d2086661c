//! The file of the evidence, a redb database. Reads and writes are whole transactions, and they block.
//!
//! The table `DAYS` lists the texts by the day of their last use, so that the oldest texts are found without a scan.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable as _, ReadableTableMetadata as _, TableDefinition,
};

use super::history::{HistoryTables, Sighting};
use crate::{
    copy::Sha256,
    database::{DatabaseKind, FileError},
};

pub(super) struct EvidenceFile {
    database: Database,
    /// A random number in the file. A file that replaces this one has another number, but can have the same inode.
    pub(super) id: u64,
}

pub(super) struct Batch<'a> {
    pub(super) texts: &'a [(Sha256, &'a [u8])],
    pub(super) seen: &'a [Sighting],
    /// The current day, as the number of days since 1970.
    pub(super) day: u32,
    /// Texts that were last used before this day and versions that were last seen before it are removed.
    pub(super) oldest: u32,
    pub(super) max_bytes: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WriteOutcome {
    pub(super) texts: u64,
    pub(super) bytes: u64,
    /// Size of the history of robots.txt versions, in bytes.
    pub(super) rows: u64,
    /// Removed texts that were unused for too long (`expired`), or for which there was no room (`crowded_out`).
    pub(super) expired: Vec<Sha256>,
    pub(super) crowded_out: Vec<Sha256>,
}

pub(super) const EVIDENCE: DatabaseKind<EvidenceFile> = DatabaseKind {
    name: "the store of evidence",
    loss: "Decisions that are based on texts in the damaged file cannot be replayed without that file",
    wrap: EvidenceFile::new,
};

// === impl EvidenceFile ===

impl EvidenceFile {
    fn new(database: Database) -> Result<Self, FileError> {
        match version(&database.begin_read()?)? {
            Some(VERSION) => {}
            Some(later) => return Err(FileError::Later(format!("file format version {later}"))),
            None => {
                let transaction = database.begin_write()?;
                // The last 62 bits of a UUIDv7 are random (RFC 9562 §5.7).
                let (_, random) = uuid::Uuid::now_v7().as_u64_pair();
                transaction.open_table(ABOUT)?.insert(VERSION_KEY, VERSION)?;
                transaction.open_table(ABOUT)?.insert(ID_KEY, random)?;
                // Opening a table creates it. A reader fails if `TEXTS` does not exist.
                transaction.open_table(TEXTS)?;
                transaction.open_table(LAST)?;
                transaction.open_table(DAYS)?;
                transaction.commit()?;
            }
        }
        let id = {
            let about = database.begin_read()?.open_table(ABOUT)?;
            about.get(ID_KEY)?.map_or(0, |id| id.value())
        };
        Ok(Self { database, id })
    }

    /// If this fails, nothing is changed.
    pub(super) fn write(&self, batch: &Batch<'_>) -> Result<WriteOutcome, FileError> {
        let mut transaction = self.database.begin_write()?;
        // Without this, the next opening after a kill would read the whole file to repair it.
        transaction.set_quick_repair(true);
        let mut outcome = WriteOutcome::default();
        {
            let mut about = transaction.open_table(ABOUT)?;
            let mut texts = transaction.open_table(TEXTS)?;
            let mut last = transaction.open_table(LAST)?;
            let mut days = transaction.open_table(DAYS)?;
            let mut history = HistoryTables::open(&transaction)?;
            let mut bytes = about.get(BYTES_KEY)?.map_or(0, |bytes| bytes.value());
            for (sha256, text) in batch.texts {
                let known = last.get(&sha256.0)?.map(|last| last.value());
                let size = match known {
                    // The use on this day is already recorded, or a robotgate whose clock was ahead recorded a later
                    // day.
                    Some((day, _)) if day >= batch.day => continue,
                    Some((day, size)) => {
                        days.remove((day, &sha256.0))?;
                        size
                    }
                    None => {
                        let packed = pack(text)?;
                        texts.insert(&sha256.0, &*packed)?;
                        bytes += packed.len() as u64;
                        packed.len() as u64
                    }
                };
                last.insert(&sha256.0, (batch.day, size))?;
                days.insert((batch.day, &sha256.0), ())?;
            }
            let mut rows = about.get(ROWS_KEY)?.map_or(0, |bytes| bytes.value());
            for seen in batch.seen {
                history.note(seen, &mut rows)?;
            }
            for _ in 0..MAX_REMOVED {
                let text = days.first()?.map(|(key, _)| (key.value().0, *key.value().1));
                let is_full = bytes + rows > batch.max_bytes;
                if let Some(row) = history.oldest()?
                    && text.is_none_or(|(day, _)| row.day < day)
                    && (row.day < batch.oldest || is_full)
                {
                    history.remove(&row, &mut rows)?;
                    continue;
                }
                let Some((day, sha256)) = text else { break };
                match (day < batch.oldest, is_full) {
                    (true, _) => outcome.expired.push(Sha256(sha256)),
                    (false, true) => outcome.crowded_out.push(Sha256(sha256)),
                    (false, false) => break,
                }
                days.remove((day, &sha256))?;
                texts.remove(&sha256)?;
                let size = last.remove(&sha256)?.map_or(0, |last| last.value().1);
                bytes = bytes.saturating_sub(size);
            }
            about.insert(BYTES_KEY, bytes)?;
            about.insert(ROWS_KEY, rows)?;
            (outcome.texts, outcome.bytes, outcome.rows) = (texts.len()?, bytes, rows);
        }
        transaction.commit()?;
        Ok(outcome)
    }
}

/// Returns `None` if the file does not have the text, or its bytes do not match the digest.
pub(super) fn read(transaction: &ReadTransaction, sha256: &Sha256) -> Result<Option<Vec<u8>>, FileError> {
    let texts = transaction.open_table(TEXTS)?;
    let packed = texts.get(&sha256.0)?;
    let text = packed.and_then(|packed| unpack(packed.value()));
    Ok(text.filter(|text| Sha256::of(text) == *sha256))
}

/// Returns `None` if the file is new.
pub(super) fn version(transaction: &ReadTransaction) -> Result<Option<u64>, FileError> {
    match transaction.open_table(ABOUT) {
        Ok(about) => Ok(about.get(VERSION_KEY)?.map(|value| value.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn pack(text: &[u8]) -> Result<Vec<u8>, FileError> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text)?;
    Ok(packed.finish()?)
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    DeflateDecoder::new(packed).take(MAX_TEXT).read_to_end(&mut text).ok()?;
    Some(text)
}

const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// The compressed texts (RFC 1951), by digest.
const TEXTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("texts");
/// By digest: the last day on which the text was used, and its compressed size.
const LAST: TableDefinition<'_, &[u8; 32], (u32, u64)> = TableDefinition::new("last");
const DAYS: TableDefinition<'_, (u32, &[u8; 32]), ()> = TableDefinition::new("days");
const VERSION_KEY: &str = "version";
const ID_KEY: &str = "id";
const BYTES_KEY: &str = "bytes";
const ROWS_KEY: &str = "history-bytes";
pub(super) const VERSION: u64 = 1;
/// Maximum number of texts and versions that one write removes because they are old or take too much room.
const MAX_REMOVED: usize = 10_000;
/// Maximum bytes of a text that is read. Only a configuration can come near it.
const MAX_TEXT: u64 = 64 * 1024 * 1024;
