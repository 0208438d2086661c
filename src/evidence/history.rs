//! Records which robots.txt each origin had, and when. A row is written when a site's text changes. While the text
//! stays the same, the first fetch of each day updates the row.
//!
//! The table `ENDS` lists the rows by the day on which their text was last seen, so that the oldest rows are found
//! quickly.

use std::time::{Duration, SystemTime};

use redb::{ReadTransaction, ReadableTable as _, Table, TableDefinition, TableError, WriteTransaction};

use crate::{copy::Sha256, database::FileError, text::micros_since_1970};

/// What a site answered when its robots.txt was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub origin: Box<str>,
    /// `None` if the site has no robots.txt.
    pub text: Option<SeenText>,
    /// The HTTP status, or 0 if it is not known.
    pub status: u16,
    pub at: SystemTime,
}

/// The digest and the size of a robots.txt text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenText {
    pub sha256: Sha256,
    pub bytes: u32,
}

/// A version of a site's robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub first_seen: SystemTime,
    /// When the site last answered with this text. For the newest version, the time can be up to a day too early.
    pub last_seen: SystemTime,
    /// `None` if the site had no robots.txt.
    pub text: Option<SeenText>,
    /// 0 if the HTTP status is not known.
    pub status: u16,
}

pub(super) struct HistoryTables<'t> {
    versions: Table<'t, Key<'static>, Row<'static>>,
    ends: Table<'t, End<'static>, ()>,
}

/// Identifies a row that can be removed. `day` is when its version was last seen.
pub(super) struct OldRow {
    pub(super) day: u32,
    origin: String,
    first_seen: u64,
}

// === impl HistoryTables ===

impl<'t> HistoryTables<'t> {
    /// Creates the tables if the file does not have them yet.
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, FileError> {
        Ok(Self {
            versions: transaction.open_table(VERSIONS)?,
            ends: transaction.open_table(ENDS)?,
        })
    }

    /// If the version that the origin had at the time of `seen` has the same text, updates this version. Otherwise,
    /// adds a version. Also updates `bytes`, the size of the history.
    pub(super) fn note(&mut self, seen: &Sighting, bytes: &mut u64) -> Result<(), FileError> {
        let (origin, at) = (&*seen.origin, micros_since_1970(seen.at));
        let sha256 = seen.text.map(|text| text.sha256.0);
        let length = seen.text.map_or(0, |text| text.bytes);
        let last = match self.versions.range((origin, 0)..=(origin, at))?.next_back() {
            Some(row) => {
                let (key, row) = row?;
                let (last_seen, _, _, text) = row.value();
                (text.copied() == sha256).then_some((key.value().1, last_seen))
            }
            None => None,
        };
        match last {
            Some((_, last_seen)) if last_seen >= at => return Ok(()),
            Some((first_seen, last_seen)) => {
                self.ends.remove((day(last_seen), origin, first_seen))?;
                self.insert(origin, first_seen, (at, seen.status, length, sha256.as_ref()))?;
            }
            None => {
                self.insert(origin, at, (at, seen.status, length, sha256.as_ref()))?;
                *bytes += row_bytes(origin);
                self.keep_few(origin, bytes)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, origin: &str, first_seen: u64, row: Row<'_>) -> Result<(), FileError> {
        self.ends.insert((day(row.0), origin, first_seen), ())?;
        self.versions.insert((origin, first_seen), row)?;
        Ok(())
    }

    fn keep_few(&mut self, origin: &str, bytes: &mut u64) -> Result<(), FileError> {
        let oldest = {
            let mut versions = self.versions.range((origin, 0)..=(origin, u64::MAX))?;
            let Some(oldest) = versions.next() else { return Ok(()) };
            let (key, row) = oldest?;
            (versions.count() >= MAX_VERSIONS).then(|| OldRow {
                day: day(row.value().0),
                origin: origin.to_owned(),
                first_seen: key.value().1,
            })
        };
        match oldest {
            Some(oldest) => self.remove(&oldest, bytes),
            None => Ok(()),
        }
    }

    /// Returns a row whose version was last seen on the earliest day.
    pub(super) fn oldest(&self) -> Result<Option<OldRow>, FileError> {
        let oldest = self.ends.first()?;
        Ok(oldest.map(|(key, _)| {
            let (day, origin, first_seen) = key.value();
            OldRow {
                day,
                origin: origin.to_owned(),
                first_seen,
            }
        }))
    }

    pub(super) fn remove(&mut self, row: &OldRow, bytes: &mut u64) -> Result<(), FileError> {
        self.ends.remove((row.day, &*row.origin, row.first_seen))?;
        self.versions.remove((&*row.origin, row.first_seen))?;
        *bytes = bytes.saturating_sub(row_bytes(&row.origin));
        Ok(())
    }
}

/// Reads the versions of an origin's robots.txt, the oldest first.
pub(super) fn read(transaction: &ReadTransaction, origin: &str) -> Result<Vec<Version>, FileError> {
    let table = match transaction.open_table(VERSIONS) {
        Ok(table) => table,
        // The file has no history yet.
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut versions: Vec<Version> = Vec::new();
    for row in table.range((origin, 0)..=(origin, u64::MAX))? {
        let (key, row) = row?;
        let (last_seen, status, bytes, sha256) = row.value();
        let version = Version {
            first_seen: time(key.value().1),
            last_seen: time(last_seen),
            text: sha256.map(|sha256| SeenText {
                sha256: Sha256(*sha256),
                bytes,
            }),
            status,
        };
        match versions.last_mut() {
            // Several robotgates that share the file can record the same version.
            Some(last) if last.text == version.text => {
                last.last_seen = last.last_seen.max(version.last_seen);
                last.status = version.status;
            }
            _ => versions.push(version),
        }
    }
    Ok(versions)
}

/// Returns the number of days since 1970, in UTC.
pub(super) fn day_of(time: SystemTime) -> u32 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs() / (24 * 60 * 60)).unwrap_or(u32::MAX)
}

fn time(micros: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn day(micros: u64) -> u32 {
    day_of(time(micros))
}

/// Returns roughly how many bytes a row takes in both tables together.
fn row_bytes(origin: &str) -> u64 {
    2 * origin.len() as u64 + 80
}

/// The key of a row: the origin, and when the version was first seen, in microseconds since 1970.
type Key<'k> = (&'k str, u64);
/// When the version was last seen (in microseconds since 1970), the status, the size of the text, and its digest.
type Row<'r> = (u64, u16, u32, Option<&'r [u8; 32]>);
/// An entry of `ENDS`: the day on which the version was last seen, and the key of its row.
type End<'e> = (u32, &'e str, u64);

const VERSIONS: TableDefinition<'_, Key<'_>, Row<'_>> = TableDefinition::new("versions");
const ENDS: TableDefinition<'_, End<'_>, ()> = TableDefinition::new("ends");
/// How many versions of an origin are kept. Some sites send a different text with each response.
const MAX_VERSIONS: usize = 500;
