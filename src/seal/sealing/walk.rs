//! Reads the lines of a log from all its files in order.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

use crate::{
    copy::Sha256,
    seal::{
        SealError,
        lines::{Lines, LogFile, entry_of},
    },
};

/// The place in the log up to which lines are sealed. Only sealing needs it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Position {
    /// Number of sealed lines before this position.
    pub(super) size: u64,
    /// The name of the log file, for error messages.
    pub(super) file: String,
    /// The hash and the entry number of the file's first line. The hash identifies the file after a rotation.
    pub(super) first: Sha256,
    pub(super) entry: u64,
    /// Length of the sealed part of the file, in bytes.
    pub(super) offset: u64,
    /// Length of the last sealed line with its line feed, in bytes, and its hash.
    pub(super) last: u64,
    pub(super) hash: Sha256,
}

pub(super) struct Walk {
    /// `None` before the first line.
    pub(super) now: Option<(Lines, Position)>,
    pub(super) later: VecDeque<LogFile>,
    /// The completely sealed files, by the hash of their first line.
    pub(super) done: Vec<Sha256>,
}

// === impl Walk ===

impl Walk {
    pub(super) fn new(mut files: Vec<LogFile>, done: Vec<Sha256>) -> Self {
        files.retain(|file| !done.contains(&file.first));
        Self {
            now: None,
            later: files.into(),
            done,
        }
    }

    /// `entry` is the number of the entry that belongs to the next line.
    pub(super) fn next_entry(&mut self, entry: u64) -> Result<Option<Sha256>, SealError> {
        if let Some((lines, position)) = &mut self.now {
            let start = lines.offset;
            if let Some(line) = lines.next_line()? {
                position.hash = entry_of(line).0;
                (position.offset, position.last) = (lines.offset, lines.offset - start);
                return Ok(Some(position.hash));
            }
        }
        // Go on to the next file, if there is one. It had a line when the files were listed, so the proxy no longer
        // writes to the current file.
        let Some(file) = self.later.pop_front() else {
            return Ok(None);
        };
        let mut lines = Lines::open(&file.path, 0)?;
        if lines.next_line()?.map(|line| entry_of(line).0) != Some(file.first) {
            // A rotation renamed this file after the listing. The next sealing finds it.
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

    /// If the current line is the first of its file, remembers that this line is already sealed, as entry number
    /// `entry`.
    pub(super) fn note_first_entry(&mut self, entry: u64) {
        if let Some((_, position)) = &mut self.now
            && position.offset == position.last
        {
            position.entry = entry;
        }
    }

    pub(super) fn changed(&self, entry: u64) -> SealError {
        let first = self.now.as_ref().map_or(0, |(_, position)| position.entry);
        SealError::Differs(format!(
            "{}:{}: this is not the line that was sealed (entry {entry}): it was changed, or lines before it were added \
             or removed",
            self.path().unwrap_or_default().display(),
            entry.saturating_sub(first) + 1
        ))
    }

    pub(super) fn path(&self) -> Option<PathBuf> {
        self.now.as_ref().map(|(lines, _)| lines.path.clone())
    }
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
