//! Where the robots.txt comes from, and its bytes: never more of them than are of use.
//!
//! What an answer means is not decided here: a site's robots.txt is fetched as the proxy fetches it.

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    cli::{
        live::{self, Live, LiveError},
        load, source,
    },
    config::ConfigError,
    copy::{Answer, Fetched},
    files::Unreadable,
    origin::{Target, TargetError},
    text::plain,
};

/// A robots.txt somewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Source {
    File(PathBuf),
    Stdin,
    /// Of a site: whatever the path, its robots.txt is meant.
    Url(String),
}

/// The robots.txt to check, or the fetch that found none.
pub(super) struct LintInput {
    /// Where it stands, fit for a terminal.
    pub(super) name: String,
    /// What there is to read. Of what is longer than what counts it ends a little after that.
    pub(super) body: Option<Vec<u8>>,
    /// The fetch, where there was one.
    pub(super) live: Option<Live>,
}

/// What a site has in place of rules.
pub(super) struct Absence {
    /// As it is said.
    pub(super) text: String,
    /// Whether someone should mend it. To have no robots.txt is no fault.
    pub(super) is_fault: bool,
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
    pub(super) fn find(&self, config: Option<&Path>) -> Result<LintInput, SourceError> {
        let read = match self {
            Self::File(path) => source::of_file(path),
            Self::Stdin => source::of_input(),
            Self::Url(url) => return self.fetch(url, config),
        };
        let source_name = self.to_string();
        match read {
            Ok(bytes) => Ok(LintInput {
                name: source_name,
                body: Some(bytes),
                live: None,
            }),
            Err(error) => Err(SourceError::Read {
                hint: self.hint(&error),
                source_name,
                error,
            }),
        }
    }

    /// The robots.txt of the URL's origin, fetched by the configuration in `config`.
    fn fetch(&self, url: &str, config: Option<&Path>) -> Result<LintInput, SourceError> {
        let config = load(config)?;
        let origin = Target::origin_of(url).map_err(|error| SourceError::Url {
            source_name: self.to_string(),
            error,
        })?;
        let live = live::fetch(&config, &origin)?;
        Ok(LintInput {
            name: plain(&origin.robots_url(), MAX_NAME).into_owned(),
            body: live.body_as_read(),
            live: Some(live),
        })
    }
}

/// Whether a name may be that of a site, and is not likely a file's.
fn is_like_a_site(name: &str) -> bool {
    let host = name.split('/').next().unwrap_or_default();
    let is_label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    host.contains('.') && host.split('.').all(is_label) && !host.ends_with(".txt")
}

impl From<OsString> for Source {
    fn from(argument: OsString) -> Self {
        let is_url = |text: &str| {
            text.split_once("://")
                .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
        };
        match argument.to_str() {
            Some("-") => Self::Stdin,
            Some(text) if is_url(text) => Self::Url(text.to_owned()),
            _ => Self::File(argument.into()),
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

// === impl Absence ===

impl Absence {
    /// `None` where there are rules. What the answer means has been decided by the cache's state machine.
    pub(super) fn of(live: &Live) -> Option<Self> {
        let fetched = &live.traced.fetched;
        let (is_fault, text) = match live.answer() {
            Answer::Rules(_) | Answer::LastCopy(..) => return None,
            Answer::NoRobots if matches!(fetched, Fetched::TooManyRedirects { .. }) => (
                true,
                "the redirects lead to no robots.txt, which counts as having none: everything is allowed".to_owned(),
            ),
            Answer::NoRobots => (false, "the site has no robots.txt: everything is allowed".to_owned()),
            Answer::Soft404 => (
                true,
                format!(
                    "the server answers {} with a page that says there is no robots.txt: to Google everything is allowed, \
                     to others nothing; answer 404",
                    fetched.status()
                ),
            ),
            answer @ (Answer::Unreachable(_) | Answer::UnreachableTooLong(_)) => {
                let reason = answer.failure().map(|failure| failure.error.to_string());
                let reason = reason.unwrap_or_default();
                (
                    true,
                    format!(
                        "the robots.txt cannot be fetched, and until it can everything is disallowed: {}",
                        plain(&reason, MAX_REASON)
                    ),
                )
            }
        };
        Some(Self { text, is_fault })
    }
}

/// Bytes of a file's name and of a reason that are shown.
const MAX_NAME: usize = 1000;
const MAX_REASON: usize = 500;
