//! Seals the new lines of a log.

use std::{
    collections::{HashSet, VecDeque},
    fs::File,
    mem,
    path::{Path, PathBuf},
};

use super::{
    CHECKPOINT, SealError, SealOptions,
    folder::{Folder, PUBLIC},
    keys::{self, Chain},
    lines::{Lines, LogFile, entry_of, identify, log_files},
    note::{Checkpoint, Note, SigningKey, VerifierKey},
    tree::{FULL, TileName, Tree, leaf},
};
use crate::copy::Sha256;

/// The result of a sealing.
#[derive(Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Number of lines that this sealing added (`new`), and of all sealed lines (`size`).
    pub new: u64,
    pub size: u64,
    /// The public key, if this sealing created the log's first key.
    pub created: Option<VerifierKey>,
}

/// A locked folder, and the tree in it, to which new entries are added.
struct Writer<'a> {
    folder: &'a Folder,
    key: SigningKey,
    chain: Chain,
    created: bool,
    tree: Tree,
    /// The number of entries in the last checkpoint.
    sealed: u64,
    /// The entries after the last full bundle.
    bundle: Vec<Sha256>,
    /// The bundles and tiles that became full after the last checkpoint.
    full: Vec<(TileName, Vec<Sha256>)>,
    _lock: File,
}

/// The place in the log up to which lines are sealed. A file in the folder keeps it. Only sealing needs that file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Position {
    /// Number of sealed lines before this position.
    size: u64,
    /// The name of the log file, for error messages.
    file: String,
    /// The hash of the file's first line (`first`) and its number among all entries (`entry`). The hash identifies the
    /// file after a rotation renamed it.
    first: Sha256,
    entry: u64,
    /// Length of the sealed part of the file, in bytes.
    offset: u64,
    /// Length of the last sealed line with its line feed, in bytes (`last`), and its hash (`hash`).
    last: u64,
    hash: Sha256,
}

/// Reads the lines of all log files one after the other, the oldest file first.
struct Walk {
    /// The file that is being read. `None` before the first line.
    now: Option<(Lines, Position)>,
    /// The files that are read after `now`.
    later: VecDeque<LogFile>,
    /// The files that are completely sealed, each as the hash of its first line. Times could not tell which files are
    /// sealed, because clocks can be set back.
    done: Vec<Sha256>,
}

