//! Reads a robots.txt from disk or standard input, up to a size limit.
//!
//! The limit is a little higher than that of the parser, which ignores the bytes after its limit.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::progress::prompt_for;
use crate::robots::LIMIT;

/// Reads the file at `path`, up to the size limit.
pub(super) fn of_file(path: &Path) -> io::Result<Vec<u8>> {
    File::open(path).and_then(read)
}

/// Reads standard input, up to the size limit.
pub(super) fn of_input() -> io::Result<Vec<u8>> {
    prompt_for("the robots.txt");
    read(io::stdin().lock())
}

fn read(input: impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    input.take(MAX_READ).read_to_end(&mut body)?;
    Ok(body)
}

/// Maximum number of bytes to read. The parser uses the first 500 KiB. 64 KiB more are read, because some commands show
/// the first line that the parser ignores.
const MAX_READ: u64 = LIMIT as u64 + 64 * 1024;
