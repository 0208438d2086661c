//! Reads the lines of an audit log, and finds its rotated files.

use std::{
    cmp::Reverse,
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufRead, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom},
    os::unix::fs::DirEntryExt as _,
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use flate2::read::MultiGzDecoder;

use super::SealError;
use crate::{audit::RecordHead, copy::Sha256, files};

/// Reads the complete lines of a log file. Decompresses the file if its name ends in `.gz`.
pub(super) struct Lines {
    pub(super) path: PathBuf,
    input: Box<dyn BufRead + Send>,
    file: File,
    line: Vec<u8>,
    /// Position of the next line, in bytes of the decompressed file.
    pub(super) offset: u64,
    /// Whether the last line lacks its line feed. Known after all lines were read.
    pub(super) ends_incomplete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    /// The tree entry of the first line. It identifies the file after a rotation or an erasure too.
    pub(super) first: Sha256,
    /// The time of the first record that has one.
    time: String,
}

// === impl Lines ===

impl Lines {
    /// Opens a file at `offset`, the start of a line, in bytes of the decompressed file.
    pub(super) fn open(path: &Path, offset: u64) -> Result<Self, SealError> {
        Self::opened(path, offset).map_err(SealError::read(path))
    }

    fn opened(path: &Path, offset: u64) -> io::Result<Self> {
        let (mut file, _) = files::open(path)?;
        let kept = file.try_clone()?;
        let input: Box<dyn BufRead + Send> = match is_gz(path) {
            true => {
                let mut input = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file));
                io::copy(&mut input.by_ref().take(offset), &mut io::sink())?;
                Box::new(input)
            }
            false => {
                file.seek(SeekFrom::Start(offset))?;
                Box::new(BufReader::with_capacity(BUFFER, file))
            }
        };
        Ok(Self {
            path: path.to_owned(),
            input,
            file: kept,
            line: Vec::new(),
            offset,
            ends_incomplete: false,
        })
    }

    /// Returns the next complete line without its line feed.
    pub(super) fn next_line(&mut self) -> Result<Option<&[u8]>, SealError> {
        self.line.clear();
        let read = (&mut self.input).take(MAX_LINE).read_until(b'\n', &mut self.line);
        // A sparse or compressed file can contain a line that does not fit into memory.
        let read = match read {
            Ok(length) if length as u64 == MAX_LINE && !self.line.ends_with(b"\n") => Err(io::Error::new(
                ErrorKind::InvalidData,
                "a line of it is longer than 16 MiB",
            )),
            read => read,
        };
        read.map_err(SealError::read(&self.path))?;
        match self.line.split_last() {
            Some((b'\n', line)) => {
                self.offset += self.line.len() as u64;
                Ok(Some(line))
            }
            rest => {
                self.ends_incomplete = rest.is_some();
                Ok(None)
            }
        }
    }

    /// Syncs the log file to disk, so that no sealed line is lost if the power fails.
    pub(super) fn sync(&self) -> Result<(), SealError> {
        self.file.sync_data().map_err(|error| SealError::Sync {
            path: self.path.clone(),
            error,
        })
    }
}

/// Returns the tree entry of a line, and whether the line replaces an erased one.
pub(super) fn entry_of(line: &[u8]) -> (Sha256, bool) {
    erased_entry(line).map_or_else(|| (Sha256::of(line), false), |entry| (entry, true))
}

/// Returns the tree entry of the erased line that `line` replaces, or `None` if it replaces none. A line that replaces
/// an erased one must be exactly `{"event":"erased","sha256":"…"}` with the erased line's entry, so that nobody can
/// hide other text in it.
pub(crate) fn erased_entry(line: &[u8]) -> Option<Sha256> {
    let hash = line.strip_prefix(ERASED)?.strip_suffix(b"\"}")?;
    Some(Sha256(HEXLOWER.decode(hash).ok()?.try_into().ok()?))
}

