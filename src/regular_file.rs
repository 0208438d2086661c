//! Opens regular files, and nothing that a reader could be kept waiting by: a pipe that nobody writes into would hold up
//! a reload for ever. And says whether one could be made.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::{Access, OFlags};

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

/// Whether a file that is there can be opened to be read and written.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_to_write(path: &Path) -> io::Result<()> {
    open(path)?;
    OpenOptions::new().read(true).write(true).open(path).map(drop)
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

/// Whether this user could make a file in `folder`, or in one that is not there yet. It makes nothing.
///
/// # Errors
/// It could not.
pub(crate) fn may_make_in(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|folder| folder.exists());
    // A relative path begins in the working directory.
    let there = there.filter(|folder| !folder.as_os_str().is_empty());
    rustix::fs::access(there.unwrap_or(Path::new(".")), Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}
