//! Opens the log's file for appending. Can also check whether that would succeed, without creating the file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use crate::files::may_make_in;

pub(super) fn check(path: &Path) -> io::Result<()> {
    match opening().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            // Opening the log creates the file but no folder, so the folder must exist.
            folder.metadata()?;
            may_make_in(folder)
        }
        opened => opened.map(drop),
    }
}

pub(super) fn append_to(path: &Path) -> io::Result<File> {
    opening().create(true).open(path)
}

fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .append(true)
        // The log names the URLs that bots request, so not every user may read it.
        .mode(0o640)
        // Without this flag, opening a FIFO that nobody reads would block forever.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options
}

pub(super) fn append_on_a_new_line(path: &Path) -> io::Result<File> {
    let mut file = append_to(path)?;
    begin_line(&mut file, path)?;
    Ok(file)
}

/// `path` is the path of `file`.
pub(super) fn begin_line(file: &mut File, path: &Path) -> io::Result<()> {
    if ends_inside_a_line(path) {
        // After a crash or a full disk, the last line can be incomplete.
        tracing::warn!(
            path = %path.display(),
            "the last line of the audit log is incomplete, as after a crash or a full disk; robotgate leaves this line \
             as it is, and begins a new one"
        );
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns `false` for pipes and devices, because their end cannot be read.
fn ends_inside_a_line(path: &Path) -> bool {
    let length = match path.metadata() {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => return false,
    };
    let mut last = [b'\n'];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut last, length.saturating_sub(1)));
    read.is_ok() && last != *b"\n"
}
