//! Verifies a sealed log: the folder against its checkpoint, older checkpoints against the tree, and the lines against
//! the entries.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use super::{
    CHECKPOINT, SealError,
    compare::{Compared, Difference, compare},
    folder::Folder,
    keys::Chain,
    lines::{Lines, entry_of},
    note::{Checkpoint, VerifierKey},
    tree::{self, FULL, TileName, Tree, range_hash},
};
use crate::{copy::Sha256, files};

/// What to verify.
#[derive(Debug, Default)]
pub struct Verify {
    pub folder: PathBuf,
    /// The files of the log, from the oldest to the newest.
    pub logs: Vec<PathBuf>,
    /// Keys that the caller trusts. Without any, those of the folder count.
    pub keys: Vec<VerifierKey>,
    /// Files with checkpoints that were handed out before.
    pub checkpoints: Vec<PathBuf>,
    /// Whether sealed lines may be missing before the first line, and after the last one.
    pub skip_older: bool,
    pub skip_newer: bool,
}

/// What a verification found.
#[derive(Debug, serde::Serialize)]
pub struct Verification {
    pub origin: String,
    /// The id of the key that signed the checkpoint.
    pub key: String,
    /// Number of entries in the tree.
    pub sealed: u64,
    pub root: Sha256,
    /// Older checkpoints that the tree extends.
    pub checkpoints: u64,
    /// Lines that are as they were sealed.
    pub same: u64,
    /// Lines that were erased, which stand for their hashes.
    pub erased: u64,
    /// Lines after the last sealed one.
    pub unsealed: u64,
    /// Sealed lines before and after the lines of the given files.
    pub older: u64,
    pub newer: u64,
    /// Files that end in an incomplete line, which is never sealed.
    pub incomplete: Vec<String>,
    pub findings: Vec<Finding>,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    pub kind: Kind,
    /// The file, and the first line in it for a line of a log.
    pub file: String,
    pub line: Option<u64>,
    /// The first entry concerned.
    pub entry: Option<u64>,
    /// Number of lines, entries or files concerned.
    pub count: u64,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The line is not the one that was sealed.
    Changed,
    /// Sealed lines are missing before this line.
    Missing,
    /// The line was never sealed.
    Added,
    /// The line was sealed, but at another place.
    Moved,
    /// Sealed lines are missing at the end of the log.
    CutShort,
    /// From this line on, nothing fits.
    Other,
    /// None of the lines is sealed.
    Unknown,
    /// A file of the folder does not fit the checkpoint.
    Tree,
    /// An older checkpoint does not fit the tree.
    Checkpoint,
}

/// Verifies a log.
///
/// # Errors
/// Fails if the checkpoint or a log file cannot be read, or if no trusted key signed the checkpoint.
pub fn verify(what: &Verify) -> Result<Verification, SealError> {
    let folder = Folder(what.folder.clone());
    let chain = Chain::load(&folder, &what.keys)?;
    let path = folder.path(CHECKPOINT);
    let bytes = folder
        .read(CHECKPOINT)?
        .ok_or_else(|| SealError::Empty(folder.0.clone()))?;
    let (checkpoint, key) = chain.check(&bytes, &path)?;
    let mut found = Verification {
        origin: checkpoint.origin.clone(),
        key: key.id_text(),
        sealed: checkpoint.size,
        root: checkpoint.root,
        checkpoints: 0,
        same: 0,
        erased: 0,
        unsealed: 0,
        older: 0,
        newer: 0,
        incomplete: Vec::new(),
        findings: Vec::new(),
    };
    let has_leaves = found.check_tree(&folder, &checkpoint);
    for (path, older) in &chain.rotations {
        found.check_older(&folder, path, older);
    }
    for path in &what.checkpoints {
        let bytes = files::read(path).map_err(|error| SealError::Read {
            path: path.clone(),
            error,
        })?;
        match chain.check(&bytes, path) {
            Ok((older, _)) => {
                found.check_older(&folder, path, &older);
                if older.next_key.is_some() && !chain.has_rotation(&older) {
                    let text = "it announces a new key, but the folder is signed by the old one: somebody who has the old \
                                key may have made the folder";
                    found.add(Kind::Checkpoint, path, text.to_owned());
                }
            }
            Err(error) => found.add(Kind::Checkpoint, path, error.to_string()),
        }
    }
    if !what.logs.is_empty() && has_leaves {
        found.check_logs(&folder, what)?;
    }
    Ok(found)
}

