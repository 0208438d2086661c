//! The file of the copies: one redb database. Reads and writes are whole transactions, and they
//! block.
//!
//! Each text is stored once, however many origins have it, and goes with the last of them. Every
//! record carries a digest of itself, so that what was damaged counts as not known.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use redb::{
    Database, ReadableDatabase as _, ReadableTable, ReadableTableMetadata as _, Table, TableDefinition,
    WriteTransaction,
};

use super::record::Record;
use crate::cache::{OriginState, Sha256};

/// An open file.
pub struct CopyFile {
    database: Database,
}

/// One change.
#[derive(Debug, Clone)]
pub enum Change {
    /// This is known. Where it began without what the file knows, the two belong together.
    Keep { state: Arc<OriginState>, whole: bool },
    /// Nothing is known any more.
    Forget,
}

/// What the file holds, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    pub texts: u64,
    /// Of the texts, each counted once.
    pub text_bytes: u64,
}

/// The tables of one write.
struct Tables<'t> {
    origins: Table<'t, &'static str, &'static [u8]>,
    texts: Table<'t, &'static [u8; 32], &'static [u8]>,
    uses: Table<'t, &'static [u8; 32], u64>,
}

// === impl Change ===

impl Change {
    /// This change on top of an earlier one, as one.
    pub(super) fn after(self, earlier: &Self) -> Self {
        match (self, earlier) {
            (Self::Keep { state, whole: false }, Self::Forget) => Self::Keep { state, whole: true },
            (Self::Keep { state, whole: false }, Self::Keep { state: earlier, whole }) => Self::Keep {
                state: Arc::new(state.resuming(earlier)),
                whole: *whole,
            },
            (change, _) => change,
        }
    }
}

// === impl CopyFile ===

impl CopyFile {
    /// Takes an open database, which is made ready where it is new.
    ///
    /// # Errors
    /// It cannot be read or written, or is of a later version of robotgate.
    pub(super) fn new(database: Database) -> Result<Self, FileError> {
        match version_of(&database)? {
            Some(VERSION) => {}
            Some(later) => return Err(FileError::Version(later)),
            None => {
                let transaction = database.begin_write()?;
                transaction.open_table(ABOUT)?.insert(VERSION_KEY, VERSION)?;
                // Made here, so that reading need not ask whether they are there.
                drop(Tables::open(&transaction)?);
                transaction.commit()?;
            }
        }
        Ok(Self { database })
    }

    /// What is known of an origin.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, origin: &str) -> Result<Option<OriginState>, FileError> {
        let transaction = self.database.begin_read()?;
        let origins = transaction.open_table(ORIGINS)?;
        let texts = transaction.open_table(TEXTS)?;
        known(origin, &origins, &texts)
    }

    /// Makes all changes or, where that fails, none.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, changes: &HashMap<String, Change>) -> Result<(), FileError> {
        let mut transaction = self.database.begin_write()?;
        // Else the first start after a kill has to look through the whole file.
        transaction.set_quick_repair(true);
        {
            let mut tables = Tables::open(&transaction)?;
            for (origin, change) in changes {
                tables.make(origin, change)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Forgets origins that were last asked before `oldest`; looks at no more than `limit`, from
    /// behind `start` on, and returns where it stopped.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn collect(&self, oldest: SystemTime, start: &str, limit: usize) -> Result<Collected, FileError> {
        let mut collected = Collected::default();
        let mut old = HashMap::new();
        {
            let transaction = self.database.begin_read()?;
            let origins = transaction.open_table(ORIGINS)?;
            for entry in origins.range(start..)?.take(limit) {
                let (origin, record) = entry?;
                // Behind the last one.
                collected.next = Some(format!("{}\0", origin.value()));
                let asked = Record::decode(origin.value(), record.value())
                    .and_then(Record::outline)
                    .and_then(|state| state.asked());
                if asked.is_none_or(|asked| asked < oldest) {
                    old.insert(origin.value().to_owned(), Change::Forget);
                }
                collected.seen += 1;
            }
        }
        if collected.seen < limit {
            collected.next = None;
        }
        collected.forgotten = old.len();
        if !old.is_empty() {
            self.write(&old)?;
        }
        Ok(collected)
    }

    /// Forgets all that is known of an origin. Whether there was anything.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn forget(&self, origin: &str) -> Result<bool, FileError> {
        let is_known = {
            let transaction = self.database.begin_read()?;
            transaction.open_table(ORIGINS)?.get(origin)?.is_some()
        };
        if is_known {
            self.write(&HashMap::from([(origin.to_owned(), Change::Forget)]))?;
        }
        Ok(is_known)
    }

    /// Hands every origin, by name, to `each`, until that says no.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn each(&self, each: impl FnMut(&str, Record) -> bool) -> Result<(), FileError> {
        self.each_from("", each)
    }

    /// The same from the origin `start` on, so that nobody need hold a transaction for long: what a
    /// transaction may still read is room that the file cannot use again.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn each_from(&self, start: &str, mut each: impl FnMut(&str, Record) -> bool) -> Result<(), FileError> {
        let transaction = self.database.begin_read()?;
        let origins = transaction.open_table(ORIGINS)?;
        for entry in origins.range(start..)? {
            let (origin, record) = entry?;
            let goes_on = match Record::decode(origin.value(), record.value()) {
                Some(record) => each(origin.value(), record),
                None => true,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// # Errors
    /// The file cannot be read.
    pub fn contents(&self) -> Result<Contents, FileError> {
        let transaction = self.database.begin_read()?;
        let texts = transaction.open_table(TEXTS)?;
        Ok(Contents {
            texts: texts.len()?,
            text_bytes: texts.stats()?.stored_bytes().saturating_sub(32 * texts.len()?),
        })
    }

    /// Looks through the whole file.
    ///
    /// # Errors
    /// It is damaged, and cannot be mended from itself.
    pub(super) fn check(database: &mut Database) -> Result<bool, FileError> {
        Ok(database.check_integrity()?)
    }
}

/// What one look for old origins came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub seen: usize,
    pub forgotten: usize,
    /// Where to go on, where there is more.
    pub next: Option<String>,
}

