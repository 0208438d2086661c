//! The bytes of one origin's record: a digest, and behind it what was saved, as JSON.

use std::time::SystemTime;

use sha2::{Digest as _, Sha256 as Hasher};

use crate::copy::{OriginState, Saved, SavedCopy, Sha256};

/// What the file holds of an origin, apart from its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(Saved);

// === impl Record ===

impl Record {
    pub(super) fn of(state: &OriginState) -> Self {
        Self(state.save())
    }

    /// The record in bytes. The digest is of the origin, too, so that no record passes for another's.
    pub(super) fn encode(&self, origin: &str) -> Vec<u8> {
        let mut bytes = vec![0; CHECK];
        // Numbers and strings into memory: that cannot fail, and an empty record decodes to nothing.
        if serde_json::to_writer(&mut bytes, &self.0).is_err() {
            bytes.truncate(CHECK);
        }
        let check = check(origin, &bytes[CHECK..]);
        bytes[..CHECK].copy_from_slice(&check);
        bytes
    }

    /// `None` for what is damaged.
    pub(super) fn decode(origin: &str, bytes: &[u8]) -> Option<Self> {
        let (found, json) = bytes.split_first_chunk()?;
        if *found != check(origin, json) {
            return None;
        }
        serde_json::from_slice(json).ok().map(Self)
    }

    pub(super) fn text_digest(&self) -> Option<Sha256> {
        self.copy().map(|copy| copy.sha256)
    }

    /// The last copy that had rules.
    pub fn copy(&self) -> Option<&SavedCopy> {
        self.0.copy.as_ref()
    }

    pub(super) fn restore(self, text: Option<&[u8]>) -> Option<OriginState> {
        self.0.restore(text)
    }

    /// The record, less what was noted before `from` of answers and failures.
    pub(super) fn trusted(self, from: Option<SystemTime>) -> Self {
        match self.clone().outline() {
            Some(state) if state.asked().is_some_and(|asked| Some(asked) < from) => Self(self.0.only_copy()),
            _ => self,
        }
    }

    /// What is known, with an empty text for the copy's.
    pub fn outline(self) -> Option<OriginState> {
        self.0.outline()
    }
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

/// Bytes of the digest that are kept: it guards against accidents only.
const CHECK: usize = 8;
