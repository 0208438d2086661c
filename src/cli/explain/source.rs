//! Where `robotgate explain` takes the robots.txt from: a file, the site, or nowhere if the decision does not need one.

use std::{
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    cli::{
        live::{self, Live, LiveError},
        source,
    },
    config::Config,
    copy::{Lookup, Policy, SiteDocument},
    decision::Decision,
    explanation::FetchRecord,
    fetch::within_limit,
    files::Unreadable,
    origin::Origin,
    text::plain,
};

#[derive(Debug)]
pub(super) enum Source {
    /// The decision does not need a robots.txt.
    Unasked,
    File(File),
    Live(Box<Live>),
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// The beginning of the file, up to the 500 KiB that robotgate uses of a robots.txt.
    pub(super) body: Vec<u8>,
    /// Whether the file is longer than `body`.
    pub(super) cut: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("cannot read {name}: {}", Unreadable(error))]
    File { name: String, error: io::Error },
    #[error(transparent)]
    Live(#[from] LiveError),
}

// === impl File ===

impl File {
    /// Returns the file's name, escaped for a terminal.
    pub(super) fn name(&self) -> String {
        named(&self.path)
    }
}

// === impl Source ===

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, SourceError> {
        let content = if path == Path::new(INPUT) {
            source::of_input()
        } else {
            source::of_file(path)
        };
        let content = content.map_err(|error| SourceError::File {
            name: named(path),
            error,
        })?;
        let length = content.len();
        let body = within_limit(content);
        Ok(Self::File(File {
            path: path.to_owned(),
            cut: body.len() < length,
            body,
        }))
    }

    pub(super) fn fetch(config: &Config, origin: &Origin) -> Result<Self, SourceError> {
        Ok(Self::Live(Box::new(live::fetch(
            config,
            &SiteDocument::ROBOTS_TXT,
            origin,
        )?)))
    }

    /// Returns the robots.txt as if it came from the proxy's cache, or `None` if the decision needed none.
    pub(super) fn lookup(&self, policy: &Policy) -> Option<Lookup> {
        match self {
            Self::Unasked => None,
            Self::File(file) => Some(Lookup::given(&file.body, SystemTime::now(), policy)),
            Self::Live(live) => Some(live.lookup()),
        }
    }

    pub(super) fn file(&self) -> Option<String> {
        match self {
            Self::File(file) => Some(file.path.display().to_string()),
            Self::Unasked | Self::Live(_) => None,
        }
    }

    pub(super) fn record(&self, decision: &Decision) -> FetchRecord<'_> {
        match self {
            Self::Unasked => FetchRecord::of_decision(decision),
            Self::File(file) => FetchRecord {
                fetched: None,
                status: None,
                expires: None,
                cut: Some(file.cut),
                ..FetchRecord::of_decision(decision)
            },
            Self::Live(live) => {
                let record = live.record();
                FetchRecord {
                    error: decision.shown_error().or(record.error),
                    ..record
                }
            }
        }
    }

    pub(super) fn detour(&self) -> Option<&'static str> {
        match self {
            Self::Unasked | Self::File(_) => None,
            Self::Live(live) => live.detour(),
        }
    }

    pub(super) fn body(&self) -> Option<&[u8]> {
        match self {
            Self::Unasked => None,
            Self::File(file) => Some(&file.body),
            Self::Live(live) => live.body(),
        }
    }
}

fn named(path: &Path) -> String {
    if path == Path::new(INPUT) {
        "standard input".to_owned()
    } else {
        plain(&path.to_string_lossy(), MAX_NAME).into_owned()
    }
}

/// Maximum length of a printed file name in bytes.
const MAX_NAME: usize = 1000;
const INPUT: &str = "-";
