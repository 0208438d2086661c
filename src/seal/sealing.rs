//! Seals the new lines of a log.

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    path::{Path, PathBuf},
};

use super::{
    CHECKPOINT, SealError, SealOptions,
    folder::{Folder, PUBLIC},
    keys::{self, Chain},
    lines::{Lines, LogFile, entry_of, identify, log_files},
    note::{Checkpoint, Note, SigningKey, VerifierKey},
    tree::{self, FULL, TileName, Tree},
};
use crate::copy::Sha256;

/// What a sealing did.
#[derive(Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Number of lines that this sealing added, and of all.
    pub new: u64,
    pub size: u64,
    /// The public key, if this sealing created the key.
    pub created: Option<VerifierKey>,
}

/// An open folder, locked, to append to.
struct Writer<'a> {
    folder: &'a Folder,
    key: SigningKey,
    chain: Chain,
    created: bool,
    tree: Tree,
    /// The size of the tree in the checkpoint.
    sealed: u64,
    /// The entries of the partial bundle.
    bundle: Vec<Sha256>,
    /// What became full since the checkpoint.
    full_bundles: Vec<(TileName, Vec<Sha256>)>,
    full_tiles: Vec<(TileName, Vec<Sha256>)>,
    /// The bundle that a line was last compared with.
    compared: Option<(TileName, Vec<Sha256>)>,
    _lock: File,
}

/// Where in the log sealing stopped. Kept in the folder, as a file that only the sealer needs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Position {
    /// The size of the tree here.
    size: u64,
    /// The name of the file, to show.
    file: String,
    /// Its first line and its time, which identify the file after a rotation.
    first: Sha256,
    time: String,
    /// The entry of its first line.
    entry: u64,
    /// Bytes of the sealed lines in it, and of the last of them with its line feed.
    offset: u64,
    last: u64,
}

/// Goes through the files of the log.
struct Walk {
    /// The files after the current one.
    later: VecDeque<LogFile>,
    /// `None` before the first line of a new log.
    now: Option<(Lines, Position)>,
}

/// Seals the complete lines of a log that are not sealed yet. `logs` are the log and, if they lie elsewhere, its
/// rotated files. With `go_on`, goes on after the last line that it knows, although sealed lines are missing or
/// changed. Ends early once `stop` returns true.
///
/// # Errors
/// Fails if the folder cannot be used, and if sealed lines are found to be missing or changed. It then seals nothing.
pub fn seal(
    options: &SealOptions,
    logs: &[PathBuf],
    go_on: bool,
    stop: impl Fn() -> bool,
) -> Result<Sealed, SealError> {
    let folder = Folder(options.path.clone());
    // Before the folder is made.
    let files = || log_files(logs);
    if !options.path.exists() && files()?.is_empty() {
        return Err(SealError::NoLog(logs.first().cloned().unwrap_or_default()));
    }
    let mut writer = Writer::open(&folder, options)?;
    let before = writer.sealed;
    let position = writer.position()?;
    // A log that was not rotated meanwhile is one file. Finding that out is cheap.
    let current = match (logs, &position) {
        ([log], Some(position)) if !go_on && log.exists() => identify(log)?
            .filter(|file| file.first == position.first)
            .map(|file| vec![file]),
        _ => None,
    };
    let files = current.map_or_else(files, Ok)?;
    let (mut walk, mut entry) = match go_on {
        true => writer.after_the_last_known(files, position.as_ref())?,
        false => writer.go_to(files, position)?,
    };
    while let Some(hash) = walk.next_entry(entry)? {
        if entry >= writer.sealed {
            writer.push(hash);
        } else if writer.entry(entry)? != hash {
            return Err(SealError::Changed {
                path: walk.path(),
                line: entry.saturating_sub(walk.first_entry()) + 1,
                entry,
            });
        }
        entry += 1;
        if writer.tree.size() - writer.sealed >= MAX_ROUND {
            writer.commit(&walk)?;
            if stop() {
                break;
            }
        }
    }
    if entry < writer.sealed {
        return Err(SealError::CutShort {
            path: walk.path(),
            missing: writer.sealed - entry,
        });
    }
    writer.commit(&walk)?;
    Ok(Sealed {
        new: writer.sealed - before,
        size: writer.sealed,
        created: writer.created.then(|| writer.key.public.clone()),
    })
}

/// Replaces the key of a folder. Returns the new public key.
///
/// # Errors
/// Fails if the folder cannot be used.
pub fn rotate_key(options: &SealOptions) -> Result<VerifierKey, SealError> {
    let folder = Folder(options.path.clone());
    if folder.read(keys::VKEYS)?.is_none() {
        return Err(SealError::Empty(folder.0));
    }
    let writer = Writer::open(&folder, options)?;
    keys::rotate(&folder, &writer.key, &writer.chain, writer.checkpoint())
}

// === impl Writer ===