/// Seals the complete lines of a log that are not sealed yet. `logs` is the path of the log, and also those of its
/// rotated files if they are in another folder.
///
/// If sealed lines are missing or changed, this fails, unless `go_on` is set. With `go_on`, it reads again from the
/// start of the file in which the last sealing stopped, and seals each line whose hash is not an entry yet.
///
/// When `stop` returns true, sealing ends early.
///
/// # Errors
/// Fails if the folder cannot be used. Also fails, and seals nothing, if sealed lines are missing or changed and
/// `go_on` is not set.
pub fn seal(
    options: &SealOptions,
    logs: &[PathBuf],
    go_on: bool,
    stop: impl Fn() -> bool,
) -> Result<Sealed, SealError> {
    let folder = Folder(options.path.clone());
    // If there is no line to seal, this fails before it creates the folder.
    if !options.path.exists() && log_files(logs)?.is_empty() {
        return Err(SealError::NoLog(logs.first().cloned().unwrap_or_default()));
    }
    let mut writer = Writer::open(&folder, options)?;
    let before = writer.sealed;
    let (mut walk, mut entry) = writer.start(logs, go_on)?;
    let mut sealed = folder.entries(entry, before);
    // Hashes of sealed lines that may follow later in the log, at another place than before. They must not be sealed
    // twice.
    let mut elsewhere = HashSet::new();
    while let Some(hash) = walk.next_entry(entry)? {
        match sealed.next().transpose()? {
            Some(sealed) if sealed == hash => {
                entry += 1;
                continue;
            }
            Some(_) if !go_on => return Err(walk.changed(entry)),
            Some(_) => {
                let looked_for = folder.entries(entry.max(before.saturating_sub(MAX_KNOWN)), before);
                elsewhere = looked_for.collect::<Result<_, _>>()?;
                sealed = folder.entries(before, before);
                // From this line on, the lines of the file become new entries, after all old ones. Move the number of
                // the file's first entry by the same distance, because later errors compute line numbers from it.
                if let Some((_, position)) = &mut walk.now {
                    position.entry += before - entry;
                }
                entry = before;
            }
            None => {}
        }
        if elsewhere.remove(&hash) {
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
        return Err(SealError::Differs(format!(
            "{}: the last {} sealed lines are missing: the log was cut short",
            walk.path().display(),
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

/// Replaces the private key of a folder with a new one. Returns the new public key.
///
/// # Errors
/// Fails if the folder cannot be used.
pub fn rotate_key(options: &SealOptions) -> Result<VerifierKey, SealError> {
    let folder = Folder(options.path.clone());
    if folder.read(keys::VKEY)?.is_none() {
        return Err(SealError::Empty(folder.0));
    }
    let writer = Writer::open(&folder, options)?;
    keys::rotate(&folder, &writer.key, &writer.chain, writer.checkpoint())
}

// === impl Writer ===

impl<'a> Writer<'a> {
    /// Locks and opens the folder, and creates it if necessary. Checks that the tree in it has the root that its
    /// checkpoint states.
    fn open(folder: &'a Folder, options: &SealOptions) -> Result<Self, SealError> {
        let lock = folder.lock()?;
        let (key, chain, created) = keys::open(folder, &options.new_origin)?;
        if let Some(wanted) = options.origin.as_ref().filter(|wanted| *wanted != key.public.name()) {
            let (path, is, wanted) = (folder.0.clone(), key.public.name().to_owned(), wanted.clone());
            return Err(SealError::Origin { path, is, wanted });
        }
        let checkpoint = match chain.checkpoint(folder) {
            Ok((_, checkpoint, _)) => Some(checkpoint),
            // The folder has the file of the position in the log, or the file of a key rotation. Both are written only
            // after a checkpoint, so somebody removed the checkpoint. A new tree would contradict the checkpoints that
            // were handed out before.
            Err(SealError::Empty(_)) if folder.read(POSITION)?.is_some() || !chain.rotations.is_empty() => {
                return Err(SealError::Damaged(folder.path(CHECKPOINT)));
            }
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

    /// Returns a reader that continues after the last sealed line, or earlier if lines have to be compared. Also
    /// returns the number of the entry that belongs to the next line.
    fn start(&self, logs: &[PathBuf], go_on: bool) -> Result<(Walk, u64), SealError> {
        let saved = self.folder.read(POSITION)?;
        let mut saved: Option<(Position, Vec<Sha256>)> = saved.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // If the log still begins with the same line, it was not rotated, and no other file has new lines. This check
        // is cheap.
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
        // If the program was killed before it first wrote the position in the log, there is none. Then all lines are
        // compared with the entries.
        let Some((position, done)) = saved else {
            return Ok((Walk::new(files, Vec::new()), 0));
        };
        if position.size > self.sealed {
            return Err(SealError::Differs(format!(
                "{}: it is older than the last sealing. Restore the whole folder from one backup",
                self.folder.path(CHECKPOINT).display()
            )));
        }
        files.sort_by_key(|file| file.first != position.first);
        let mut walk = Walk::new(files, done);
        if go_on {
            return Ok((walk, position.entry));
        }
        let Some(file) = walk.later.front().filter(|file| file.first == position.first) else {
            let text = format!(
                "the file of the log that was sealed last, {}, is missing: neither the log nor a rotated file begins with \
                 its first line",
                position.file
            );
            return Err(SealError::Differs(text));
        };
        let mut lines = Lines::open(&file.path, position.offset.saturating_sub(position.last))?;
        let is_last = lines.next_line()?.is_some_and(|line| entry_of(line).0 == position.hash);
        if !is_last || lines.offset != position.offset {
            // The last sealed line is not at its place: lines were erased or changed. Compare the whole file with its
            // entries.
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
            // Bundles of entries are written before the tiles.
            new.sort_by_key(|(name, _)| name.level.is_some());
            let bundles = new.partition_point(|(name, _)| name.level.is_none());
            self.folder.write_hashes(&new[..bundles])?;
            self.folder.write_hashes(&new[bundles..])?;
            let note = Note::sign(self.checkpoint().to_string(), &[&self.key]);
            self.folder.write(CHECKPOINT, note, PUBLIC)?;
        }
        position.size = size;
        // This cannot fail, because a position consists only of numbers and texts.
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

// === impl Walk ===

impl Walk {
    /// Creates a reader of all files that are not in `done`. It starts before the first line of the oldest one.
    fn new(mut files: Vec<LogFile>, done: Vec<Sha256>) -> Self {
        files.retain(|file| !done.contains(&file.first));
        Self {
            now: None,
            later: files.into(),
            done,
        }
    }

    /// Reads the next line and returns its hash. `entry` is the number of the entry that belongs to the line.
    fn next_entry(&mut self, entry: u64) -> Result<Option<Sha256>, SealError> {
        if let Some((lines, position)) = &mut self.now {
            let start = lines.offset;
            if let Some(line) = lines.next_line()? {
                position.hash = entry_of(line).0;
                (position.offset, position.last) = (lines.offset, lines.offset - start);
                return Ok(Some(position.hash));
            }
        }
        // The current file has no more lines. The next file already had a line when the files were listed, so the proxy
        // does not write to the current one any more.
        let Some(file) = self.later.pop_front() else {
            return Ok(None);
        };
        let mut lines = Lines::open(&file.path, 0)?;
        if lines.next_line()?.map(|line| entry_of(line).0) != Some(file.first) {
            // After the files were listed, a rotation renamed this one. The next sealing finds it under its new name.
            self.later.clear();
            return Ok(None);
        }
        let position = Position {
            size: entry,
            file: name_of(&file.path),
            first: file.first,
            entry,
            offset: lines.offset,
            last: lines.offset,
            hash: file.first,
        };
        if let Some((ended, position)) = self.now.replace((lines, position)) {
            ended.sync()?;
            self.done.push(position.first);
        }
        Ok(Some(file.first))
    }

    /// Returns the error for a line whose hash is not the entry with the number `entry`.
    fn changed(&self, entry: u64) -> SealError {
        let first = self.now.as_ref().map_or(0, |(_, position)| position.entry);
        SealError::Differs(format!(
            "{}:{}: this is not the line that was sealed (entry {entry}): it was changed, or lines before it were added \
             or removed",
            self.path().display(),
            entry.saturating_sub(first) + 1
        ))
    }

    fn path(&self) -> PathBuf {
        self.now
            .as_ref()
            .map(|(lines, _)| lines.path.clone())
            .unwrap_or_default()
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Maximum number of lines between two checkpoints.
const MAX_ROUND: u64 = 65_536;
/// If the log differs, how many of the newest entries are searched for the hash of a line.
const MAX_KNOWN: u64 = 10_000_000;
/// Maximum number of completely sealed files that are remembered. Files that no longer exist are among them, because a
/// file can be gone for a moment while it is compressed.
const MAX_DONE: usize = 1_000;
const POSITION: &str = "position";
