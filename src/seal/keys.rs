//! The keys of a sealed log: the private key that signs checkpoints, and the chain of public keys.
//!
//! A rotation replaces the key. It is a checkpoint that the old and the new key both sign, with the new key in an
//! extension line. A signature of the old key is refused if its checkpoint has more entries than the rotation.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    CHECKPOINT, POSITION, SealError,
    folder::{Folder, PUBLIC, SECRET},
    note::{Checkpoint, Note, NoteError, SigningKey, VerifierKey, new_seed},
};
use crate::files::{self, SecretError};

#[derive(Debug)]
pub(super) struct Chain {
    keys: Vec<VerifierKey>,
    /// The index of the first trusted key. All later keys are trusted too.
    trusted_from: usize,
    /// `rotations[n]` is the file and the checkpoint by which `keys[n + 1]` replaced `keys[n]`.
    pub(super) rotations: Vec<(PathBuf, Checkpoint)>,
}

// === impl Chain ===

impl Chain {
    /// Loads the keys in the folder, and checks each rotation. If `trusted` is empty, trusts all of them. Otherwise,
    /// trusts the oldest key that is in `trusted`, and all newer keys.
    pub(super) fn load(folder: &Folder, trusted: &[VerifierKey]) -> Result<Self, SealError> {
        let Some(first) = folder.read(VKEY)? else {
            return Err(match folder.read(CHECKPOINT)? {
                Some(_) => SealError::Damaged(folder.path(VKEY)),
                None => SealError::Empty(folder.0.clone()),
            });
        };
        let first = VerifierKey::parse(&String::from_utf8_lossy(&first));
        let mut chain = Self {
            keys: vec![first.map_err(NoteError::of(&folder.path(VKEY)))?],
            trusted_from: 0,
            rotations: Vec::new(),
        };
        loop {
            let name = rotation(chain.keys.len());
            let Some(bytes) = folder.read(&name)? else {
                break;
            };
            let path = folder.path(&name);
            let (next, checkpoint) = chain.rotated(&bytes).map_err(NoteError::of(&path))?;
            chain.keys.push(next);
            chain.rotations.push((path, checkpoint));
        }
        if !trusted.is_empty() {
            let first = chain.keys.iter().position(|known| trusted.contains(known));
            chain.trusted_from = first.ok_or_else(|| SealError::Untrusted(folder.0.clone()))?;
        }
        Ok(chain)
    }

    /// Checks that the current key and the new one signed a rotation.
    fn rotated(&self, bytes: &[u8]) -> Result<(VerifierKey, Checkpoint), NoteError> {
        let (note, checkpoint) = parse(bytes)?;
        let next = checkpoint.next_key.clone().ok_or(NoteError::Checkpoint)?;
        for key in [self.current(), &next] {
            if !note.is_signed_by(key)? {
                return Err(NoteError::Signature);
            }
        }
        match checkpoint.origin == next.name() {
            true => Ok((next, checkpoint)),
            false => Err(NoteError::Checkpoint),
        }
    }

    pub(super) fn has_rotation(&self, announced: &Checkpoint) -> bool {
        let mut rotations = self.rotations.iter().map(|(_, checkpoint)| checkpoint);
        rotations.any(|known| (known.size, &known.next_key) == (announced.size, &announced.next_key))
    }

    pub(super) fn current(&self) -> &VerifierKey {
        // `load` adds the first key, so there is a last one.
        &self.keys[self.keys.len() - 1]
    }

    pub(super) fn checkpoint(&self, folder: &Folder) -> Result<(Vec<u8>, Checkpoint, &VerifierKey), SealError> {
        let Some(bytes) = folder.read(CHECKPOINT)? else {
            // A folder with a position or a rotation had a checkpoint. Do not call it empty: a new tree would
            // contradict the checkpoints that were handed out before.
            return Err(match folder.read(POSITION)?.is_some() || !self.rotations.is_empty() {
                true => SealError::Damaged(folder.path(CHECKPOINT)),
                false => SealError::Empty(folder.0.clone()),
            });
        };
        let (checkpoint, key) = self.check(&bytes, &folder.path(CHECKPOINT))?;
        Ok((bytes, checkpoint, key))
    }

    pub(super) fn check(&self, bytes: &[u8], path: &Path) -> Result<(Checkpoint, &VerifierKey), SealError> {
        self.checked(bytes).map_err(NoteError::of(path))
    }

