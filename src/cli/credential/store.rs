//! The credentials file on disk. A change locks the file's folder and replaces the whole file. The new file has the
//! mode, owner and group of the old one. Only the lines of the changed credential differ.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{Gid, Uid, fchown};

use crate::{
    bot::name_of,
    files::{self, SecretError, create_unfinished, folder_of, unfinished},
};

/// Exclusive write access to the credentials file.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    /// The folder of the file, locked until this value is dropped.
    lock: File,
}

#[derive(Debug)]
pub(super) struct Before {
    pub(super) text: String,
    mode: u32,
    owner: (u32, u32),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error(
        "cannot open or lock the folder {} of the credentials file: {source}{}", path.display(), match source.kind() {
            io::ErrorKind::NotFound => "; create it, or correct identity.credentials",
            _ => advice(source),
        }
    )]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}{}", path.display(), advice(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot keep the owner and group of {}: {source}; run this command as root", path.display())]
    Owner { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("{} is not UTF-8; save the file as UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("another process keeps the folder {} locked; stop that process, then try again", .0.display())]
    Locked(PathBuf),
}

// === impl Store ===

impl Store {
    /// Waits for exclusive access to the credentials file, at most ten seconds. The file need not exist yet.
    pub(super) fn lock(path: &Path) -> Result<Self, StoreError> {
        // Replace the file behind a symbolic link, and not the link itself.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = folder_of(&path);
        match files::lock(folder).map_err(|source| folder_error(folder, source))? {
            Some(lock) => Ok(Self { lock, path }),
            None => Err(StoreError::Locked(folder.to_owned())),
        }
    }

    pub(super) fn read(&self) -> Result<Option<Before>, StoreError> {
        read(&self.path)
    }

    /// The new file gets the owner, group and mode of `before`.
    pub(super) fn write(&self, text: &str, before: Option<&Before>) -> Result<(), StoreError> {
        let unfinished = unfinished(&self.path);
        let result = self.write_unfinished(&unfinished, text, before).and_then(|()| {
            let renamed = fs::rename(&unfinished, &self.path).and_then(|()| self.lock.sync_all());
            renamed.map_err(|source| write_error(&self.path, source))
        });
        if result.is_err() {
            // Ignore an error here: the unfinished file may not exist.
            let _ = fs::remove_file(&unfinished);
        }
        result
    }

    fn write_unfinished(&self, unfinished: &Path, text: &str, before: Option<&Before>) -> Result<(), StoreError> {
        let failed = |source| write_error(unfinished, source);
        // At first, only the user of this process can read the new file. It gets its owner and group before its mode.
        // Otherwise, the group of this process could read it for a moment.
        let mut file = create_unfinished(unfinished).map_err(failed)?;
        let made = file.metadata().map_err(failed)?;
        match before {
            Some(before) if (made.uid(), made.gid()) != before.owner => {
                let (uid, gid) = before.owner;
                fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(|error| {
                    let path = self.path.clone();
                    let source = error.into();
                    StoreError::Owner { path, source }
                })?;
            }
            _ => {}
        }
        let mode = before.map_or(NEW_MODE, |before| before.mode);
        file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(failed)
    }
}

/// Returns `None` if the file does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Before>, StoreError> {
    let (bytes, metadata) = match files::read_secret_with(path) {
        Err(SecretError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let mode = metadata.permissions().mode() & 0o7777;
    Ok(Some(Before {
        text: String::from_utf8(bytes).map_err(|_| StoreError::NotText(path.to_owned()))?,
        mode,
        owner: (metadata.uid(), metadata.gid()),
    }))
}

pub(super) fn with_line(text: &str, line: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{end}{line}\n")
}

/// Removes the lines of the credential `name`; with `all_but_last`, all except the last. Returns the new text and the
/// number of removed lines. The number is `None` if `name` has no line.
pub(super) fn without(text: &str, name: &str, all_but_last: bool) -> (String, Option<usize>) {
    let is_of_name = |line: &str| name_of(line) == Some(name);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(last) = lines.iter().rposition(|line| is_of_name(line)) else {
        return (text.to_owned(), None);
    };
    let kept: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| !is_of_name(line) || (all_but_last && *at == last))
        .map(|(_, line)| *line)
        .collect();
    (kept.concat(), Some(lines.len() - kept.len()))
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run this command as root or as the owner of the folder",
        _ => "",
    }
}

fn folder_error(path: &Path, source: io::Error) -> StoreError {
    let path = path.to_owned();
    StoreError::Folder { path, source }
}

fn write_error(path: &Path, source: io::Error) -> StoreError {
    let path = path.to_owned();
    StoreError::Write { path, source }
}

const NEW_MODE: u32 = 0o640;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bot::{SALT, SecretHash};

    fn line(name: &str, secret: &str) -> String {
        SecretHash::new([1; SALT], secret.as_bytes()).line(name)
    }

    #[test]
    fn a_new_line_is_added_at_the_end() {
        assert_eq!(with_line("", "a"), "a\n");
        assert_eq!(with_line("# x\n", "a"), "# x\na\n");
        assert_eq!(with_line("# x", "a"), "# x\na\n");
    }

    #[test]
    fn removing_a_name_removes_only_its_lines() {
        let (old, new, other) = (line("a", "old"), line("a", "new"), line("ab", "x"));
        let text = format!("# a:\n{old}\r\n\n{other}\na:nonsense\n  {new}");
        let gone = format!("# a:\n\n{other}\na:nonsense\n");
        assert_eq!(without(&text, "a", false), (gone.clone(), Some(2)));
        assert_eq!(without(&text, "a", true), (format!("{gone}  {new}"), Some(1)));
        assert_eq!(without(&text, "ab", true), (text.clone(), Some(0)));
        assert_eq!(without(&text, "b", false), (text.clone(), None));
    }
}
