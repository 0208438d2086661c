//! The database file (redb) that stores the robots.txt copies. Each read or write is a transaction of its own, and
//! blocks.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use redb::{Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _};

use super::{
    queue::StoreChange,
    tables::{ABOUT, ORIGINS, OriginRecord, RECORD_BYTES, TEXTS, Tables, USES, known},
};
use crate::{
    copy::{OriginState, SiteDocument},
    database::FileError,
    origin::Origin,
};

/// An open database file with robots.txt copies.
pub struct CopyFile {
    database: Database,
    /// Approximate size of all texts and records in the file, in bytes.
    held: AtomicU64,
}

/// Statistics of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// Number of records: one for each known robots.txt and each known `tdmrep.json`.
    pub records: u64,
    pub texts: u64,
    /// Size of all texts in bytes. A text that several origins share counts once.
    pub text_bytes: u64,
}

// === impl CopyFile ===

impl CopyFile {
    /// Fails if a later version of robotgate wrote the file.
    pub(super) fn new(database: Database) -> Result<Self, FileError> {
        match version(&database)? {
            Some(VERSION) => {}
            Some(later) => return Err(FileError::Later(format!("file format version {later}"))),
            None => {
                let transaction = database.begin_write()?;
                transaction.open_table(ABOUT)?.insert(VERSION_KEY, VERSION)?;
                // Create the tables, so that later read transactions find them.
                drop(Tables::open(&transaction)?);
                transaction.commit()?;
            }
        }
        let file = Self {
            database,
            held: AtomicU64::new(0),
        };
        let contents = file.contents()?;
        let held = contents.text_bytes + contents.records * RECORD_BYTES;
        file.held.store(held, Ordering::Relaxed);
        Ok(file)
    }

