//! The keys of a sealed log: the private one that signs, and the chain of public ones that rotations announced.
//!
//! A rotation replaces a key: it is a checkpoint that the old and the new key sign, with the new key in an extension
//! line. The old key may sign no checkpoint of a larger tree from then on.

use std::path::{Path, PathBuf};

use super::{
    SealError,
    folder::{Folder, PUBLIC, SECRET},
    note::{Checkpoint, Note, NoteError, SigningKey, VerifierKey},
};
use crate::files::{self, SecretError};

/// The public keys, from the first to the current one.
#[derive(Debug)]
pub(super) struct Chain {
    keys: Vec<ChainKey>,
    /// The first key whose signatures count.
    trusted_from: usize,
    /// The file and the checkpoint of each rotation.
    pub(super) rotations: Vec<(PathBuf, Checkpoint)>,
}

#[derive(Debug)]
struct ChainKey {
    key: VerifierKey,
    /// The size of the tree when the key was replaced.
    until: Option<u64>,
}

// === impl Chain ===

impl Chain {
    /// Loads the keys and checks each rotation. With `trusted` keys, no older key counts.
    pub(super) fn load(folder: &Folder, trusted: &[VerifierKey]) -> Result<Self, SealError> {
        let path = folder.path(VKEYS);
        let Some(vkeys) = folder.read(VKEYS)? else {
            return Err(SealError::Empty(folder.0.clone()));
        };
        let vkeys = String::from_utf8_lossy(&vkeys);
        let first = VerifierKey::parse(vkeys.lines().next().unwrap_or_default());
        let mut chain = Self {
            keys: Vec::new(),
            trusted_from: 0,
            rotations: Vec::new(),
        };
        chain.add(first.map_err(|error| SealError::Note { path, error })?);
        while let Some(bytes) = folder.read(&rotation(chain.rotations.len() + 1))? {
            let path = folder.path(&rotation(chain.rotations.len() + 1));
            let (note, checkpoint) = parse(&bytes, &path)?;
            let (checkpoint, next) = chain.rotated(&note, checkpoint).map_err(|error| SealError::Note {
                path: path.clone(),
                error,
            })?;
            if let Some(last) = chain.keys.last_mut() {
                last.until = Some(checkpoint.size);
            }
            chain.add(next);
            chain.rotations.push((path, checkpoint));
        }
        if !trusted.is_empty() {
            let first = chain.keys.iter().position(|known| trusted.contains(&known.key));
            chain.trusted_from = first.ok_or_else(|| SealError::Untrusted(folder.0.clone()))?;
        }
        Ok(chain)
    }

    fn add(&mut self, key: VerifierKey) {
        self.keys.push(ChainKey { key, until: None });
    }

    /// Checks a rotation from the last key.
    fn rotated(&self, note: &Note, checkpoint: Checkpoint) -> Result<(Checkpoint, VerifierKey), NoteError> {
        let next = checkpoint.next_key.clone().ok_or(NoteError::Checkpoint)?;
        for key in [self.current(), &next] {
            if !note.is_signed_by(key)? {
                return Err(NoteError::Unsigned);
            }
        }
        match checkpoint.origin == next.name() {
            true => Ok((checkpoint, next)),
            false => Err(NoteError::Checkpoint),
        }
    }

    /// Returns whether a rotation has the size and the new key of this checkpoint.
    pub(super) fn has_rotation(&self, announced: &Checkpoint) -> bool {
        let mut rotations = self.rotations.iter().map(|(_, checkpoint)| checkpoint);
        rotations.any(|known| (known.size, &known.next_key) == (announced.size, &announced.next_key))
    }

    pub(super) fn current(&self) -> &VerifierKey {
        // `load` adds the first key.
        &self.keys[self.keys.len() - 1].key
    }

    /// Checks the signature of a checkpoint. Returns the checkpoint and the key that signed it.
    pub(super) fn check(&self, bytes: &[u8], path: &Path) -> Result<(Checkpoint, &VerifierKey), SealError> {
        let (note, checkpoint) = parse(bytes, path)?;
        let failed = |error| SealError::Note {
            path: path.to_owned(),
            error,
        };
        let mut replaced = None;
        for ChainKey { key, until } in &self.keys[self.trusted_from..] {
            let is_signed = checkpoint.origin == key.name() && note.is_signed_by(key).map_err(failed)?;
            match until {
                _ if !is_signed => {}
                Some(until) if checkpoint.size > *until => replaced = Some(*until),
                _ => return Ok((checkpoint, key)),
            }
        }
        Err(match replaced {
            Some(size) => SealError::Replaced {
                path: path.to_owned(),
                size,
            },
            None => failed(NoteError::Unsigned),
        })
    }