impl<'a> Writer<'a> {
    /// Opens the folder, creates it if necessary, and checks that what it contains fits the checkpoint.
    fn open(folder: &'a Folder, options: &SealOptions) -> Result<Self, SealError> {
        let lock = folder.lock()?;
        let (key, chain, created) = keys::open(folder, &options.new_origin)?;
        if let Some(wanted) = options.origin.as_ref().filter(|wanted| *wanted != key.public.name()) {
            return Err(SealError::Origin {
                folder: folder.0.clone(),
                is: key.public.name().to_owned(),
                wanted: wanted.clone(),
            });
        }
        let path = folder.path(CHECKPOINT);
        let checkpoint = match folder.read(CHECKPOINT)? {
            Some(bytes) => Some(chain.check(&bytes, &path)?.0),
            None => None,
        };
        // The checkpoint is written before the position, so it was removed. A new tree would contradict it.
        if checkpoint.is_none() && (folder.read(POSITION)?.is_some() || !chain.rotations.is_empty()) {
            return Err(SealError::Damaged(path));
        }
        let sealed = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
        let tree = Tree::load(sealed, |name| folder.tile(name))?;
        if checkpoint.is_some_and(|checkpoint| checkpoint.root != tree.root()) {
            return Err(SealError::Damaged(folder.path("tile")));
        }
        let bundle = match sealed % FULL as u64 {
            0 => Vec::new(),
            _ => {
                let name = TileName::bundle(sealed - 1, sealed);
                let (entries, leaves) = (folder.entries(name)?, folder.tile(name.leaves())?);
                if !entries.iter().map(|entry| tree::leaf(&entry.0)).eq(leaves) {
                    return Err(SealError::Damaged(folder.path(&name.to_string())));
                }
                entries
            }
        };
        Ok(Self {
            folder,
            key,
            chain,
            created,
            tree,
            sealed,
            bundle,
            full_bundles: Vec::new(),
            full_tiles: Vec::new(),
            compared: None,
            _lock: lock,
        })
    }

