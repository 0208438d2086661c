//! The tables of the file on disk. The text of a robots.txt is stored once, with the number of origins that have the
//! same text. A record whose checksum is wrong counts as missing.

use redb::{ReadableTable, ReadableTableMetadata as _, Table, TableDefinition, WriteTransaction};
use sha2::{Digest as _, Sha256 as Hasher};

use super::queue::StoreChange;
use crate::{
    copy::{OriginState, Saved, SavedCopy, Sha256, SiteDocument},
    database::FileError,
};

pub(super) struct Tables<'t> {
    origins: Table<'t, &'static str, &'static [u8]>,
    texts: Table<'t, &'static [u8; 32], &'static [u8]>,
    uses: Table<'t, &'static [u8; 32], u64>,
    /// How many bytes the transaction adds to the stored texts and records. Negative if these shrink.
    pub(super) more: i64,
    /// How many records of a `tdmrep.json` the transaction adds. Negative if it removes some.
    pub(super) more_tdmrep: i64,
}

/// What the file stores about an origin, except the text of its robots.txt. Encoded as a checksum and JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginRecord(Saved);

// === impl Tables ===

impl<'t> Tables<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, FileError> {
        Ok(Self {
            origins: transaction.open_table(ORIGINS)?,
            texts: transaction.open_table(TEXTS)?,
            uses: transaction.open_table(USES)?,
            more: 0,
            more_tdmrep: 0,
        })
    }

    pub(super) fn make(&mut self, origin: &str, change: &StoreChange) -> Result<(), FileError> {
        let records = self.origins.len()?;
        let before = match self.origins.get(origin)? {
            Some(record) => OriginRecord::decode(origin, record.value()).and_then(|record| record.text_digest()),
            None => None,
        };
        let after = match change {
            StoreChange::Forget => {
                self.origins.remove(origin)?;
                None
            }
            StoreChange::Keep { state, complete: true } => self.keep(origin, state)?,
            StoreChange::Keep { state, complete: false } => match known(origin, &self.origins, &self.texts)? {
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
        if !SiteDocument::is_robots_txt(origin) {
            self.more_tdmrep += records;
        }
        Ok(())
    }

    /// Reads all records, which is slow.
    pub(super) fn count_tdmrep(&self) -> Result<u64, FileError> {
        let mut count = 0;
        for entry in self.origins.range(""..)? {
            count += u64::from(!SiteDocument::is_robots_txt(entry?.0.value()));
        }
        Ok(count)
    }

    /// Writes an origin's record, and its robots.txt if the file lacks it. Returns the SHA-256 of the robots.txt.
    fn keep(&mut self, origin: &str, state: &OriginState) -> Result<Option<Sha256>, FileError> {
        let record = OriginRecord::of(state);
        let digest = record.text_digest();
        if let (Some(digest), Some(text)) = (digest, state.text()) {
            // Compare the bytes, so that a text that is damaged on disk is written again.
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

// === impl OriginRecord ===

impl OriginRecord {
    fn of(state: &OriginState) -> Self {
        Self(state.save())
    }

    /// The checksum includes the origin's name, so that no record can be taken for that of another origin.
    fn encode(&self, origin: &str) -> Vec<u8> {
        let mut bytes = vec![0; CHECK];
        // Cannot fail, because it writes numbers and strings to memory. If it did, `decode` would return `None`.
        if serde_json::to_writer(&mut bytes, &self.0).is_err() {
            bytes.truncate(CHECK);
        }
        let check = check(origin, &bytes[CHECK..]);
        bytes[..CHECK].copy_from_slice(&check);
        bytes
    }

    pub(super) fn decode(origin: &str, bytes: &[u8]) -> Option<Self> {
        let (found, json) = bytes.split_first_chunk()?;
        if *found != check(origin, json) {
            return None;
        }
        serde_json::from_slice(json).ok().map(Self)
    }

    fn text_digest(&self) -> Option<Sha256> {
        self.copy().map(|copy| copy.sha256)
    }

    /// Returns the last copy that had rules.
    pub fn copy(&self) -> Option<&SavedCopy> {
        self.0.copy.as_ref()
    }

    /// Restores the state with an empty robots.txt, for callers that do not need the text.
    pub fn outline(self) -> Option<OriginState> {
        self.0.outline()
    }
}

/// Returns `None` if the origin is unknown, or its record or its text is damaged.
pub(super) fn known(
    origin: &str,
    origins: &impl ReadableTable<&'static str, &'static [u8]>,
    texts: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
) -> Result<Option<OriginState>, FileError> {
    let bytes = origins.get(origin)?;
    let Some(record) = bytes.and_then(|bytes| OriginRecord::decode(origin, bytes.value())) else {
        return Ok(None);
    };
    let text = match record.text_digest() {
        Some(digest) => texts.get(&digest.0)?,
        None => None,
    };
    Ok(record.0.restore(text.as_ref().map(|text| text.value())))
}

fn check(origin: &str, json: &[u8]) -> [u8; CHECK] {
    let digest: [u8; 32] = Hasher::new()
        .chain_update(origin)
        .chain_update([0])
        .chain_update(json)
        .finalize()
        .into();
    let mut check = [0; CHECK];
    check.copy_from_slice(&digest[..CHECK]);
    check
}

pub(super) const ORIGINS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("origins");
pub(super) const TEXTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("texts");
/// The number of origins that use a text, by the SHA-256 of the text.
pub(super) const USES: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("uses");
pub(super) const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// Approximate size of an origin's record and its index entries, in bytes.
pub(super) const RECORD_BYTES: u64 = 512;
/// Number of bytes of the checksum. It detects accidents, not attacks.
const CHECK: usize = 8;