    /// Returns the text of the file of public keys.
    fn text(&self) -> String {
        self.keys.iter().map(|known| format!("{}\n", known.key)).collect()
    }
}

fn parse(bytes: &[u8], path: &Path) -> Result<(Note, Checkpoint), SealError> {
    let note = Note::parse(bytes);
    let parsed = note.and_then(|note| Checkpoint::parse(&note.text).map(|checkpoint| (note, checkpoint)));
    parsed.map_err(|error| SealError::Note {
        path: path.to_owned(),
        error,
    })
}

/// Loads the private key, and finishes a rotation that was killed. Creates the key of a new folder with the name
/// `origin`. Returns whether it did.
pub(super) fn open(folder: &Folder, origin: &str) -> Result<(SigningKey, Chain, bool), SealError> {
    if folder.read(VKEYS)?.is_none() {
        if folder.read(super::CHECKPOINT)?.is_some() {
            return Err(SealError::Damaged(folder.path(VKEYS)));
        }
        let key = match read_key(folder, KEY)? {
            // The creation was killed in between.
            Some(key) => key,
            None => {
                let key = SigningKey::generate(origin).map_err(|error| SealError::Write {
                    path: folder.path(KEY),
                    error,
                })?;
                write(folder, KEY, key.text(), SECRET)?;
                key
            }
        };
        write(folder, VKEYS, format!("{}\n", key.public), PUBLIC)?;
        return Ok((key, Chain::load(folder, &[])?, true));
    }
    let chain = Chain::load(folder, &[])?;
    let key = read_key(folder, KEY)?.filter(|key| key.public == *chain.current());
    let key = match key {
        Some(key) => key,
        None => {
            let next = read_key(folder, NEXT_KEY)?.filter(|next| next.public == *chain.current());
            let next = next.ok_or_else(|| SealError::NoKey {
                path: folder.path(KEY),
                id: chain.current().id_text(),
            })?;
            folder.rename(NEXT_KEY, KEY)?;
            next
        }
    };
    let text = chain.text();
    if folder.read(VKEYS)?.as_deref() != Some(text.as_bytes()) {
        write(folder, VKEYS, text, PUBLIC)?;
    }
    Ok((key, chain, false))
}

/// Replaces the key. `checkpoint` is the current one.
pub(super) fn rotate(
    folder: &Folder,
    key: &SigningKey,
    chain: &Chain,
    checkpoint: Checkpoint,
) -> Result<VerifierKey, SealError> {
    let next = SigningKey::generate(&checkpoint.origin).map_err(|error| SealError::Write {
        path: folder.path(NEXT_KEY),
        error,
    })?;
    let announcement = Checkpoint {
        next_key: Some(next.public.clone()),
        ..checkpoint
    };
    let note = Note::sign(announcement.to_string(), &[key, &next]).to_string();
    // The new key is on disk before anything announces it. From the announcement on, `open` finishes the rotation.
    write(folder, NEXT_KEY, next.text(), SECRET)?;
    write(folder, &rotation(chain.rotations.len() + 1), note.clone(), PUBLIC)?;
    write(folder, super::CHECKPOINT, note, PUBLIC)?;
    folder.rename(NEXT_KEY, KEY)?;
    write(folder, VKEYS, format!("{}{}\n", chain.text(), next.public), PUBLIC)?;
    Ok(next.public)
}

fn read_key(folder: &Folder, name: &str) -> Result<Option<SigningKey>, SealError> {
    let path = folder.path(name);
    let bytes = match files::read_secret(&path) {
        Ok(bytes) => bytes,
        Err(SecretError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let key = str::from_utf8(&bytes)
        .map_err(|_| NoteError::Key)
        .and_then(SigningKey::parse);
    key.map(Some).map_err(|error| SealError::Note { path, error })
}

fn write(folder: &Folder, name: &str, text: String, mode: u32) -> Result<(), SealError> {
    let mut batch = folder.batch();
    batch.write(name, text.as_bytes(), mode)?;
    batch.sync()
}

fn rotation(number: usize) -> String {
    format!("rotations/{number:03}")
}

const KEY: &str = "key";
/// The next private key, while it is announced.
const NEXT_KEY: &str = "key.next";
/// All public keys, the first one first.
pub(super) const VKEYS: &str = "vkeys";