    /// Returns the approximate size of texts and records, in bytes.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Forgets the origins with the earliest [`OriginState::useful_until`], until the texts and records take about
    /// `max_bytes`. Returns how many origins were forgotten.
    pub fn make_room(&self, max_bytes: u64) -> Result<usize, FileError> {
        let uses = self.database.begin_read()?.open_table(USES)?;
        let mut times = Vec::new();
        let mut failed = None;
        self.each_record("", |_, record| {
            let text = record
                .copy()
                .map(|copy| (u64::from(copy.bytes), uses.get(&copy.sha256.0)));
            // A text that several origins share is removed with the last of them, so count an equal part of it for
            // each.
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
        self.each_record("", |origin, record| {
            if last_use(record) <= until {
                forgotten.insert(origin.to_owned(), StoreChange::Forget);
            }
            true
        })?;
        self.write(&forgotten)?;
        Ok(forgotten.len())
    }

    /// Returns the number of origins whose robots.txt is known.
    pub fn origins(&self) -> Result<u64, FileError> {
        let transaction = self.database.begin_read()?;
        let records = transaction.open_table(ORIGINS)?.len()?;
        let tdmrep = transaction.open_table(ABOUT)?.get(TDMREP_KEY)?;
        Ok(records.saturating_sub(tdmrep.map_or(0, |tdmrep| tdmrep.value())))
    }

    /// Reads the state of an origin. Returns `None` if it is unknown or damaged.
    pub fn read(&self, origin: &str) -> Result<Option<OriginState>, FileError> {
        let transaction = self.database.begin_read()?;
        let origins = transaction.open_table(ORIGINS)?;
        let texts = transaction.open_table(TEXTS)?;
        known(origin, &origins, &texts)
    }

    /// Writes all changes to the file, or none if that fails.
    pub fn write(&self, changes: &HashMap<String, StoreChange>) -> Result<(), FileError> {
        let mut transaction = self.database.begin_write()?;
        // Without quick repair, redb would scan the whole file at the first start after robotgate was killed.
        transaction.set_quick_repair(true);
        let held;
        {
            let mut tables = Tables::open(&transaction)?;
            for (origin, change) in changes {
                tables.make(origin, change)?;
            }
            held = self.held().saturating_add_signed(tables.more);
            let mut about = transaction.open_table(ABOUT)?;
            let tdmrep = about.get(TDMREP_KEY)?.map(|tdmrep| tdmrep.value());
            match (tdmrep, tables.more_tdmrep) {
                (Some(_), 0) => {}
                (Some(tdmrep), more) => drop(about.insert(TDMREP_KEY, tdmrep.saturating_add_signed(more))?),
                // The file is new or from an earlier version of robotgate, so it has no count yet.
                (None, _) => drop(about.insert(TDMREP_KEY, tables.count_tdmrep()?)?),
            }
        }
        transaction.commit()?;
        self.held.store(held, Ordering::Relaxed);
        Ok(())
    }

    /// Looks at up to `limit` origins from the name `start` on, and forgets those whose state was last useful before
    /// `oldest`.
    pub fn collect(&self, oldest: SystemTime, start: &str, limit: usize) -> Result<Collected, FileError> {
        let mut collected = Collected::default();
        let mut old = HashMap::new();
        {
            let transaction = self.database.begin_read()?;
            let origins = transaction.open_table(ORIGINS)?;
            for entry in origins.range(start..)?.take(limit) {
                let (origin, record) = entry?;
                // The smallest name after this origin's, in byte order.
                collected.next = Some(format!("{}\0", origin.value()));
                let last = OriginRecord::decode(origin.value(), record.value())
                    .and_then(OriginRecord::outline)
                    .and_then(|state| state.useful_until());
                if last.is_none_or(|last| last < oldest) {
                    old.insert(origin.value().to_owned(), StoreChange::Forget);
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

    /// Forgets the robots.txt and the `tdmrep.json` of an origin. Returns whether any of them was known.
    pub fn forget(&self, origin: &Origin) -> Result<bool, FileError> {
        let mut known = HashMap::new();
        {
            let transaction = self.database.begin_read()?;
            let origins = transaction.open_table(ORIGINS)?;
            for document in [SiteDocument::ROBOTS_TXT, SiteDocument::TDMREP] {
                let name = document.name(origin);
                if origins.get(&*name)?.is_some() {
                    known.insert(name, StoreChange::Forget);
                }
            }
        }
        if !known.is_empty() {
            self.write(&known)?;
        }
        Ok(!known.is_empty())
    }

    /// Calls `each` with every origin whose robots.txt is stored, sorted by name from `start` on, until `each` returns
    /// `false`. Split a long read into several calls: while a call runs, the file can grow.
    pub fn each_from(&self, start: &str, mut each: impl FnMut(&str, OriginRecord) -> bool) -> Result<(), FileError> {
        self.each_record(start, |name, record| {
            !SiteDocument::is_robots_txt(name) || each(name, record)
        })
    }

    /// Calls `each` like [`each_from`](Self::each_from), with the records of all documents.
    fn each_record(&self, start: &str, mut each: impl FnMut(&str, OriginRecord) -> bool) -> Result<(), FileError> {
        let transaction = self.database.begin_read()?;
        let origins = transaction.open_table(ORIGINS)?;
        for entry in origins.range(start..)? {
            let (origin, record) = entry?;
            let goes_on = match OriginRecord::decode(origin.value(), record.value()) {
                Some(record) => each(origin.value(), record),
                None => true,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Returns the statistics of the file.
    pub fn contents(&self) -> Result<Contents, FileError> {
        let transaction = self.database.begin_read()?;
        let texts = transaction.open_table(TEXTS)?;
        Ok(Contents {
            records: transaction.open_table(ORIGINS)?.len()?,
            texts: texts.len()?,
            text_bytes: texts.stats()?.stored_bytes().saturating_sub(32 * texts.len()?),
        })
    }
}

/// The result of one call of [`CopyFile::collect`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub seen: usize,
    pub forgotten: usize,
    /// Where the next call has to start, or `None` at the end of the file.
    pub next: Option<String>,
}

/// Returns the version of the tables' format, or `None` for a new file. Does not write, so it works on a full disk.
fn version(database: &Database) -> Result<Option<u64>, FileError> {
    let transaction = database.begin_read()?;
    match transaction.open_table(ABOUT) {
        Ok(about) => Ok(about.get(VERSION_KEY)?.map(|value| value.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn last_use(record: OriginRecord) -> Option<SystemTime> {
    record.outline().and_then(|state| state.useful_until())
}

const VERSION_KEY: &str = "version";
/// The key under which [`ABOUT`] has the number of `tdmrep.json` records.
const TDMREP_KEY: &str = "tdmrep";
const VERSION: u64 = 1;