// === impl Tables ===

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, FileError> {
        Ok(Self {
            origins: transaction.open_table(ORIGINS)?,
            texts: transaction.open_table(TEXTS)?,
            uses: transaction.open_table(USES)?,
        })
    }

    fn make(&mut self, origin: &str, change: &Change) -> Result<(), FileError> {
        let before = match self.origins.get(origin)? {
            Some(record) => Record::decode(origin, record.value()).and_then(|record| record.text_digest()),
            None => None,
        };
        let after = match change {
            Change::Forget => {
                self.origins.remove(origin)?;
                None
            }
            Change::Keep { state, whole: true } => self.keep(origin, state)?,
            Change::Keep { state, whole: false } => match known(origin, &self.origins, &self.texts)? {
                Some(earlier) => self.keep(origin, &state.resuming(&earlier))?,
                None => self.keep(origin, state)?,
            },
        };
        if let Some(before) = before.filter(|before| after != Some(*before)) {
            self.release(before)?;
        }
        if let Some(after) = after.filter(|after| before != Some(*after)) {
            let uses = self.uses.get(&after.0)?.map_or(0, |uses| uses.value());
            self.uses.insert(&after.0, uses.saturating_add(1))?;
        }
        Ok(())
    }

    /// Writes the record, and the text where it is not there yet; returns the text's digest.
    fn keep(&mut self, origin: &str, state: &OriginState) -> Result<Option<Sha256>, FileError> {
        let record = Record::of(state);
        let digest = record.text_digest();
        if let (Some(digest), Some(text)) = (digest, state.text()) {
            // A damaged text is written anew.
            let is_there = self.texts.get(&digest.0)?.is_some_and(|there| there.value() == text);
            if !is_there {
                self.texts.insert(&digest.0, text)?;
            }
        }
        self.origins.insert(origin, &*record.encode(origin))?;
        Ok(digest)
    }

    /// One origin less has the text.
    fn release(&mut self, digest: Sha256) -> Result<(), FileError> {
        let uses = self.uses.get(&digest.0)?.map_or(0, |uses| uses.value());
        if uses > 1 {
            self.uses.insert(&digest.0, uses - 1)?;
        } else {
            self.uses.remove(&digest.0)?;
            self.texts.remove(&digest.0)?;
        }
        Ok(())
    }
}

/// `None` of a file that nothing was written to yet. A file that only needs reading can be read even
/// where the disk is full.
fn version_of(database: &Database) -> Result<Option<u64>, FileError> {
    let transaction = database.begin_read()?;
    match transaction.open_table(ABOUT) {
        Ok(about) => Ok(about.get(VERSION_KEY)?.map(|version| version.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn known(
    origin: &str,
    origins: &impl ReadableTable<&'static str, &'static [u8]>,
    texts: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
) -> Result<Option<OriginState>, FileError> {
    let Some(bytes) = origins.get(origin)? else {
        return Ok(None);
    };
    let Some(record) = Record::decode(origin, bytes.value()) else {
        return Ok(None);
    };
    let text = match record.text_digest() {
        Some(digest) => texts.get(&digest.0)?,
        None => None,
    };
    Ok(record.restore(text.as_ref().map(|text| text.value())))
}

/// What can go wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Database(#[from] redb::DatabaseError),
    #[error(transparent)]
    Transaction(#[from] redb::TransactionError),
    #[error(transparent)]
    Table(#[from] redb::TableError),
    #[error(transparent)]
    Storage(#[from] redb::StorageError),
    #[error(transparent)]
    Commit(#[from] redb::CommitError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("it was written by a later robotgate, in version {0} of its format")]
    Version(u64),
    #[error("reading it failed inside: {0}")]
    Panic(String),
    #[error("it is closed")]
    Closed,
}

const ORIGINS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("origins");
const TEXTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("texts");
/// How many origins have a text.
const USES: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("uses");
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
const VERSION_KEY: &str = "version";
/// Of what the tables mean.
const VERSION: u64 = 1;
