//! The file of the log: opened to append to, or looked at as far as that goes without making one.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use crate::files::may_make_in;

/// Whether the file could be opened. It makes none.
pub(super) fn check(path: &Path) -> io::Result<()> {
    match opening().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            // No folder is made for it.
            folder.metadata()?;
            may_make_in(folder)
        }
        opened => opened.map(drop),
    }
}

pub(super) fn append_to(path: &Path) -> io::Result<File> {
    opening().create(true).open(path)
}

/// How a file is opened that is there.
fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .append(true)
        // It names every URL that a bot asked for: not for every user of the machine to read.
        .mode(0o640)
        // A FIFO that nobody reads is an error then, and no wait without an end.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options
}

pub(super) fn append_on_a_new_line(path: &Path) -> io::Result<File> {
    let mut file = append_to(path)?;
    if ends_inside_a_line(path) {
        // A crash or a full disk cut it; the next line must not become a part of it.
        tracing::warn!(path = %path.display(), "the last line of the audit log is incomplete; it stays as it is");
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Pipes and devices have no end to look at.
fn ends_inside_a_line(path: &Path) -> bool {
    let length = match path.metadata() {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => return false,
    };
    let mut last = [b'\n'];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut last, length.saturating_sub(1)));
    read.is_ok() && last != *b"\n"
}
