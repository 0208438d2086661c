//! The keys of a sealed log: the private key that signs checkpoints, and the chain of public keys.
//!
//! A rotation replaces the key. It is recorded as a checkpoint that the old and the new key both sign, with the new key
//! in an extension line. From then on, a checkpoint of a larger tree must not be signed by the old key.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    CHECKPOINT, SealError,
    folder::{Folder, PUBLIC, SECRET},
    note::{Checkpoint, Note, NoteError, SigningKey, VerifierKey, new_seed},
};
use crate::files::{self, SecretError};

/// The public keys, from the first to the current one.
#[derive(Debug)]
pub(super) struct Chain {
    keys: Vec<VerifierKey>,
    /// The index in `keys` of the first key that is trusted. All later keys are trusted too.
    trusted_from: usize,
    /// For each rotation, its file and its checkpoint. `rotations[n]` replaced `keys[n]` by `keys[n + 1]`.
    pub(super) rotations: Vec<(PathBuf, Checkpoint)>,
}

// === impl Chain ===

impl Chain {
    /// Loads the public keys of a folder and checks each rotation. If `trusted` is not empty, keys of the folder that
    /// are older than all keys in `trusted` are not trusted.
    pub(super) fn load(folder: &Folder, trusted: &[VerifierKey]) -> Result<Self, SealError> {
        let Some(first) = folder.read(VKEY)? else {
            return Err(SealError::Empty(folder.0.clone()));
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

    /// Checks a key rotation. `bytes` is the content of its file: a checkpoint, which must be signed by the newest key
    /// in `self` and by the key that replaces it. Returns the new key and the checkpoint.
    fn rotated(&self, bytes: &[u8]) -> Result<(VerifierKey, Checkpoint), NoteError> {
        let (note, checkpoint) = parse(bytes)?;
        let next = checkpoint.next_key.clone().ok_or(NoteError::Checkpoint)?;
        for key in [self.current(), &next] {
            if !note.is_signed_by(key)? {
                return Err(NoteError::Unsigned);
            }
        }
        match checkpoint.origin == next.name() {
            true => Ok((next, checkpoint)),
            false => Err(NoteError::Checkpoint),
        }
    }

    /// Returns whether the folder has a rotation with the same tree size and the same new key as this checkpoint.
    pub(super) fn has_rotation(&self, announced: &Checkpoint) -> bool {
        let mut rotations = self.rotations.iter().map(|(_, checkpoint)| checkpoint);
        rotations.any(|known| (known.size, &known.next_key) == (announced.size, &announced.next_key))
    }

    pub(super) fn current(&self) -> &VerifierKey {
        // There is a last key, because `load` adds the first one.
        &self.keys[self.keys.len() - 1]
    }

    /// Reads the folder's checkpoint and checks its signature. Returns its bytes, its parsed form, and the key that
    /// signed it.
    pub(super) fn checkpoint(&self, folder: &Folder) -> Result<(Vec<u8>, Checkpoint, &VerifierKey), SealError> {
        let bytes = folder.read(CHECKPOINT)?;
        let bytes = bytes.ok_or_else(|| SealError::Empty(folder.0.clone()))?;
        let (checkpoint, key) = self.check(&bytes, &folder.path(CHECKPOINT))?;
        Ok((bytes, checkpoint, key))
    }

    /// Checks the signature of a checkpoint. Returns its parsed form, and the key that signed it.
    pub(super) fn check(&self, bytes: &[u8], path: &Path) -> Result<(Checkpoint, &VerifierKey), SealError> {
        self.checked(bytes).map_err(NoteError::of(path))
    }

    fn checked(&self, bytes: &[u8]) -> Result<(Checkpoint, &VerifierKey), NoteError> {
        let (note, checkpoint) = parse(bytes)?;
        let mut error = NoteError::Unsigned;
        for (at, key) in self.keys.iter().enumerate().skip(self.trusted_from) {
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

/// Loads the private key. If the folder has no key yet, creates one with the name `origin`, and returns `true` as the
/// last value. If the program was killed during a rotation, completes the rotation.
pub(super) fn open(folder: &Folder, origin: &str) -> Result<(SigningKey, Chain, bool), SealError> {
    let is_new = folder.read(VKEY)?.is_none();
    if is_new {
        if folder.read(CHECKPOINT)?.is_some() {
            return Err(SealError::Damaged(folder.path(VKEY)));
        }
        // The program can have been killed after it wrote the private key and before it wrote the public one. Then the
        // private key is used.
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
    // The file has two private keys if the program was killed during a rotation. Keeps only the one that belongs to the
    // current public key.
    if seed != seeds {
        folder.write(KEY, seed, SECRET)?;
    }
    Ok((key, chain, is_new))
}

/// Replaces `key`, which signs the checkpoints of a folder, by a new key. `checkpoint` is the folder's current
/// checkpoint. Returns the new public key.
pub(super) fn rotate(
    folder: &Folder,
    key: &SigningKey,
    chain: &Chain,
    checkpoint: Checkpoint,
) -> Result<VerifierKey, SealError> {
    let (new, old) = (seed(folder)?, seeds(folder)?);
    let next = SigningKey::of_seed(&checkpoint.origin, new.as_bytes()).map_err(NoteError::of(&folder.path(KEY)))?;
    let announcement = Checkpoint {
        next_key: Some(next.public.clone()),
        ..checkpoint
    };
    let note = Note::sign(announcement.to_string(), &[key, &next]);
    // Both private keys are on disk before a file announces the new public key. So `open` can complete the rotation if
    // the program is killed between these writes.
    folder.write(KEY, [old.trim_ascii_end(), b"\n", new.as_bytes()].concat(), SECRET)?;
    folder.write(&rotation(chain.keys.len()), note.clone(), PUBLIC)?;
    folder.write(CHECKPOINT, note, PUBLIC)?;
    folder.write(KEY, new, SECRET)?;
    Ok(next.public)
}

/// Reads the file of the private key. Each line is the seed of a key: one line, or two during a rotation. Returns no
/// bytes if there is no such file.
fn seeds(folder: &Folder) -> Result<Vec<u8>, SealError> {
    match files::read_secret(&folder.path(KEY)) {
        Err(SecretError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        seeds => Ok(seeds?),
    }
}

/// Returns the random seed of a new private key.
fn seed(folder: &Folder) -> Result<String, SealError> {
    new_seed().map_err(SealError::write(&folder.path(KEY)))
}

/// Returns the file name of the rotation with this number. The first one has the number 1.
fn rotation(number: usize) -> String {
    format!("rotations/{number:03}")
}

const KEY: &str = "key";
/// The file of the first public key. The files of the rotations contain the others.
pub(super) const VKEY: &str = "vkey";