/// Finds the files of the log to seal, the oldest first: each given path, and its rotated files in the same folder.
/// Leaves out files in which [`identify`] finds no record with a time. Of files with the same first line, such as a
/// file and its compressed copy, returns only one.
pub(super) fn log_files(logs: &[PathBuf]) -> Result<Vec<LogFile>, SealError> {
    let names_of = |log: &PathBuf| rotated(log).map_err(SealError::read(log));
    let list = || logs.iter().map(names_of).collect::<Result<Vec<_>, _>>();
    let mut tries = 0..MAX_TRIES;
    loop {
        let names = list()?;
        let mut files: Vec<LogFile> = Vec::new();
        for (path, _) in names.iter().flatten() {
            let file = match identify(path) {
                Err(SealError::Read { error, .. }) if error.kind() == ErrorKind::NotFound => None,
                file => file?,
            };
            let Some(file) = file else { continue };
            match files.iter_mut().find(|known| known.first == file.first) {
                // Prefer a file to its compressed copy, because the compression may still be running.
                Some(known) if is_gz(&known.path) => *known = file,
                Some(_) => {}
                None => files.push(file),
            }
        }
        // If the log is rotated during the listing, a file can be missing in `names`. List again until nothing changes.
        if tries.next().is_none() || list()? == names {
            // If only one path was given, it is the newest file. Sort the others by the numbers in their names first,
            // then by time, because a clock can have been set back.
            files.sort_by_cached_key(|file| {
                let is_log = matches!(logs, [log] if *log == file.path);
                (is_log, Reverse(number(&file.path)), file.time.clone())
            });
            return Ok(files);
        }
    }
}

/// Returns `log` and its rotated files in the same folder. Leaves out a `.gz` file next to the file that it is made of,
/// because the compression may still be running.
///
/// # Errors
/// Fails if the folder cannot be read, or has neither the log nor a rotated file.
pub fn files_of(log: &Path) -> Result<Vec<PathBuf>, SealError> {
    let files = rotated(log).map_err(SealError::read(log))?;
    let paths: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
    let is_double = |path: &PathBuf| is_gz(path) && paths.contains(&path.with_extension(""));
    Ok(paths.iter().filter(|path| !is_double(path)).cloned().collect())
}

fn rotated(log: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    for file in fs::read_dir(files::folder_of(log))? {
        let file = file?;
        let path = log.with_file_name(file.file_name());
        if is_of_log(&file.file_name(), log.file_name().unwrap_or_default()) && path.is_file() {
            found.push((path, file.ino()));
        }
    }
    if found.is_empty() {
        return Err(ErrorKind::NotFound.into());
    }
    found.sort_by_cached_key(|(path, _)| (path != log, path.clone()));
    Ok(found)
}

/// Returns 2 for `audit.jsonl.2.gz`, and 0 for no number or for six or more digits, which are a date or a time.
fn number(path: &Path) -> u32 {
    let packed = path.with_extension("");
    let name = if is_gz(path) { &packed } else { path };
    let end = name.extension().and_then(|end| end.to_str());
    let number = end.filter(|end| end.len() < 6).and_then(|end| end.parse().ok());
    number.unwrap_or(0)
}

/// Returns whether `file` has the name of the log, or that name with a number or a date, and perhaps `.gz`.
fn is_of_log(file: &OsStr, log: &OsStr) -> bool {
    let suffix = file.as_encoded_bytes().strip_prefix(log.as_encoded_bytes());
    suffix.is_some_and(|suffix| {
        let suffix = suffix.strip_suffix(b".gz").unwrap_or(suffix);
        suffix
            .iter()
            .all(|byte| byte.is_ascii_digit() || b".-_:TZ".contains(byte))
    })
}

/// Reads a file up to its first record with a time. Returns `None` if it finds no such record.
pub(super) fn identify(path: &Path) -> Result<Option<LogFile>, SealError> {
    let mut lines = Lines::open(path, 0)?;
    let mut first = None;
    for _ in 0..MAX_WITHOUT_TIME {
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            // A file that is still being compressed is incomplete. A later sealing reads it.
            Err(_) if is_gz(path) => break,
            Err(error) => return Err(error),
        };
        let first = *first.get_or_insert_with(|| entry_of(line).0);
        if let Some(time) = RecordHead::parse(line).and_then(|record| record.time) {
            let (path, time) = (path.to_owned(), time.into_owned());
            return Ok(Some(LogFile { path, first, time }));
        }
    }
    Ok(None)
}

fn is_gz(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("gz"))
}

const ERASED: &[u8] = b"{\"event\":\"erased\",\"sha256\":\"";
/// How many lines at the start of a file to search for one that has a time.
const MAX_WITHOUT_TIME: usize = 10_000;
/// How many times to list the files again if a rotation changed them.
const MAX_TRIES: usize = 10;
const BUFFER: usize = 256 * 1024;
/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 16 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_digits_in_a_file_name_are_a_number_and_many_are_a_date() {
        for (name, expected) in [
            ("audit.jsonl", 0),
            ("audit.jsonl.2", 2),
            ("audit.jsonl.12.gz", 12),
            ("audit.jsonl.202611", 0),
            ("audit.jsonl.070101.gz", 0),
            ("audit.jsonl-20261122", 0),
        ] {
            assert_eq!(number(Path::new(name)), expected, "{name}");
        }
    }
}
