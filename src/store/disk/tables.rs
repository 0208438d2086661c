//! The tables of the file, and what a change makes of them. Each text is there once, with how many
//! origins have it, and goes with the last of them.

use std::time::SystemTime;

use redb::{ReadableTable, ReadableTableMetadata as _, Table, TableDefinition, WriteTransaction};

use super::{change::Base, change::Change, file::FileError, record::Record};
use crate::copy::{OriginState, Sha256};

/// The tables of one write.
pub(super) struct Tables<'t> {
    origins: Table<'t, &'static str, &'static [u8]>,
    texts: Table<'t, &'static [u8; 32], &'static [u8]>,
    uses: Table<'t, &'static [u8; 32], u64>,
    pub(super) trusted_from: Option<SystemTime>,
    /// Bytes by which texts and records have grown.
    pub(super) more: i64,
}

// === impl Tables ===

impl<'t> Tables<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, FileError> {
        Ok(Self {
            origins: transaction.open_table(ORIGINS)?,
            texts: transaction.open_table(TEXTS)?,
            uses: transaction.open_table(USES)?,
            trusted_from: None,
            more: 0,
        })
    }

    pub(super) fn make(&mut self, origin: &str, change: &Change) -> Result<(), FileError> {
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

pub(super) fn known(
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

pub(super) const ORIGINS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("origins");
pub(super) const TEXTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("texts");
/// How many origins have a text.
pub(super) const USES: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("uses");
pub(super) const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// Bytes of an origin's record and of what it takes to find it, about.
pub(super) const RECORD_BYTES: u64 = 512;
