//! Verifies a sealed log: compares its tree with the checkpoints, and its lines with the entries of the tree.

use std::{
    collections::{HashMap, HashSet},
    fmt, iter,
    path::{Path, PathBuf},
    slice,
};

use super::{
    CHECKPOINT, SealError,
    compare::{Compared, Difference, compare},
    folder::Folder,
    keys::Chain,
    lines::{Lines, entry_of},
    note::{Checkpoint, VerifierKey},
    tree::{TileName, Tree, leaf, range_hash},
};
use crate::{copy::Sha256, files};

#[derive(Debug, Default)]
pub struct Verify {
    pub folder: PathBuf,
    /// The files of the log, in any order.
    pub logs: Vec<PathBuf>,
    /// The trusted keys. If there are none, the keys in the folder are trusted.
    pub keys: Vec<VerifierKey>,
    /// Files with checkpoints that were handed out before.
    pub checkpoints: Vec<PathBuf>,
    /// Whether sealed lines may be missing at the start (`skip_older`) and at the end (`skip_newer`) of the log.
    pub skip_older: bool,
    pub skip_newer: bool,
}

#[derive(Debug, Default)]
pub struct Verification {
    pub origin: String,
    /// The id of the key that signed the checkpoint.
    pub key: String,
    /// Number of entries in the tree.
    pub sealed: u64,
    /// Number of older checkpoints in the folder and in [`Verify::checkpoints`].
    pub older_checkpoints: u64,
    /// Number of older checkpoints that fit the tree.
    pub checkpoints: u64,
    pub lines: Compared,
    /// Files whose last line is incomplete and therefore not sealed.
    pub incomplete: Vec<String>,
    /// The first problems (`findings`), and the number of lines or entries with further problems (`more`).
    pub findings: Vec<Finding>,
    pub more: u64,
}

/// A problem that was found. `Display` describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// If the file is a log, `line` is the first line with the problem, counted from 1.
    pub file: String,
    pub line: Option<u64>,
    /// The first entry that the problem is about.
    pub entry: Option<u64>,
    /// Number of lines or entries that the problem is about.
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    /// The line at this place is not the one that was sealed.
    Changed,
    /// Sealed lines are missing before the line that the finding names.
    Missing,
    /// The line has no entry of its own: it was added, or repeats a sealed line.
    Added,
    /// The line was sealed, but at another place.
    Moved,
    /// Sealed lines are missing at the end of the log.
    CutShort,
    /// A problem of another kind, as a sentence.
    Other(String),
}

#[derive(Default)]
struct Logs<'a> {
    paths: slice::Iter<'a, PathBuf>,
    now: Option<Lines>,
    /// The files read so far, each with the number of its first line. Lines are counted from 0 across all files.
    files: Vec<(String, u64)>,
    lines: u64,
    incomplete: Vec<String>,
}

/// Checks the folder of a seal, and compares the lines of the log with the sealed entries.
///
/// # Errors
/// Fails if a checkpoint, a public key or a log file cannot be read, or if no trusted key signed the folder's
/// checkpoint.
pub fn verify(what: &Verify) -> Result<Verification, SealError> {
    let folder = Folder(what.folder.clone());
    let chain = Chain::load(&folder, &what.keys)?;
    let (_, checkpoint, key) = chain.checkpoint(&folder)?;
    let mut found = Verification {
        origin: checkpoint.origin.clone(),
        key: key.id_text(),
        sealed: checkpoint.size,
        older_checkpoints: (chain.rotations.len() + what.checkpoints.len()) as u64,
        ..Verification::default()
    };
    let has_entries = found.check_tree(&folder, &checkpoint);
    for (path, older) in &chain.rotations {
        found.check_older(&folder, path, older);
    }
    for path in &what.checkpoints {
        let bytes = files::read(path).map_err(SealError::read(path))?;
        match chain.check(&bytes, path) {
            Ok((older, _)) => {
                found.check_older(&folder, path, &older);
                if older.next_key.is_some() && !chain.has_rotation(&older) {
                    let text = "it announces a new key, but the folder is signed by the old one: somebody who has the old \
                                key may have made the folder";
                    found.add_file(path, text);
                }
            }
            Err(error) => found.add_file(path, &error.to_string()),
        }
    }
    if !what.logs.is_empty() && has_entries {
        let files = in_tree_order(&folder, found.sealed, &what.logs)?;
        let mut logs = Logs {
            paths: files.iter(),
            ..Logs::default()
        };
        let lines = iter::from_fn(|| logs.next_entry().transpose());
        let compared = compare(|start| folder.entries(start, found.sealed), found.sealed, lines)?;
        found.report(&compared, &logs, what);
        (found.lines, found.incomplete) = (compared, logs.incomplete);
    }
    Ok(found)
}

