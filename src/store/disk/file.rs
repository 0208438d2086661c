//! The file of the copies: one redb database. Reads and writes are whole transactions, and they
//! block.
//!
//! What its tables hold is in `tables`. Every record carries a digest of itself, so that what was
//! damaged counts as not known.

use crate::text::micros_since_1970;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _};

use super::{
    change::Change,
    record::Record,
    tables::{ABOUT, ORIGINS, RECORD_BYTES, TEXTS, Tables, USES, known},
};
use crate::copy::OriginState;

/// An open file.
pub struct CopyFile {
    database: Database,
    /// What was written before may be behind the times: another file was in use since.
    trusted_from: Option<SystemTime>,
    /// Bytes of texts and records, about.
    held: AtomicU64,
}

/// What the file holds, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    pub origins: u64,
    pub texts: u64,
    /// Of the texts, each counted once.
    pub text_bytes: u64,
}

// === impl CopyFile ===

impl CopyFile {
    /// Takes an open database, which is made ready where it is new.
    ///
    /// # Errors
    /// It cannot be read or written, or is of a later version of robotgate.
    pub(super) fn new(database: Database) -> Result<Self, FileError> {
        match about(&database, VERSION_KEY)? {
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
        let trusted_from = about(&database, TRUSTED_KEY)?;
        let file = Self {
            trusted_from: trusted_from.map(|micros| SystemTime::UNIX_EPOCH + Duration::from_micros(micros)),
            database,
            held: AtomicU64::new(0),
        };
        let contents = file.contents()?;
        let held = contents.text_bytes + contents.origins * RECORD_BYTES;
        file.held.store(held, Ordering::Relaxed);
        Ok(file)
    }

    /// Notes that another file has been in use since this one was, and that what this one says of the last
    /// answers and failures is not to be relied on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn distrust(database: &Database) -> Result<(), FileError> {
        let transaction = database.begin_write()?;
        let now = micros_since_1970(SystemTime::now());
        transaction.open_table(ABOUT)?.insert(TRUSTED_KEY, now)?;
        transaction.commit()?;
        Ok(())
    }

    /// Bytes of texts and records, about.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Forgets the origins of which nothing was of use for the longest time, until no more than
    /// `max_bytes` are held. How many.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn make_room(&self, max_bytes: u64) -> Result<usize, FileError> {
        let uses = self.database.begin_read()?.open_table(USES)?;
        let mut times = Vec::new();
        let mut failed = None;
        self.each(|_, record| {
            let text = record
                .copy()
                .map(|copy| (u64::from(copy.bytes), uses.get(&copy.sha256.0)));
            // A text goes with the last origin that has it.
            let text = match text {
                Some((bytes, Ok(uses))) => bytes / uses.map_or(1, |uses| uses.value().max(1)),
                Some((_, Err(error))) => return failed.replace(error).is_some_and(|_| false),
                None => 0,
            };
            times.push((last_use(record), RECORD_BYTES + text));
            true
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        times.sort_unstable();
        let mut over = self.held().saturating_sub(max_bytes);
        let oldest = times.into_iter().take_while(|(_, bytes)| {
            let goes = over > 0;
            over = over.saturating_sub(*bytes);
            goes
        });
        let Some((until, _)) = oldest.last() else {
            return Ok(0);
        };
        let mut forgotten = HashMap::new();
        self.each(|origin, record| {
            if last_use(record) <= until {
                forgotten.insert(origin.to_owned(), Change::Forget);
            }
            true
        })?;
        self.write(&forgotten)?;
        Ok(forgotten.len())
    }

    /// How many origins are known.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn origins(&self) -> Result<u64, FileError> {
        Ok(self.database.begin_read()?.open_table(ORIGINS)?.len()?)
    }

    /// What is known of an origin.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, origin: &str) -> Result<Option<OriginState>, FileError> {
        let transaction = self.database.begin_read()?;
        let origins = transaction.open_table(ORIGINS)?;
        let texts = transaction.open_table(TEXTS)?;
        known(origin, self.trusted_from, &origins, &texts)
    }

    /// Makes all changes or, where that fails, none.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, changes: &HashMap<String, Change>) -> Result<(), FileError> {
        let mut transaction = self.database.begin_write()?;
        // Else opening the file after a kill begins with finding out which of its pages are in use.
        transaction.set_quick_repair(true);
        let held;
        {
            let mut tables = Tables::open(&transaction)?;
            tables.trusted_from = self.trusted_from;
            for (origin, change) in changes {
                tables.make(origin, change)?;
            }
            held = self.held().saturating_add_signed(tables.more);
        }
        transaction.commit()?;
        self.held.store(held, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets origins of which nothing was of use since `oldest`; looks at no more than `limit`, from
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
                let last = Record::decode(origin.value(), record.value())
                    .and_then(Record::outline)
                    .and_then(|state| state.useful_until());
                if last.is_none_or(|last| last < oldest) {
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
                Some(record) => each(origin.value(), record.trusted(self.trusted_from)),
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
            origins: transaction.open_table(ORIGINS)?.len()?,
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

/// What the file says of itself; `None` where it does not. A file that only needs reading can be read
/// even where the disk is full.
fn about(database: &Database, key: &str) -> Result<Option<u64>, FileError> {
    let transaction = database.begin_read()?;
    match transaction.open_table(ABOUT) {
        Ok(about) => Ok(about.get(key)?.map(|value| value.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn last_use(record: Record) -> Option<SystemTime> {
    record.outline().and_then(|state| state.useful_until())
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

const VERSION_KEY: &str = "version";
/// Since when, in microseconds since 1970, the records are relied on.
const TRUSTED_KEY: &str = "trusted-from";
/// Of what the tables mean.
const VERSION: u64 = 1;
