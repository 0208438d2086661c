//! The bytes of a robots.txt on the disk or from standard input: never more of them than are of use.
//!
//! What counts of them is not decided here.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::progress::prompt_for;
use crate::robots::LIMIT;

/// What is of use of the file at `path`.
pub(super) fn of_file(path: &Path) -> io::Result<Vec<u8>> {
    File::open(path).and_then(read)
}

/// What is of use of standard input.
pub(super) fn of_input() -> io::Result<Vec<u8>> {
    prompt_for("the robots.txt");
    read(io::stdin().lock())
}

fn read(input: impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    input.take(MAX_READ).read_to_end(&mut body)?;
    Ok(body)
}

/// Bytes that are read: what counts, and the line after it to show.
const MAX_READ: u64 = LIMIT as u64 + 64 * 1024;