/// Sorts files by where their first lines are in the tree. A file in which none of these lines is sealed stays behind
/// the file that was given before it, or comes last if it was given first.
fn in_tree_order(folder: &Folder, size: u64, logs: &[PathBuf]) -> Result<Vec<PathBuf>, SealError> {
    if logs.len() < 2 {
        return Ok(logs.to_vec());
    }
    let mut starts = Vec::with_capacity(logs.len());
    for path in logs {
        let (mut lines, mut start) = (Lines::open(path, 0)?, Vec::new());
        while start.len() < MAX_START
            && let Some(line) = lines.next_line()?
        {
            start.push(entry_of(line).0);
        }
        starts.push(start);
    }
    let wanted: HashSet<Sha256> = starts.iter().flatten().copied().collect();
    let mut entries = HashMap::with_capacity(wanted.len());
    for (number, entry) in (0_u64..).zip(folder.entries(0, size)) {
        let entry = entry?;
        if wanted.contains(&entry) {
            entries.entry(entry).or_insert(number);
        }
    }
    let mut before = None;
    let first_entry = |start: &Vec<Sha256>| {
        let sealed = start
            .iter()
            .enumerate()
            .find_map(|(line, hash)| Some((line, entries.get(hash)?)));
        sealed.map(|(line, entry)| entry.saturating_sub(line as u64))
    };
    let mut files: Vec<(u64, PathBuf)> = (logs.iter().zip(&starts))
        .map(|(path, start)| {
            before = first_entry(start).or(before);
            (before.unwrap_or(u64::MAX), path.clone())
        })
        .collect();
    files.sort_by_key(|(entry, _)| *entry);
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

// === impl Verification ===

impl Verification {
    /// Compares the entries with the tiles and the checkpoint. Returns whether all entries could be read.
    fn check_tree(&mut self, folder: &Folder, checkpoint: &Checkpoint) -> bool {
        let mut tree = Tree::default();
        for entry in folder.entries(0, checkpoint.size) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let bundle = TileName::bundle(tree.size(), checkpoint.size);
                    let text = format!("{error}. Without this file, the lines were not compared");
                    self.add_file(&folder.path(&bundle.to_string()), &text);
                    return false;
                }
            };
            tree.push(leaf(&entry.0), |name, hashes| self.check_tile(folder, name, hashes));
        }
        for (name, hashes) in tree.partial_tiles(0) {
            self.check_tile(folder, name, hashes);
        }
        if tree.root() != checkpoint.root {
            let text = "the entries do not have the root hash that the checkpoint states";
            self.add_file(&folder.path(CHECKPOINT), text);
        }
        true
    }

    fn check_tile(&mut self, folder: &Folder, name: TileName, hashes: &[Sha256]) {
        let text = match folder.hashes(name) {
            Ok(stored) => match stored.iter().zip(hashes).position(|(one, other)| one != other) {
                Some(at) if name.level == Some(0) => {
                    let bundle = TileName { level: None, ..name };
                    format!("hash {at} of it is not that of entry {at} in {bundle}: one of the two files is damaged")
                }
                Some(at) => format!("hash {at} of this tile does not follow from the tiles below it"),
                None => return,
            },
            Err(error) => error.to_string(),
        };
        self.add_file(&folder.path(&name.to_string()), &text);
    }

    fn check_older(&mut self, folder: &Folder, path: &Path, older: &Checkpoint) {
        let size = older.size;
        let text = if size > self.sealed {
            format!(
                "it has {size} entries, but the tree has only {}: sealed lines were removed",
                self.sealed
            )
        } else {
            match range_hash(0, size, self.sealed, &mut |name| folder.hashes(name)) {
                Ok(root) if root == older.root => {
                    self.checkpoints += 1;
                    return;
                }
                Ok(_) => format!("the first {size} entries of the tree are not those of this checkpoint"),
                Err(error) => error.to_string(),
            }
        };
        self.add_file(path, &text);
    }

    fn report(&mut self, compared: &Compared, logs: &Logs<'_>, what: &Verify) {
        if !what.skip_older {
            self.add(FindingKind::Missing, logs.location(0), Some(0), compared.before);
        } else if self.sealed > 0
            && compared.same + compared.erased == 0
            && logs.lines > 0
            && compared.gave_up.is_none()
        {
            // If somebody rewrote all lines, each looks like a new, unsealed one.
            let text = "none of the lines is sealed: the log was rewritten, or the files are newer than the seal";
            self.add(FindingKind::Other(text.to_owned()), logs.location(0), None, 1);
        }
        let differences = &compared.differences;
        let missing: HashMap<Sha256, u64> = differences
            .iter()
            .filter_map(|one| one.sealed)
            .map(|(entry, hash)| (hash, entry))
            .collect();
        let found: HashSet<Sha256> = differences.iter().filter_map(|one| one.found).collect();
        for one in differences {
            let Difference { line, sealed, .. } = *one;
            let moved_from = one.found.and_then(|hash| missing.get(&hash).copied());
            let is_added = one.found.is_some() && moved_from.is_none();
            let is_missing = sealed.filter(|(_, hash)| !found.contains(hash)).map(|(entry, _)| entry);
            match is_missing {
                Some(entry) if is_added => self.add(FindingKind::Changed, logs.location(line), Some(entry), 1),
                Some(entry) => self.add(FindingKind::Missing, logs.location(line), Some(entry), 1),
                None if is_added => self.add(FindingKind::Added, logs.location(line), None, 1),
                None => {}
            }
            if let Some(entry) = moved_from {
                self.add(FindingKind::Moved, logs.location(line), Some(entry), 1);
            }
        }
        self.more += compared.more;
        if let Some(line) = compared.gave_up {
            let text = "from this line on, the log is not the sealed one";
            self.add(FindingKind::Other(text.to_owned()), logs.location(line), None, 1);
        } else if !what.skip_newer {
            let location = logs.location(logs.lines.saturating_sub(1));
            self.add(
                FindingKind::CutShort,
                location,
                Some(self.sealed - compared.after),
                compared.after,
            );
        }
    }

    fn add_file(&mut self, path: &Path, text: &str) {
        let path = path.display().to_string();
        // The texts of some errors begin with the path, which the finding already names.
        let text = text.strip_prefix(&format!("{path}: ")).unwrap_or(text).to_owned();
        self.add(FindingKind::Other(text), (path, None), None, 1);
    }

    /// Adds a finding, or extends the last one if the new one directly continues it.
    fn add(&mut self, kind: FindingKind, (file, line): (String, Option<u64>), entry: Option<u64>, count: u64) {
        let continues = |last: &Finding| {
            let lines = if kind == FindingKind::Missing { 0 } else { last.count };
            last.kind == kind
                && last.file == file
                && last.line.map(|line| line + lines) == line
                && last.entry.map(|entry| entry + last.count) == entry
        };
        let is_full = self.findings.len() == MAX_FINDINGS;
        match self.findings.last_mut() {
            Some(last) if continues(last) => last.count += count,
            _ if count == 0 => {}
            _ if is_full => self.more += count,
            _ => self.findings.push(Finding {
                kind,
                file,
                line,
                entry,
                count,
            }),
        }
    }
}

