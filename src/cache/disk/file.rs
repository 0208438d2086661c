//! The file of the copies: one redb database. Reads and writes are whole transactions, and they
//! block.
//!
//! Each text is stored once, however many origins have it, and goes with the last of them. Every
//! record carries a digest of itself, so that what was damaged counts as not known.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use redb::{
    Database, ReadableDatabase as _, ReadableTable, ReadableTableMetadata as _, Table, TableDefinition,
    WriteTransaction,
};

use super::record::Record;
use crate::cache::{OriginState, Sha256};

/// An open file.
pub struct CopyFile {
    database: Database,
    /// What was written before may be behind the times: another file was in use since.
    trusted_from: Option<SystemTime>,
    /// Bytes of texts and records, about.
    held: AtomicU64,
}

/// One change.
#[derive(Debug, Clone)]
pub enum Change {
    /// This is known, on top of what it began without.
    Keep { state: Arc<OriginState>, base: Base },
    /// More was known, and is lost: of what the file knows the last copy is left.
    Outdate,
    /// Nothing is known any more.
    Forget,
}

/// What of the file's record a state began without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// There is none, or the state has it.
    Nothing,
    /// Its last copy.
    LastCopy,
    All,
}

/// What the file holds, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    pub origins: u64,
    pub texts: u64,
    /// Of the texts, each counted once.
    pub text_bytes: u64,
}

/// The tables of one write.
struct Tables<'t> {
    origins: Table<'t, &'static str, &'static [u8]>,
    texts: Table<'t, &'static [u8; 32], &'static [u8]>,
    uses: Table<'t, &'static [u8; 32], u64>,
    trusted_from: Option<SystemTime>,
    /// Bytes by which texts and records have grown.
    more: i64,
}

// === impl Change ===

impl Change {
    /// This change on top of an earlier one, as one.
    pub(super) fn after(self, earlier: &Self) -> Self {
        match (self, earlier) {
            (
                Self::Keep {
                    state,
                    base: Base::Nothing,
                },
                _,
            ) => Self::Keep {
                state,
                base: Base::Nothing,
            },
            (Self::Keep { state, .. }, Self::Forget) => Self::Keep {
                state,
                base: Base::Nothing,
            },
            (Self::Keep { state, .. }, Self::Outdate) => Self::Keep {
                state,
                base: Base::LastCopy,
            },
            (Self::Keep { state, .. }, Self::Keep { state: earlier, base }) => Self::Keep {
                state: Arc::new(state.resuming(earlier)),
                base: *base,
            },
            (Self::Outdate, Self::Forget) => Self::Forget,
            (change, _) => change,
        }
    }
}

// === impl Base ===

impl Base {
    /// What of the file's record counts.
    pub(super) fn of(self, record: Option<OriginState>) -> Option<OriginState> {
        match self {
            Base::Nothing => None,
            Base::LastCopy => record.map(|record| record.only_last_copy()),
            Base::All => record,
        }
    }
}

// === impl CopyFile ===

impl CopyFile {
    /// Takes an open database, which is made ready where it is new.
    ///
    /// # Errors
    /// It cannot be read or written, or is of a later version of robotgate.
    ///
    /// With `stale`, another file has been in use since this one was, and what this one says of the last
    /// answers and failures is not to be relied on from now on.
    pub(super) fn new(database: Database, stale: bool) -> Result<Self, FileError> {
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
        if stale {
            let now = micros_of(SystemTime::now());
            let transaction = database.begin_write()?;
            transaction.open_table(ABOUT)?.insert(TRUSTED_KEY, now)?;
            transaction.commit()?;
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
        let mut oldest = Vec::new();
        self.each(|origin, record| {
            let bytes = RECORD_BYTES + record.copy().map_or(0, |copy| u64::from(copy.bytes));
            let last = record.outline().and_then(|state| state.useful_until());
            oldest.push((last, bytes, origin.to_owned()));
            true
        })?;
        oldest.sort_unstable();
        let mut over = self.held().saturating_sub(max_bytes);
        let mut forgotten = HashMap::new();
        for (_, bytes, origin) in oldest {
            if over == 0 {
                break;
            }
            // A text that others have, too, stays; then the next look finds more to do.
            over = over.saturating_sub(bytes);
            forgotten.insert(origin, Change::Forget);
        }
        self.write(&forgotten)?;
        Ok(forgotten.len())
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

// === impl Tables ===

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, FileError> {
        Ok(Self {
            origins: transaction.open_table(ORIGINS)?,
            texts: transaction.open_table(TEXTS)?,
            uses: transaction.open_table(USES)?,
            trusted_from: None,
            more: 0,
        })
    }

    fn make(&mut self, origin: &str, change: &Change) -> Result<(), FileError> {
        let records = self.origins.len()?;
        let before = match self.origins.get(origin)? {
            Some(record) => Record::decode(origin, record.value()).and_then(|record| record.text_digest()),
            None => None,
        };
        let after = match change {
            Change::Forget => {
                self.origins.remove(origin)?;
                None
            }
            Change::Outdate => match Base::LastCopy.of(self.known(origin)?) {
                Some(last) => self.keep(origin, &last)?,
                None => {
                    self.origins.remove(origin)?;
                    None
                }
            },
            Change::Keep { state, base } => match base.of(self.known(origin)?) {
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
        let records = self.origins.len()?.cast_signed() - records.cast_signed();
        self.more += records * RECORD_BYTES.cast_signed();
        Ok(())
    }

    fn known(&self, origin: &str) -> Result<Option<OriginState>, FileError> {
        known(origin, self.trusted_from, &self.origins, &self.texts)
    }

    /// Writes the record, and the text where it is not there yet; returns the text's digest.
    fn keep(&mut self, origin: &str, state: &OriginState) -> Result<Option<Sha256>, FileError> {
        let record = Record::of(state);
        let digest = record.text_digest();
        if let (Some(digest), Some(text)) = (digest, state.text()) {
            // A damaged text is written anew.
            let is_there = self.texts.get(&digest.0)?.is_some_and(|there| there.value() == text);
            if !is_there {
                let before = self
                    .texts
                    .insert(&digest.0, text)?
                    .map_or(0, |before| before.value().len());
                self.more += text.len() as i64 - before as i64;
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
            let text = self.texts.remove(&digest.0)?.map_or(0, |text| text.value().len());
            self.more -= text as i64;
        }
        Ok(())
    }
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

fn known(
    origin: &str,
    trusted_from: Option<SystemTime>,
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
    let state = record.restore(text.as_ref().map(|text| text.value()));
    Ok(state.map(
        |state| match state.asked().is_some_and(|asked| Some(asked) < trusted_from) {
            true => state.only_last_copy(),
            false => state,
        },
    ))
}

fn micros_of(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
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
/// Since when, in microseconds since 1970, the records are relied on.
const TRUSTED_KEY: &str = "trusted-from";
/// Bytes of an origin's record and of what it takes to find it, about.
const RECORD_BYTES: u64 = 512;
/// Of what the tables mean.
const VERSION: u64 = 1;
