//! Where the robots.txt comes from, and its bytes: never more of them than are of use.
//!
//! What an answer means is not decided here: a site's robots.txt is fetched as the proxy fetches it.

use std::{
    borrow::Cow,
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

use super::absence::Absence;
use crate::{
    cli::{
        live::{self, Live, LiveError},
        load, source,
    },
    config::ConfigError,
    origin::{Target, TargetError},
    text::plain,
    unreadable::Unreadable,
};

/// A robots.txt somewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Source {
    File(PathBuf),
    Stdin,
    /// Of a site: whatever the path, its robots.txt is meant.
    Url(String),
}

/// A robots.txt that was asked for, whether there is one or not.
pub(super) struct Found {
    /// Where it stands, fit for a terminal.
    pub(super) name: String,
    bytes: Bytes,
}

enum Bytes {
    /// From the disk.
    Read(Vec<u8>),
    /// From the site.
    Fetched(Box<Live>),
}

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("cannot read {source_name}: {}{hint}", Unreadable(error))]
    Read {
        source_name: String,
        error: io::Error,
        hint: String,
    },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{source_name}: {error}")]
    Url { source_name: String, error: TargetError },
    #[error(transparent)]
    Live(#[from] LiveError),
}

/// The robots.txt of the URL's origin, fetched by the configuration in `config`.
fn fetch(source: &Source, url: &str, config: Option<&Path>) -> Result<Found, SourceError> {
    let config = load(config)?;
    let target = Target::parse(url).map_err(|error| SourceError::Url {
        source_name: source.to_string(),
        error,
    })?;
    Ok(Found {
        name: plain(&target.origin.robots_url(), MAX_NAME).into_owned(),
        bytes: Bytes::Fetched(Box::new(live::fetch(&config, &target.origin)?)),
    })
}

// === impl Found ===

impl Found {
    /// What there is to read. Of what is longer than what counts it ends a little after that.
    pub(super) fn body(&self) -> Option<Cow<'_, [u8]>> {
        match &self.bytes {
            Bytes::Read(bytes) => Some(bytes.into()),
            Bytes::Fetched(live) => live.body_as_read().map(Cow::Owned),
        }
    }

    /// The fetch, where there was one.
    pub(super) fn live(&self) -> Option<&Live> {
        match &self.bytes {
            Bytes::Read(_) => None,
            Bytes::Fetched(live) => Some(live),
        }
    }

    /// Why there is nothing to read.
    pub(super) fn absence(&self) -> Option<Absence> {
        self.live().and_then(Absence::of)
    }
}

// === impl Source ===

impl Source {
    /// What to write where a site was meant, and no file has its name.
    fn hint(&self, error: &io::Error) -> String {
        match self {
            Self::File(path) if error.kind() == io::ErrorKind::NotFound => {
                let site = path.to_str().filter(|name| is_like_a_site(name));
                site.map_or_else(String::new, |site| {
                    let site = plain(site, MAX_NAME);
                    format!("; for the robots.txt of a site, write https://{site}")
                })
            }
            _ => String::new(),
        }
    }

    /// What is there. `config` is for fetching.
    pub(super) fn find(&self, config: Option<&Path>) -> Result<Found, SourceError> {
        let read = match self {
            Self::File(path) => source::of_file(path),
            Self::Stdin => source::of_input(),
            Self::Url(url) => return fetch(self, url, config),
        };
        let name = self.to_string();
        match read {
            Ok(bytes) => Ok(Found {
                name,
                bytes: Bytes::Read(bytes),
            }),
            Err(error) => Err(SourceError::Read {
                hint: self.hint(&error),
                source_name: name,
                error,
            }),
        }
    }
}

/// Whether a name may be that of a site, and is not likely a file's.
fn is_like_a_site(name: &str) -> bool {
    let host = name.split('/').next().unwrap_or_default();
    let is_label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    host.contains('.') && host.split('.').all(is_label) && !host.ends_with(".txt")
}

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
        f.write_str(&plain(&name, MAX_NAME))
    }
}

/// Bytes of a file's name that are shown.
const MAX_NAME: usize = 1000;