    fn checked(&self, bytes: &[u8]) -> Result<(Checkpoint, &VerifierKey), NoteError> {
        let (note, checkpoint) = parse(bytes)?;
        let mut error = NoteError::Unsigned;
        // A wrong signature of a key that is not trusted does not matter.
        for (key, (_, replaced)) in self.keys[..self.trusted_from].iter().zip(&self.rotations) {
            if note.is_signed_by(key) == Ok(true) {
                error = match checkpoint.size > replaced.size {
                    true => NoteError::Replaced(replaced.size),
                    false => NoteError::OlderKey,
                };
            }
        }
        // The old and the new key both sign a rotation. Return the new one.
        for (at, key) in self.keys.iter().enumerate().skip(self.trusted_from).rev() {
            if checkpoint.origin != key.name() || !note.is_signed_by(key)? {
                continue;
            }
            match self.rotations.get(at) {
                Some((_, replaced)) if checkpoint.size > replaced.size => error = NoteError::Replaced(replaced.size),
                _ => return Ok((checkpoint, key)),
            }
        }
        Err(error)
    }
}

fn parse(bytes: &[u8]) -> Result<(Note, Checkpoint), NoteError> {
    let note = Note::parse(bytes)?;
    let checkpoint = Checkpoint::parse(&note.text)?;
    Ok((note, checkpoint))
}

/// Loads the private key, and completes or undoes an interrupted rotation. If there is no public key, creates the keys
/// with the name `origin` and returns `true`.
pub(super) fn open(folder: &Folder, origin: &str) -> Result<(SigningKey, Chain, bool), SealError> {
    let is_new = folder.read(VKEY)?.is_none();
    if is_new {
        if folder.read(CHECKPOINT)?.is_some() {
            return Err(SealError::Damaged(folder.path(VKEY)));
        }
        // If the program was killed before it wrote the public key, the private key exists already and is used.
        if seeds(folder)?.is_empty() {
            folder.write(KEY, seed(folder)?, SECRET)?;
        }
        let key = SigningKey::of_seed(origin, &seeds(folder)?).map_err(NoteError::of(&folder.path(KEY)))?;
        folder.write(VKEY, format!("{}\n", key.public), PUBLIC)?;
    }
    let chain = Chain::load(folder, &[])?;
    let (name, seeds) = (chain.current().name(), seeds(folder)?);
    let mut keys = seeds.split_inclusive(|byte| *byte == b'\n').filter_map(|seed| {
        let key = SigningKey::of_seed(name, seed).ok()?;
        (key.public == *chain.current()).then_some((key, seed))
    });
    let (key, seed) = keys.next().ok_or_else(|| SealError::NoKey {
        path: folder.path(KEY),
        id: chain.current().id_text(),
    })?;
    // An interrupted rotation leaves two private keys. Keep only the one of the current public key.
    if seed != seeds {
        folder.write(KEY, seed, SECRET)?;
    }
    Ok((key, chain, is_new))
}

/// Replaces `key` by a new key. Returns the new public key, and the file of the checkpoint that announces it.
pub(super) fn rotate(
    folder: &Folder,
    key: &SigningKey,
    chain: &Chain,
    checkpoint: Checkpoint,
) -> Result<(VerifierKey, PathBuf), SealError> {
    let (new, old) = (seed(folder)?, seeds(folder)?);
    let next = SigningKey::of_seed(&checkpoint.origin, new.as_bytes()).map_err(NoteError::of(&folder.path(KEY)))?;
    let announcement = Checkpoint {
        next_key: Some(next.public.clone()),
        ..checkpoint
    };
    let note = Note::sign(announcement.to_string(), &[key, &next]);
    // Write both private keys before a file announces the new public key, so that `open` can complete the rotation.
    folder.write(KEY, [old.trim_ascii_end(), b"\n", new.as_bytes()].concat(), SECRET)?;
    let announced_in = rotation(chain.keys.len());
    folder.write(&announced_in, note.clone(), PUBLIC)?;
    folder.write(CHECKPOINT, note, PUBLIC)?;
    folder.write(KEY, new, SECRET)?;
    Ok((next.public, folder.path(&announced_in)))
}

/// Each line of the file is the seed of a key; during a rotation, there are two.
fn seeds(folder: &Folder) -> Result<Vec<u8>, SealError> {
    match files::read_secret(&folder.path(KEY)) {
        Err(SecretError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        seeds => Ok(seeds?),
    }
}

fn seed(folder: &Folder) -> Result<String, SealError> {
    new_seed().map_err(SealError::write(&folder.path(KEY)))
}

/// The first rotation has the number 1.
fn rotation(number: usize) -> String {
    format!("rotations/{number:03}")
}

const KEY: &str = "key";
/// The file of the first public key. The files of the rotations contain the others.
pub(super) const VKEY: &str = "vkey";