impl Verification {
    fn add(&mut self, kind: Kind, file: &Path, text: String) {
        self.findings.push(Finding {
            kind,
            file: file.display().to_string(),
            line: None,
            entry: None,
            count: 1,
            text,
        });
    }

    /// Builds the tree anew from its leaves, and compares the tiles above them, the entries and the root with the
    /// checkpoint's. Returns whether all leaves could be read.
    fn check_tree(&mut self, folder: &Folder, checkpoint: &Checkpoint) -> bool {
        let mut tree = Tree::default();
        let mut unequal = Vec::new();
        for start in (0..checkpoint.size).step_by(FULL) {
            let bundle = TileName::bundle(start, checkpoint.size);
            let entries = folder.entries(bundle);
            let entries = entries.map(|entries| entries.iter().map(|entry| tree::leaf(&entry.0)).collect::<Vec<_>>());
            let leaves = match (folder.tile(bundle.leaves()), entries) {
                (Ok(leaves), Ok(entries)) => {
                    let differs = leaves.iter().zip(&entries).position(|(leaf, entry)| leaf != entry);
                    unequal.extend(differs.map(|at| (bundle, at)));
                    leaves
                }
                (Ok(leaves), Err(error)) => {
                    self.add(Kind::Tree, &folder.path(&bundle.to_string()), error.to_string());
                    leaves
                }
                (Err(error), entries) => {
                    self.add(
                        Kind::Tree,
                        &folder.path(&bundle.leaves().to_string()),
                        error.to_string(),
                    );
                    match entries {
                        Ok(entries) => entries,
                        Err(error) => {
                            let text = format!("the log was not compared: {error}");
                            self.add(Kind::Tree, &folder.path(&bundle.to_string()), text);
                            return false;
                        }
                    }
                }
            };
            for leaf in leaves {
                tree.push(leaf, |name, hashes| self.check_tile(folder, name, hashes));
            }
        }
        for (name, hashes) in tree.partial_tiles(0) {
            self.check_tile(folder, name, hashes);
        }
        let is_root = tree.root() == checkpoint.root;
        for (bundle, at) in unequal {
            // The checkpoint says which of both is right.
            let (name, text) = match is_root {
                true => (bundle, format!("entry {at} of it is not the one in the tree")),
                false => (
                    bundle.leaves(),
                    format!("hash {at} of it is not that of its entry in {bundle}"),
                ),
            };
            self.add(Kind::Tree, &folder.path(&name.to_string()), text);
        }
        if !is_root {
            let text = "the tree is not that of the checkpoint: its root hash is another".to_owned();
            self.add(Kind::Tree, &folder.path(CHECKPOINT), text);
        }
        true
    }

    /// Compares a tile above the leaves with its file.
    fn check_tile(&mut self, folder: &Folder, name: TileName, hashes: &[Sha256]) {
        if name.level == Some(0) {
            return;
        }
        let path = folder.path(&name.to_string());
        match folder.tile(name) {
            Ok(stored) => {
                let differs = stored.iter().zip(hashes).position(|(one, other)| one != other);
                if let Some(at) = differs {
                    let text = format!("hash {at} of it is not that of the tiles below it");
                    self.add(Kind::Tree, &path, text);
                }
            }
            Err(error) => self.add(Kind::Tree, &path, error.to_string()),
        }
    }

