//! Seals the new lines of a log.

mod walk;

use std::{collections::HashMap, fs::File, mem, path::PathBuf};

use self::walk::{Position, Walk, name_of};
use super::{
    CHECKPOINT, POSITION, SealError, SealOptions,
    folder::{Folder, PUBLIC},
    keys::{self, Chain},
    lines::{Lines, entry_of, identify, log_files},
    note::{Checkpoint, Note, SigningKey, VerifierKey},
    tree::{FULL, TileName, Tree, leaf},
};
use crate::copy::Sha256;

#[derive(Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Number of lines that this sealing added (`new`), and of all sealed lines (`size`).
    pub new: u64,
    pub size: u64,
    /// The public key, if this sealing created the log's first key.
    pub created: Option<VerifierKey>,
}

struct Writer<'a> {
    folder: &'a Folder,
    key: SigningKey,
    chain: Chain,
    created: bool,
    tree: Tree,
    /// Number of entries in the last checkpoint.
    sealed: u64,
    /// The entries after the last full bundle.
    bundle: Vec<Sha256>,
    /// The bundles and tiles that became full after the last checkpoint.
    full: Vec<(TileName, Vec<Sha256>)>,
    _lock: File,
}

/// Seals the complete lines of a log that are not sealed yet. `logs` contains the path of the log, and the paths of
/// rotated files in other folders.
///
/// With `go_on`, seals the new lines although sealed lines are missing or changed. Ends early if `stop`, which is
/// called after each `MAX_ROUND` new lines, returns true.
///
/// # Errors
/// Fails if the folder or the log cannot be used. Without `go_on`, also fails if it notices that sealed lines are
/// missing or changed.
pub fn seal(
    options: &SealOptions,
    logs: &[PathBuf],
    go_on: bool,
    stop: impl Fn() -> bool,
) -> Result<Sealed, SealError> {
    let folder = Folder(options.path.clone());
    // Fail before creating the folder if there is no line to seal.
    if !options.path.exists() && log_files(logs)?.is_empty() {
        return Err(SealError::NoLog(logs.first().cloned().unwrap_or_default()));
    }
    let mut writer = Writer::open(&folder, options)?;
    let before = writer.sealed;
    let (mut walk, mut entry) = writer.start(logs, go_on)?;
    let mut sealed = folder.entries(entry, before);
    // The sealed lines that may come later in the log. For each hash: the number of the first entry with this hash, and
    // how many entries with this hash were not found in the log yet.
    let mut elsewhere: HashMap<Sha256, (u64, u64)> = HashMap::new();
    while let Some(hash) = walk.next_entry(entry)? {
        match sealed.next().transpose()? {
            Some(sealed) if sealed == hash => {
                entry += 1;
                continue;
            }
            Some(_) if !go_on => return Err(walk.changed(entry)),
            Some(_) => {
                let first = entry.max(before.saturating_sub(MAX_KNOWN));
                for (number, sealed) in (first..).zip(folder.entries(first, before)) {
                    elsewhere.entry(sealed?).or_insert((number, 0)).1 += 1;
                }
                // From here on, each line that is not in `elsewhere` becomes a new entry.
                sealed = folder.entries(before, before);
                entry = before;
            }
            None => {}
        }
        if let Some((number, left)) = elsewhere.get_mut(&hash).filter(|(_, left)| *left > 0) {
            *left -= 1;
            walk.note_first_entry(*number);
            continue;
        }
        writer.push(hash);
        entry = writer.tree.size();
        if entry - writer.sealed >= MAX_ROUND {
            writer.commit(&mut walk)?;
            if stop() {
                break;
            }
        }
    }
    if entry < before && !go_on {
        let log = walk.path().or(logs.first().cloned()).unwrap_or_default();
        return Err(SealError::Differs(format!(
            "{}: the log was cut short: sealed lines are missing at its end ({})",
            log.display(),
            before - entry
        )));
    }
    writer.commit(&mut walk)?;
    Ok(Sealed {
        new: writer.sealed - before,
        size: writer.sealed,
        created: writer.created.then(|| writer.key.public.clone()),
    })
}

/// Replaces the private key. Returns the new public key, and the file of the checkpoint that announces it.
pub fn rotate_key(options: &SealOptions) -> Result<(VerifierKey, PathBuf), SealError> {
    let folder = Folder(options.path.clone());
    // Fail before `Writer::open` creates a folder or a key.
    Chain::load(&folder, &[])?;
    let writer = Writer::open(&folder, options)?;
    keys::rotate(&folder, &writer.key, &writer.chain, writer.checkpoint())
}

// === impl Writer ===

impl<'a> Writer<'a> {
    /// Locks and opens the folder. Checks that its tree has the root that its checkpoint states.
    fn open(folder: &'a Folder, options: &SealOptions) -> Result<Self, SealError> {
        let lock = folder.lock()?;
        let (key, chain, created) = keys::open(folder, &options.new_origin)?;
        if let Some(wanted) = options.origin.as_ref().filter(|wanted| *wanted != key.public.name()) {
            let (path, is, wanted) = (folder.0.clone(), key.public.name().to_owned(), wanted.clone());
            return Err(SealError::Origin { path, is, wanted });
        }
        let checkpoint = match chain.checkpoint(folder) {
            Ok((_, checkpoint, _)) => Some(checkpoint),
            Err(SealError::Empty(_)) => None,
            Err(error) => return Err(error),
        };
        let sealed = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
        let mut bundle = Vec::new();
        let tree = Tree::load(sealed, |name| {
            if name.level != Some(0) {
                return folder.hashes(name);
            }
            bundle = folder.hashes(TileName { level: None, ..name })?;
            Ok(bundle.iter().map(|entry| leaf(&entry.0)).collect())
        })?;
        if checkpoint.is_some_and(|checkpoint| checkpoint.root != tree.root()) {
            return Err(SealError::Damaged(folder.path("tile")));
        }
        Ok(Self {
            folder,
            key,
            chain,
            created,
            tree,
            sealed,
            bundle,
            full: Vec::new(),
            _lock: lock,
        })
    }