    fn position(&self) -> Result<Option<Position>, SealError> {
        let bytes = self.folder.read(POSITION)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Goes to the line after the position, or to an earlier one whose entry is known. Returns the entry of that line.
    fn go_to(&mut self, files: Vec<LogFile>, position: Option<Position>) -> Result<(Walk, u64), SealError> {
        let mut later = VecDeque::from(files);
        let has_position = position.is_some();
        let Some(mut position) =
            position.filter(|position| position.size <= self.sealed && position.entry <= position.size)
        else {
            // The first sealing, or it was killed before it wrote the position.
            let is_first = match (self.sealed, later.front()) {
                (0, _) => true,
                (_, Some(file)) => !has_position && file.first == self.entry(0)?,
                (_, None) => false,
            };
            return match is_first {
                true => Ok((Walk { later, now: None }, 0)),
                false => Err(SealError::Position(self.folder.path(POSITION))),
            };
        };
        let Some(at) = later.iter().position(|file| file.first == position.first) else {
            return Err(SealError::LogGone { name: position.file });
        };
        later.drain(..at);
        let file = later.pop_front().map(|file| file.path).unwrap_or_default();
        position.file = name_of(&file);
        let mut lines = Lines::open(&file, position.offset.saturating_sub(position.last))?;
        let last = position.size.checked_sub(1).map(|last| self.entry(last)).transpose()?;
        let is_last = lines.next_line()?.map(|line| entry_of(line).0) == last && lines.offset == position.offset;
        if !is_last {
            // Lines were erased, or the log was changed: compares the whole file.
            lines = Lines::open(&file, 0)?;
            (position.size, position.offset, position.last) = (position.entry, 0, 0);
        }
        let entry = position.size;
        let now = Some((lines, position));
        Ok((Walk { later, now }, entry))
    }

    /// Goes to the line after the last one that has one of the last entries, or to the first line of the first file
    /// that is newer than the position.
    fn after_the_last_known(
        &mut self,
        files: Vec<LogFile>,
        position: Option<&Position>,
    ) -> Result<(Walk, u64), SealError> {
        let first = self.sealed.saturating_sub(MAX_KNOWN);
        let mut known = HashMap::new();
        for entry in first..self.sealed {
            known.insert(self.entry(entry)?, entry);
        }
        let mut later = VecDeque::new();
        for file in files.into_iter().rev() {
            let mut lines = Lines::open(&file.path, 0)?;
            let (mut number, mut start, mut found) = (0, 0, None);
            while let Some(line) = lines.next_line()? {
                number += 1;
                if known.contains_key(&entry_of(line).0) {
                    found = Some((number, start, lines.offset));
                }
                start = lines.offset;
            }
            if let Some((number, start, offset)) = found {
                let mut position = Position::at_start_of(&file, self.sealed.saturating_sub(number));
                (position.size, position.offset, position.last) = (self.sealed, offset, offset - start);
                let now = Some((Lines::open(&file.path, offset)?, position));
                return Ok((Walk { later, now }, self.sealed));
            }
            if position.is_none_or(|position| file.time > position.time) {
                later.push_front(file);
            }
        }
        Ok((Walk { later, now: None }, self.sealed))
    }

    /// Returns an entry that the checkpoint covers.
    fn entry(&mut self, entry: u64) -> Result<Sha256, SealError> {
        let name = TileName::bundle(entry, self.sealed);
        if self.compared.as_ref().is_none_or(|(compared, _)| *compared != name) {
            self.compared = Some((name, self.folder.entries(name)?));
        }
        let at = (entry % FULL as u64) as usize;
        let found = self.compared.as_ref().and_then(|(_, entries)| entries.get(at));
        found
            .copied()
            .ok_or_else(|| SealError::Damaged(self.folder.path(&name.to_string())))
    }

    fn push(&mut self, entry: Sha256) {
        let Self { tree, full_tiles, .. } = self;
        tree.push(tree::leaf(&entry.0), |name, hashes| {
            full_tiles.push((name, hashes.to_vec()))
        });
        self.bundle.push(entry);
        if self.bundle.len() == FULL {
            let name = TileName::bundle(self.tree.size() - 1, self.tree.size());
            self.full_bundles.push((name, std::mem::take(&mut self.bundle)));
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

    /// Writes the new entries, the tiles, the checkpoint and the position.
    fn commit(&mut self, walk: &Walk) -> Result<(), SealError> {
        let Some((lines, position)) = &walk.now else {
            return Ok(());
        };
        if self.tree.size() > self.sealed {
            lines.sync()?;
            let mut batch = self.folder.batch();
            for (name, entries) in &self.full_bundles {
                batch.write_entries(*name, entries)?;
            }
            if !self.bundle.is_empty() {
                let name = TileName::bundle(self.tree.size() - 1, self.tree.size());
                batch.write_entries(name, &self.bundle)?;
            }
            batch.sync()?;
            for (name, hashes) in &self.full_tiles {
                batch.write_tile(*name, hashes)?;
            }
            for (name, hashes) in self.tree.partial_tiles(self.sealed) {
                batch.write_tile(name, hashes)?;
            }
            batch.sync()?;
            let note = Note::sign(self.checkpoint().to_string(), &[&self.key]);
            batch.write(CHECKPOINT, note.to_string().as_bytes(), PUBLIC)?;
            batch.sync()?;
        }
        // A position of numbers and texts can always be written as JSON.
        let text = serde_json::to_vec(position).unwrap_or_default();
        if self.folder.read(POSITION)?.as_ref() != Some(&text) {
            let mut batch = self.folder.batch();
            batch.write(POSITION, &text, PUBLIC)?;
            batch.sync()?;
        }
        let full = self.full_bundles.drain(..).chain(self.full_tiles.drain(..));
        full.for_each(|(name, _)| self.folder.remove_partial(name));
        self.sealed = self.tree.size();
        self.compared = None;
        Ok(())
    }
}

// === impl Position ===

impl Position {
    fn at_start_of(file: &LogFile, entry: u64) -> Self {
        Self {
            size: entry,
            file: name_of(&file.path),
            first: file.first,
            time: file.time.clone(),
            entry,
            offset: 0,
            last: 0,
        }
    }
}

// === impl Walk ===

impl Walk {
    /// Returns what the next line has as its entry, whose number is `entry`, and moves the position after the line.
    fn next_entry(&mut self, entry: u64) -> Result<Option<Sha256>, SealError> {
        if let Some((lines, position)) = &mut self.now {
            let start = lines.offset;
            if let Some(line) = lines.next_line()? {
                let (hash, _) = entry_of(line);
                (position.size, position.offset) = (entry + 1, lines.offset);
                position.last = lines.offset - start;
                return Ok(Some(hash));
            }
        }
        // The next file has a line, so nothing writes to this one any more. It was read to its end after that line
        // was seen.
        let Some(file) = self.later.pop_front() else {
            return Ok(None);
        };
        let mut lines = Lines::open(&file.path, 0)?;
        let first = lines.next_line()?.map(|line| entry_of(line).0);
        if first != Some(file.first) {
            // The log was rotated since its files were listed. The next sealing finds this file under its new name.
            self.later.clear();
            return Ok(None);
        }
        if let Some((ended, _)) = &self.now {
            ended.sync()?;
        }
        let mut position = Position::at_start_of(&file, entry);
        (position.size, position.offset, position.last) = (entry + 1, lines.offset, lines.offset);
        self.now = Some((lines, position));
        Ok(first)
    }

    /// Returns the entry of the first line of the current file.
    fn first_entry(&self) -> u64 {
        self.now.as_ref().map_or(0, |(_, position)| position.entry)
    }

    /// Returns the path of the current file.
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

/// How many lines one checkpoint adds at most.
const MAX_ROUND: u64 = 65_536;
/// How many of the last entries are looked for to go on.
const MAX_KNOWN: u64 = 1_000_000;
const POSITION: &str = "position";