    /// Checks that the tree extends that of an older checkpoint.
    fn check_older(&mut self, folder: &Folder, path: &Path, older: &Checkpoint) {
        if older.size > self.sealed {
            let text = format!(
                "it has {} entries, but the tree has only {}: sealed lines were removed",
                older.size, self.sealed
            );
            return self.add(Kind::Checkpoint, path, text);
        }
        match range_hash(0, older.size, self.sealed, &mut |name| folder.tile(name)) {
            Ok(root) if root == older.root => self.checkpoints += 1,
            Ok(_) => {
                let text = format!(
                    "the first {} entries of the tree are not those of this checkpoint",
                    older.size
                );
                self.add(Kind::Checkpoint, path, text);
            }
            Err(error) => self.add(Kind::Checkpoint, path, error.to_string()),
        }
    }

    fn check_logs(&mut self, folder: &Folder, what: &Verify) -> Result<(), SealError> {
        let logs = RefCell::new(Logs::default());
        let mut paths = what.logs.iter();
        let mut now: Option<Lines> = None;
        let lines = std::iter::from_fn(|| {
            loop {
                match now.as_mut().map(Lines::next_line) {
                    Some(Ok(Some(line))) => {
                        logs.borrow_mut().lines += 1;
                        let (entry, is_erased) = entry_of(line);
                        return Some(Ok((tree::leaf(&entry.0), is_erased)));
                    }
                    Some(Err(error)) => return Some(Err(error)),
                    Some(Ok(None)) | None => {}
                }
                if let Some(ended) = now.take().filter(|ended| ended.ends_incomplete) {
                    self.incomplete.push(ended.path.display().to_string());
                }
                let path = paths.next()?;
                match Lines::open(path, 0) {
                    Ok(lines) => now = Some(lines),
                    Err(error) => return Some(Err(error)),
                }
                let mut logs = logs.borrow_mut();
                let first = logs.lines;
                logs.files.push((path.display().to_string(), first));
            }
        });
        let compared = compare(|start| leaves_from(folder, start, self.sealed), self.sealed, lines)?;
        let logs = logs.into_inner();
        self.report(compared, &logs, what);
        Ok(())
    }

    fn report(&mut self, compared: Compared, logs: &Logs, what: &Verify) {
        (self.same, self.erased) = (compared.same - compared.erased, compared.erased);
        (self.unsealed, self.older, self.newer) = (compared.unsealed, compared.before, compared.after);
        let (first, last) = (logs.place(0), logs.place(logs.lines.saturating_sub(1)));
        if !what.skip_older {
            self.count(Kind::Missing, &first, Some(0), compared.before);
        } else if self.sealed > 0 && compared.same == 0 && logs.lines > 0 && compared.gave_up.is_none() {
            // Each line of a log that was rewritten looks like a new one.
            self.count(Kind::Unknown, &first, None, logs.lines);
        }
        let missing = compared.differences.iter().filter_map(|one| one.sealed);
        let missing: HashMap<Sha256, u64> = missing.map(|(entry, hash)| (hash, entry)).collect();
        let found: HashSet<Sha256> = compared.differences.iter().filter_map(|one| one.found).collect();
        for Difference {
            line,
            found: here,
            sealed,
        } in &compared.differences
        {
            let place = logs.place(*line);
            let moved_from = here.and_then(|hash| missing.get(&hash).copied());
            let is_missing = sealed.filter(|(_, hash)| !found.contains(hash)).map(|(entry, _)| entry);
            match (here, moved_from, is_missing) {
                (Some(_), None, Some(entry)) => self.count(Kind::Changed, &place, Some(entry), 1),
                (Some(_), None, None) => self.count(Kind::Added, &place, None, 1),
                (here, moved_from, is_missing) => {
                    if let Some(entry) = is_missing {
                        self.count(Kind::Missing, &place, Some(entry), 1);
                    }
                    if let (Some(_), Some(entry)) = (here, moved_from) {
                        self.count(Kind::Moved, &place, Some(entry), 1);
                    }
                }
            }
        }
        if let Some(line) = compared.gave_up {
            self.count(Kind::Other, &logs.place(line), None, 1);
        } else if !what.skip_newer {
            self.count(
                Kind::CutShort,
                &last,
                Some(self.sealed - compared.after),
                compared.after,
            );
        }
        self.findings.iter_mut().for_each(Finding::describe);
    }

