//! Asks for the copies that a configuration names: the proxy that has the file open or, where none
//! runs, the file itself.
//!
//! Everything is taken in before anything is shown: an open file would keep a proxy from starting for
//! as long as a person reads. It blocks.

mod find;
mod talk;

use std::{io, path::PathBuf};

pub use self::find::Copies;
use self::find::Source;
use super::{
    protocol::{Forgot, Line, Request},
    row::{Detail, Row},
    stats::{Count, Stats},
    view,
};
use crate::{
    origin::Origin,
    store::{FileError, Why},
};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(
        "by cache.persist = false nothing is kept on disk; what a proxy has in memory alone cannot be shown. Leave \
         persist out to keep copies over a restart"
    )]
    NotKept,
    #[error("nothing is kept yet at {}; does a proxy run, and by the same configuration (--config)?", .0.display())]
    Nothing(PathBuf),
    #[error(
        "{} is in use by a process that does not answer on its socket ({}): a robotgate that could make none, as \
         its log says, or another program. Stop it, then try again", .path.display(), .socket.display()
    )]
    Locked { path: PathBuf, socket: PathBuf },
    #[error(
        "a proxy answers at {}, but only to the user whom it runs as: run this as that user, or with sudo",
        .0.display()
    )]
    Denied(PathBuf),
    #[error("{} cannot be used: {why}", .path.display())]
    Unusable { path: PathBuf, why: Why },
    #[error("{} cannot be read: {error}", .path.display())]
    File { path: PathBuf, error: FileError },
    #[error("the proxy at {} does not answer: {error}; its log may say why", .socket.display())]
    Talk { socket: PathBuf, error: io::Error },
    #[error("the answer of the proxy ended before its end; try again")]
    Cut,
    #[error(
        "the proxy answered what this version does not understand; is it of another one? Restart it after an upgrade"
    )]
    Foreign,
    #[error("{0}")]
    Told(String),
}

// === impl Copies ===

impl Copies {
    /// Every origin that is known and has `filter` in its name, by name.
    ///
    /// # Errors
    /// There is no whole answer.
    pub fn list(self, filter: &str) -> Result<Vec<Row>, AdminError> {
        if filter.len() > MAX_ORIGIN {
            return Ok(Vec::new());
        }
        let filter = filter.to_ascii_lowercase();
        match self.source {
            Source::File(_) => {
                let policy = self.policy;
                self.in_file(|file| view::rows(file, "", &filter, usize::MAX, &policy).map(|(rows, _)| rows))
            }
            Source::Proxy(talk) => {
                let mut rows = Vec::new();
                talk.ask(self.tell, &Request::List { filter }, |line| {
                    if let Line::Row(row) = line {
                        rows.push(*row);
                    }
                })?;
                Ok(rows)
            }
        }
    }

    /// All that is known of an origin.
    ///
    /// # Errors
    /// There is no whole answer.
    pub fn show(self, origin: &Origin) -> Result<Option<Detail>, AdminError> {
        match self.source {
            Source::File(_) => {
                let policy = self.policy;
                self.in_file(|file| view::detail(file, origin, &policy))
            }
            Source::Proxy(talk) => {
                let mut detail = None;
                let origin = origin.to_string();
                talk.ask(self.tell, &Request::Show { origin }, |line| {
                    if let Line::Detail(found) = line {
                        detail = Some(*found);
                    }
                })?;
                Ok(detail)
            }
        }
    }

    /// Has all forgotten that is known of an origin.
    ///
    /// # Errors
    /// It is not forgotten, or may count again after a restart.
    pub fn forget(self, origin: &Origin) -> Result<Forgot, AdminError> {
        let origin = origin.to_string();
        match self.source {
            Source::File(_) => {
                let forgotten = self.in_file(|file| file.forget(&origin))?;
                Ok(Forgot { origin, forgotten })
            }
            Source::Proxy(talk) => {
                let mut forgot = None;
                talk.ask(self.tell, &Request::Forget { origin }, |line| {
                    if let Line::Forgot(done) = line {
                        forgot = Some(done);
                    }
                })?;
                forgot.ok_or(AdminError::Foreign)
            }
        }
    }

    /// What is known, in numbers.
    ///
    /// # Errors
    /// There is no whole answer.
    pub fn stats(self) -> Result<Stats, AdminError> {
        match self.source {
            Source::File(_) => {
                let (policy, path) = (self.policy, self.path.clone());
                self.in_file(|file| {
                    let mut count = Count::default();
                    view::count(file, "", usize::MAX, &mut count, &policy)?;
                    let contents = file.contents()?;
                    Ok(Stats {
                        file_bytes: std::fs::metadata(&path)?.len(),
                        path: path.display().to_string(),
                        count,
                        texts: contents.texts,
                        text_bytes: contents.text_bytes,
                        running: None,
                    })
                })
            }
            Source::Proxy(talk) => {
                let mut stats = None;
                talk.ask(self.tell, &Request::Stats {}, |line| {
                    if let Line::Stats(told) = line {
                        stats = Some(*told);
                    }
                })?;
                stats.ok_or(AdminError::Foreign)
            }
        }
    }
}

/// Bytes that no origin is longer than: a scheme, a name of 253 bytes and a port.
const MAX_ORIGIN: usize = 300;