    /// Returns a reader that continues after the last sealed line, or earlier if lines must be compared first. Also
    /// returns the number of the entry for the next line.
    fn start(&self, logs: &[PathBuf], go_on: bool) -> Result<(Walk, u64), SealError> {
        let saved = self.folder.read(POSITION)?;
        let mut saved: Option<(Position, Vec<Sha256>)> = saved.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // If the log still begins with the line that the position names, it was not rotated.
        let current = match (&saved, logs) {
            (Some((position, _)), [log]) if !go_on && log.exists() => {
                identify(log)?.filter(|file| file.first == position.first)
            }
            _ => None,
        };
        let mut files = match current {
            Some(file) => vec![file],
            None => {
                let files = log_files(logs)?;
                if let Some((_, done)) = &mut saved
                    && done.len() > MAX_DONE
                {
                    done.retain(|done| files.iter().any(|file| file.first == *done));
                }
                files
            }
        };
        let saved = saved.filter(|(position, _)| !go_on || position.size <= self.sealed);
        let Some((position, done)) = saved else {
            return Ok((Walk::new(files, Vec::new()), 0));
        };
        if position.size > self.sealed {
            return Err(SealError::OldCheckpoint(self.folder.path(CHECKPOINT)));
        }
        files.sort_by_key(|file| file.first != position.first);
        let mut walk = Walk::new(files, done);
        if go_on {
            return Ok((walk, position.entry));
        }
        let Some(file) = walk.later.front().filter(|file| file.first == position.first) else {
            let text = format!(
                "the file that was sealed last (then named {}) is missing: no file of the log begins with its first \
                 line",
                position.file
            );
            return Err(SealError::Differs(text));
        };
        let mut lines = Lines::open(&file.path, position.offset.saturating_sub(position.last))?;
        let is_last = lines.next_line()?.is_some_and(|line| entry_of(line).0 == position.hash);
        if !is_last || lines.offset != position.offset {
            // The last sealed line is not at its place, so compare the whole file.
            return Ok((walk, position.entry));
        }
        let (entry, file) = (position.size, name_of(&file.path));
        walk.later.pop_front();
        walk.now = Some((lines, Position { file, ..position }));
        Ok((walk, entry))
    }

    fn push(&mut self, entry: Sha256) {
        let Self { tree, full, .. } = self;
        tree.push(leaf(&entry.0), |name, hashes| full.push((name, hashes.to_vec())));
        self.bundle.push(entry);
        if self.bundle.len() == FULL {
            let name = TileName::bundle(self.tree.size() - 1, self.tree.size());
            self.full.push((name, mem::take(&mut self.bundle)));
        }
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            origin: self.key.public.name().to_owned(),
            size: self.tree.size(),
            root: self.tree.root(),
            next_key: None,
        }
    }

    /// Writes the new entries, the tiles, the checkpoint and the position, in this order.
    fn commit(&mut self, walk: &mut Walk) -> Result<(), SealError> {
        let Some((lines, position)) = &mut walk.now else {
            return Ok(());
        };
        let size = self.tree.size();
        let mut new = mem::take(&mut self.full);
        if size > self.sealed {
            lines.sync()?;
            if !self.bundle.is_empty() {
                new.push((TileName::bundle(size - 1, size), self.bundle.clone()));
            }
            let partial = self.tree.partial_tiles(self.sealed);
            new.extend(partial.map(|(name, hashes)| (name, hashes.to_vec())));
            // The bundles are on disk before the tiles that are computed from them.
            new.sort_by_key(|(name, _)| name.level.is_some());
            let bundles = new.partition_point(|(name, _)| name.level.is_none());
            self.folder.write_hashes(&new[..bundles])?;
            self.folder.write_hashes(&new[bundles..])?;
            let note = Note::sign(self.checkpoint().to_string(), &[&self.key]);
            self.folder.write(CHECKPOINT, note, PUBLIC)?;
        }
        position.size = size;
        // A position has only numbers and texts, so this cannot fail.
        let text = serde_json::to_vec(&(&position, &walk.done)).unwrap_or_default();
        if self.folder.read(POSITION)?.as_ref() != Some(&text) {
            self.folder.write(POSITION, text, PUBLIC)?;
        }
        let full = new.iter().filter(|(name, _)| name.width == FULL);
        full.for_each(|(name, _)| self.folder.remove_partial(*name));
        self.sealed = size;
        Ok(())
    }
}

/// Maximum number of lines between two checkpoints.
const MAX_ROUND: u64 = 65_536;
/// If the log differs from its seal, how many of the newest entries to search for a line.
const MAX_KNOWN: u64 = 10_000_000;
/// How many sealed files to remember even if they are missing. A file can be missing for a moment while it is
/// compressed.
const MAX_DONE: usize = 1_000;
