//! Seals the audit log, so that anybody can find out later whether its lines were changed.
//!
//! The SHA-256 of each line is an entry of a Merkle tree (RFC 6962 §2.1). A folder holds the tree as tiles
//! (c2sp.org/tlog-tiles), with a checkpoint that an Ed25519 key signs (c2sp.org/tlog-checkpoint). Somebody who has the
//! key can seal a changed log anew. But then the tree no longer fits earlier checkpoints that cover a changed line.
//!
//! The modules `tree`, `note` and `compare` do no I/O.
//!
//! # Order of writes
//!
//! Sealing writes bundles of entries, then tiles, then the checkpoint, then the position in the log up to which it
//! sealed. It renames each file into its place when the file is complete and on disk. If the program is killed before
//! it wrote the checkpoint, the old checkpoint and its files are still there. If it is killed between the checkpoint
//! and the position, the checkpoint covers lines after the old position. The next sealing compares these lines with
//! their entries.

mod background;
mod compare;
mod folder;
mod keys;
mod lines;
mod note;
mod prove;
mod sealing;
mod tree;
mod verify;

use std::{
    io,
    path::{Path, PathBuf},
};

use self::folder::Folder;
pub(crate) use self::lines::erased_entry;
pub use self::{
    background::{SealState, Sealer},
    lines::files_of,
    note::{NoteError, VerifierKey},
    prove::{Proven, prove},
    sealing::{Sealed, rotate_key, seal},
    verify::{Verification, Verify, verify},
};
use crate::files::SecretError;

/// Where to store the seal of a log, and the name of the log (`evidence.seal-path`, `evidence.seal-origin`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealOptions {
    /// The folder for the tree, the checkpoint and the keys. Sealing creates it.
    pub path: PathBuf,
    /// The name that the log must have in its checkpoints. `None` accepts the name that the folder already uses.
    pub origin: Option<String>,
    /// The name that the log gets if sealing creates the first key of the folder.
    pub new_origin: String,
}

/// Why a log cannot be sealed or verified, or a line in it cannot be proven.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("cannot read {}: {}", path.display(), crate::files::Unreadable(error))]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot write {}: {}", path.display(), without_number(error))]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot sync {} to the disk: {}", path.display(), without_number(error))]
    Sync { path: PathBuf, error: io::Error },
    #[error(
        "cannot use the seal folder {}: {}{}", path.display(), without_number(error), advice(error)
    )]
    Open { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("{}: {error}", path.display())]
    Note { path: PathBuf, error: NoteError },
    #[error(
        "{}: it is damaged or missing; restore the whole seal folder from one backup, or set a new evidence.seal-path \
         and a new evidence.seal-origin", .0.display()
    )]
    Damaged(PathBuf),
    #[error(
        "another process is sealing in {}; a later attempt can succeed. Only one process (evidence.seal or a timer) \
         should seal this folder", .0.display()
    )]
    Locked(PathBuf),
    #[error(
        "{}: nothing is sealed here; seal a log first, or name the right folder with --folder or --config", .0.display()
    )]
    Empty(PathBuf),
    #[error(
        "{}: this seal folder has none of the public keys that --key names; it may be the folder of another log, or \
         somebody may have replaced it", .0.display()
    )]
    Untrusted(PathBuf),
    #[error(
        "{}: the private key with the id {id} is not here; restore this file, or set a new evidence.seal-path and a \
         new evidence.seal-origin", path.display()
    )]
    NoKey { path: PathBuf, id: String },
    #[error(
        "the folder {} belongs to the log {is}, but evidence.seal-origin names the log {wanted}; set the earlier name \
         again, or give this log a folder of its own (evidence.seal-path)", path.display()
    )]
    Origin { path: PathBuf, is: String, wanted: String },
    #[error(
        "{}: it has no record of an audit log; name the file of audit.path, or wait until it has lines", .0.display()
    )]
    NoLog(PathBuf),
    /// Sealed lines are changed or missing. Each attempt fails until somebody repairs the log, or seals with `--go-on`.
    #[error("{0}. {GO_ON}")]
    Differs(String),
    /// The message does not recommend `--go-on`, which would seal lines that contradict checkpoints newer than this
    /// one.
    #[error(
        "{}: it is older than the last sealing; restore the whole seal folder from one backup, or set a new \
         evidence.seal-path and a new evidence.seal-origin", .0.display()
    )]
    OldCheckpoint(PathBuf),
    #[error(
        "no line in the log files that were read has the id {0}; check the id, or name the file that has its lines"
    )]
    NoLine(String),
    #[error(
        "{}: the first sealed lines are not those that this checkpoint covers. Probably, the seal folder is an old \
         backup, or somebody changed or removed sealed lines and sealed the log again", .0.display()
    )]
    Unfit(PathBuf),
    #[error(
        "the checkpoint covers none of the lines with the id {id}. Either they {}. Or they were changed after they \
         were sealed: `robotgate seal verify` shows this. Or the folder seals another log: name the right one with \
         --folder",
        match is_current {
            true => "are not sealed yet: try again after the next sealing (evidence.seal, a timer or `robotgate seal`)",
            false => "were not sealed yet when it was made: name a later checkpoint",
        }
    )]
    NotCovered {
        id: String,
        /// Whether the checkpoint is the folder's current one.
        is_current: bool,
    },
}

impl SealError {
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Read {
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Write {
            path: path.to_owned(),
            error,
        }
    }
}

/// Returns an error's text without the number of the system's error, such as `(os error 2)`.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            " for the user {}; seal as the owner of the folder, or choose another folder (evidence.seal-path)",
            rustix::process::geteuid()
        ),
        io::ErrorKind::AlreadyExists => "; it is a file, so choose another path (evidence.seal-path)".to_owned(),
        _ => String::new(),
    }
}

/// Checks the signature of the checkpoint in a folder, and returns the checkpoint with its signatures.
pub fn checkpoint(folder: &Path) -> Result<String, SealError> {
    let folder = Folder(folder.to_owned());
    let chain = keys::Chain::load(&folder, &[])?;
    let (bytes, ..) = chain.checkpoint(&folder)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether `name` can be the name of a log in its checkpoints.
pub fn is_origin(name: &str) -> bool {
    note::checked_name(name).is_some()
}

const CHECKPOINT: &str = "checkpoint";
const POSITION: &str = "position";
const GO_ON: &str = "\"robotgate seal verify\" lists what differs. To seal the new lines in spite of that, run \
                     \"robotgate seal --go-on\"";

#[cfg(test)]
mod tests;