    /// Adds a finding of lines, to the last finding if it continues that.
    fn count(&mut self, kind: Kind, (file, line): &(String, u64), entry: Option<u64>, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(last) = self
            .findings
            .last_mut()
            .filter(|last| last.kind == kind && last.file == *file)
        {
            let lines = if kind == Kind::Missing { 0 } else { last.count };
            let entry_fits = last.entry.map(|entry| entry + last.count) == entry;
            if last.line.map(|line| line + lines) == Some(*line) && entry_fits {
                last.count += count;
                return;
            }
        }
        self.findings.push(Finding {
            kind,
            file: file.clone(),
            line: Some(*line),
            entry,
            count,
            text: String::new(),
        });
    }
}

/// The files of the log, each with the number of its first line among all lines, from 0.
#[derive(Default)]
struct Logs {
    files: Vec<(String, u64)>,
    lines: u64,
}

impl Logs {
    /// Returns the file of a line and its number in it, from 1.
    fn place(&self, line: u64) -> (String, u64) {
        let at = self.files.partition_point(|(_, first)| *first <= line);
        let file = at.checked_sub(1).and_then(|at| self.files.get(at));
        file.map_or_else(Default::default, |(file, first)| (file.clone(), line - first + 1))
    }
}

impl Finding {
    fn describe(&mut self) {
        if !self.text.is_empty() {
            return;
        }
        let (count, entry) = (self.count, self.entry.unwrap_or(0));
        let entries = match count {
            1 => format!("entry {entry}"),
            _ => format!("entries {entry} to {}", entry + count - 1),
        };
        let (lines, are, were) = match count {
            1 => ("this line".to_owned(), "is", "was"),
            _ => (format!("{count} lines from here on"), "are", "were"),
        };
        let missing = match count {
            1 => format!("1 sealed line is missing ({entries})"),
            _ => format!("{count} sealed lines are missing ({entries})"),
        };
        self.text = match self.kind {
            Kind::Changed => format!("{lines} {were} changed after sealing ({entries})"),
            Kind::Missing => format!("{missing} before this line"),
            Kind::Added => format!("{lines} {were} not sealed here, but lines after were: added later"),
            Kind::Moved => format!("{lines} {are} sealed, but at another place ({entries}): moved"),
            Kind::CutShort => format!("{missing} after this line: the log was cut short, or newer files are not given"),
            Kind::Other => "from this line on, the log is not the sealed one".to_owned(),
            Kind::Unknown => {
                "none of the lines is sealed: the log was rewritten, or the files are newer than the seal".to_owned()
            }
            Kind::Tree | Kind::Checkpoint => return,
        };
    }
}

/// Returns the leaves from the entry `start` on.
pub(super) fn leaves_from(
    folder: &Folder,
    start: u64,
    size: u64,
) -> impl Iterator<Item = Result<(Sha256, bool), SealError>> {
    let first = start - start % FULL as u64;
    let tiles = (first..size).step_by(FULL).map(move |at| {
        let bundle = TileName::bundle(at, size);
        folder.tile(bundle.leaves()).or_else(|_| {
            let entries = folder.entries(bundle)?;
            Ok(entries.iter().map(|entry| tree::leaf(&entry.0)).collect())
        })
    });
    let leaves = tiles.flat_map(|leaves: Result<Vec<_>, _>| match leaves {
        Ok(leaves) => leaves.into_iter().map(|leaf| Ok((leaf, false))).collect(),
        Err(error) => vec![Err(error)],
    });
    leaves.skip((start - first) as usize)
}
