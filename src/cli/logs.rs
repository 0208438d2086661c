//! Reads the files of an audit log, plain or compressed.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use flate2::read::MultiGzDecoder;
use time::{Date, OffsetDateTime, format_description::well_known::Rfc3339, macros::format_description};

use crate::{config::units, files::Unreadable, report::Period};

/// Reads a file of the audit log, about [`CHUNK`] bytes at a time.
pub(super) struct LogReader {
    path: PathBuf,
    input: Box<dyn BufRead>,
    chunk: Vec<u8>,
    /// The number of the last line that was read.
    line: u64,
}

/// Which lines of a log to read.
#[derive(Debug, clap::Args)]
pub(super) struct PeriodArgs {
    /// Leave out lines before this time: a time like 2026-11-22T13:24:00Z, a date (UTC), or a duration like 24h (ago)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<SystemTime>,
    /// Leave out lines from this time on, written like --since
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<SystemTime>,
}

/// Consecutive lines of a log, and the number of the first of them.
type NumberedLines<'a> = (u64, Vec<&'a [u8]>);

#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {}", path.display(), Unreadable(error))]
pub(super) struct LogError {
    path: PathBuf,
    error: io::Error,
}

// === impl PeriodArgs ===

impl PeriodArgs {
    pub(super) fn period(&self) -> Period {
        Period {
            since: self.since,
            until: self.until,
        }
    }
}

// === impl LogReader ===

impl LogReader {
    /// Opens a log. Decompresses it if its name ends in `.gz`. The path `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let input = open(path).map_err(|error| LogError {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self {
            path: path.to_owned(),
            input,
            chunk: Vec::with_capacity(CHUNK),
            line: 0,
        })
    }

    /// Returns the next lines without their line ends, or `None` at the end of the log. Cuts the last of these lines if
    /// it continues for more than [`MAX_LINE`] bytes after the first [`CHUNK`] bytes.
    pub(super) fn next_lines(&mut self) -> Result<Option<NumberedLines<'_>>, LogError> {
        self.chunk.clear();
        if let Err(error) = fill(&mut self.input, &mut self.chunk) {
            return Err(LogError {
                path: self.path.clone(),
                error,
            });
        }
        if self.chunk.is_empty() {
            return Ok(None);
        }
        let mut lines: Vec<&[u8]> = self.chunk.split(|byte| *byte == b'\n').collect();
        if self.chunk.ends_with(b"\n") {
            lines.pop();
        }
        let first = self.line + 1;
        self.line += lines.len() as u64;
        Ok(Some((first, lines)))
    }
}

/// Returns the first line of a regular file. Reads nothing from a pipe, because [`LogReader`] could not read that line
/// again.
pub(super) fn first_line(path: &Path) -> Option<Vec<u8>> {
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut line = Vec::new();
    let input = is_file.then(|| open(path))?.ok()?;
    input.take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
    Some(line)
}

fn parse_time(text: &str) -> Result<SystemTime, String> {
    if let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(time.into());
    }
    if let Ok(date) = Date::parse(text, format_description!("[year]-[month]-[day]")) {
        return Ok(date.midnight().assume_utc().into());
    }
    let ago: Option<Duration> = units::duration(text).ok();
    ago.and_then(|ago| SystemTime::now().checked_sub(ago)).ok_or_else(|| {
        "write a time like 2026-11-22T13:24:00Z, a date like 2026-11-22, or a duration like 24h".to_owned()
    })
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::with_capacity(CHUNK, io::stdin())));
    }
    let file = File::open(path)?;
    Ok(match path.extension() == Some(OsStr::new("gz")) {
        true => Box::new(BufReader::with_capacity(CHUNK, MultiGzDecoder::new(file))),
        false => Box::new(BufReader::with_capacity(CHUNK, file)),
    })
}

/// Reads the next [`CHUNK`] bytes into `chunk`, and the rest of the line in which these bytes end.
fn fill(input: &mut impl BufRead, chunk: &mut Vec<u8>) -> io::Result<()> {
    input.by_ref().take(CHUNK as u64).read_to_end(chunk)?;
    if !chunk.is_empty() && !chunk.ends_with(b"\n") {
        input.by_ref().take(MAX_LINE).read_until(b'\n', chunk)?;
    }
    if !chunk.is_empty() && !chunk.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(())
}

/// Maximum number of bytes to read of a log's first line, or of the rest of a line after the chunk in which it begins.
/// Lines that robotgate writes are shorter than 1 MiB.
const MAX_LINE: u64 = 4 * 1024 * 1024;
const CHUNK: usize = 8 * 1024 * 1024;