// === impl Logs ===

impl Logs<'_> {
    fn next_entry(&mut self) -> Result<Option<(Sha256, bool)>, SealError> {
        loop {
            if let Some(now) = &mut self.now {
                if let Some(line) = now.next_line()? {
                    self.lines += 1;
                    return Ok(Some(entry_of(line)));
                }
                if now.ends_incomplete {
                    self.incomplete.push(now.path.display().to_string());
                }
            }
            let Some(path) = self.paths.next() else {
                return Ok(None);
            };
            self.files.push((path.display().to_string(), self.lines));
            self.now = Some(Lines::open(path, 0)?);
        }
    }

    /// Returns the file of a line, and the line's number in that file, from 1. `line` counts across all files, from 0.
    fn location(&self, line: u64) -> (String, Option<u64>) {
        let at = self.files.partition_point(|(_, first)| *first <= line);
        let (file, first) = &self.files[at.saturating_sub(1)];
        (file.clone(), Some(line - first + 1))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        match &self.kind {
            FindingKind::Changed => write!(f, "{lines} {were} changed after sealing ({entries})"),
            FindingKind::Missing => write!(f, "{missing} before this line"),
            FindingKind::Added => write!(
                f,
                "{lines} {were} added later: not sealed, although the lines that follow are"
            ),
            FindingKind::Moved => write!(f, "{lines} {are} sealed, but at another place of the log ({entries})"),
            FindingKind::CutShort => write!(
                f,
                "{missing} after this line: the log was cut short, or newer files were not given"
            ),
            FindingKind::Other(text) => f.write_str(text),
        }
    }
}

/// How many lines of a file to search for one that is sealed.
const MAX_START: usize = 1_000;
/// Maximum number of findings to keep.
const MAX_FINDINGS: usize = 1_000;
