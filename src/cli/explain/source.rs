//! Where the robots.txt comes from: a file, the site, or nowhere, because nobody need ask.
//!
//! What it says is read elsewhere.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use crate::{
    cache::{Answer, RobotsCopy, within_limit},
    cli::live::{self, Live, LiveError},
    config::Config,
    origin::Origin,
    robots::Profile,
};

/// A robots.txt and where it is from.
#[derive(Debug)]
pub(super) enum Source {
    /// The decision needs none.
    Unasked,
    File(File),
    Live(Box<Live>),
}

/// A robots.txt on the disk.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// What counts of it.
    pub(super) body: Vec<u8>,
    /// Whether the file is longer than what counts.
    pub(super) cut: bool,
    copy: Arc<RobotsCopy>,
}

/// There is nothing to read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("cannot read {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Live(#[from] LiveError),
}

// === impl File ===

impl File {
    /// Whether it is no file but standard input.
    pub(super) fn is_input(&self) -> bool {
        self.path == Path::new(INPUT)
    }
}

// === impl Source ===

impl Source {
    pub(super) fn read(path: &Path, profile: Profile) -> Result<Self, SourceError> {
        let whole = if path == Path::new(INPUT) {
            let mut input = Vec::new();
            io::stdin().read_to_end(&mut input).map(|_| input)
        } else {
            fs::read(path)
        };
        let whole = whole.map_err(|source| SourceError::File {
            path: path.to_owned(),
            source,
        })?;
        let length = whole.len();
        let body = within_limit(whole);
        Ok(Self::File(File {
            path: path.to_owned(),
            cut: body.len() < length,
            copy: Arc::new(RobotsCopy::new(profile, &body, SystemTime::now())),
            body,
        }))
    }

    pub(super) fn fetch(config: &Config, origin: &Origin) -> Result<Self, SourceError> {
        Ok(Self::Live(Box::new(live::fetch(config, origin)?)))
    }

    /// What holds of the robots.txt.
    pub(super) fn answer(&self) -> Option<Answer<'_>> {
        match self {
            Self::Unasked => None,
            Self::File(file) => Some(Answer::Rules(&file.copy)),
            Self::Live(live) => Some(live.answer()),
        }
    }

    /// The text, where there is one.
    pub(super) fn body(&self) -> Option<&[u8]> {
        match self {
            Self::Unasked => None,
            Self::File(file) => Some(&file.body),
            Self::Live(live) => live.body(),
        }
    }
}

/// What stands for standard input.
const INPUT: &str = "-";
