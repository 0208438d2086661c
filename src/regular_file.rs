//! Opens regular files, and nothing that a reader could be kept waiting by: a pipe that nobody writes into would hold up
//! a reload for ever.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a file to read it, and says what is known of it.
///
/// # Errors
/// It cannot be opened, or is a folder, a pipe, a socket or a device.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .read(true)
        // To open a pipe takes until somebody writes into it. For regular files it means nothing.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // Of the open file, for the path may lead elsewhere by the time it is read.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, metadata))
}

/// Reads a file whole.
///
/// # Errors
/// As [`open`], and those of reading.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, _) = open(path)?;
    let mut contents = Vec::new();
    file.read_to_end(&mut contents)?;
    Ok(contents)
}
