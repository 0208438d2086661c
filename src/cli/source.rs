//! Reads a robots.txt from disk or standard input, up to a size limit.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
};

use super::progress::prompt_for;
use crate::robots::LIMIT;

pub(super) fn of_file(path: &Path) -> io::Result<Vec<u8>> {
    File::open(path).and_then(read)
}

pub(super) fn of_input() -> io::Result<Vec<u8>> {
    prompt_for("the robots.txt");
    read(io::stdin().lock()).map_err(|error| match error.kind() {
        // For a folder, the message of `files::Unreadable` would advise to name a file in it. That makes no sense for
        // standard input.
        ErrorKind::IsADirectory => io::Error::other("it is a folder, not a file"),
        _ => error,
    })
}

fn read(input: impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    input.take(MAX_READ).read_to_end(&mut body)?;
    Ok(body)
}

/// Maximum number of bytes to read: more than the 500 KiB that the parser uses, because `robotgate lint` shows the
/// first bytes after them.
const MAX_READ: u64 = LIMIT as u64 + 64 * 1024;
