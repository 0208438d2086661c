//! Where the robots.txt comes from, and its bytes: never more of them than are of use.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use crate::robots::LIMIT;

/// A robots.txt somewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Source {
    File(PathBuf),
    Stdin,
    Url(String),
}

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("cannot read {source_name}: {error}")]
    Read { source_name: String, error: io::Error },
    #[error("lint cannot fetch {url} yet: save it to a file, and name that")]
    Url { url: String },
}

/// The bytes of `source`. Of what is longer than what counts they end a little after that.
pub(super) fn body_of(source: &Source) -> Result<Vec<u8>, SourceError> {
    let read = match source {
        Source::File(path) => File::open(path).and_then(read),
        Source::Stdin => read(io::stdin().lock()),
        Source::Url(_) => return fetch(source),
    };
    read.map_err(|error| SourceError::Read {
        source_name: source.to_string(),
        error,
    })
}

/// The boundary to the network: what is at the URL, redirects followed and content decoded. To tell
/// that a file is too long, this needs a byte more of it than [`LIMIT`].
fn fetch(source: &Source) -> Result<Vec<u8>, SourceError> {
    Err(SourceError::Url {
        url: source.to_string(),
    })
}

fn read(input: impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    input.take(MAX_READ).read_to_end(&mut body)?;
    Ok(body)
}

// === impl Source ===

impl From<OsString> for Source {
    fn from(written: OsString) -> Self {
        let is_url = |text: &&str| {
            let begins = |scheme: &str| {
                text.get(..scheme.len())
                    .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
            };
            begins("http://") || begins("https://")
        };
        match written.to_str() {
            Some("-") => Self::Stdin,
            Some(text) if is_url(&text) => Self::Url(text.to_owned()),
            _ => Self::File(written.into()),
        }
    }
}

/// Fit for a terminal, whatever the file is called.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::File(path) => path.to_string_lossy(),
            Self::Stdin => return f.write_str("standard input"),
            Self::Url(url) => url.into(),
        };
        f.write_str(&crate::audit::plain(&name, MAX_NAME))
    }
}

/// Bytes that are read: what counts, and the line after it to show.
const MAX_READ: u64 = LIMIT as u64 + 64 * 1024;

/// Bytes of a file's name that are shown.
const MAX_NAME: usize = 1000;
