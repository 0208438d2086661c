//! Reads the robots.txt for `robotgate lint` from a file or standard input, or fetches it from a site in the same way
//! as the proxy.

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    cli::{
        Overrides,
        live::{self, Live, LiveError},
        load, source,
    },
    config::ConfigError,
    copy::{Answer, AnswerKind, SiteDocument},
    files::Unreadable,
    origin::{Scheme, Target, TargetError},
    text::plain,
};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Source {
    File(PathBuf),
    Stdin,
    /// Any URL of a site.
    Url(String),
}

pub(super) struct LintInput {
    /// Where the robots.txt is from, escaped for a terminal.
    pub(super) name: String,
    /// `None` if the fetch returned no robots.txt. Can be longer than the part that robotgate uses, so that lint can
    /// show the first ignored bytes.
    pub(super) body: Option<Vec<u8>>,
    /// `None` if the robots.txt is from a file or standard input.
    pub(super) live: Option<Live>,
}

/// Why a site has no robots.txt to check.
pub(super) struct Absence {
    pub(super) text: String,
    /// Whether something is wrong, such as a fetch that failed. A 404 is no fault.
    pub(super) is_fault: bool,
}

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
    /// Returns advice to write a URL, for an argument such as `example.com` that names no file but looks like a site.
    fn hint(&self, error: &io::Error) -> String {
        match self {
            Self::File(path) if error.kind() == io::ErrorKind::NotFound => {
                let site = path.to_str().filter(|name| is_like_a_site(name));
                site.map_or_else(String::new, |site| {
                    let site = plain(site, MAX_NAME);
                    format!(". For the robots.txt of a site, write https://{site}")
                })
            }
            _ => String::new(),
        }
    }

    pub(super) fn find(&self, config: Option<&Path>, overrides: &Overrides) -> Result<LintInput, SourceError> {
        let read = match self {
            Self::File(path) => source::of_file(path),
            Self::Stdin => source::of_input(),
            Self::Url(url) => return self.fetch(url, config, overrides),
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

    fn fetch(&self, url: &str, config: Option<&Path>, overrides: &Overrides) -> Result<LintInput, SourceError> {
        let (config, _) = load(config, overrides)?;
        let origin = Target::origin_of(url).map_err(|error| SourceError::Url {
            source_name: self.to_string(),
            error,
        })?;
        let live = live::fetch(&config, &SiteDocument::ROBOTS_TXT, &origin)?;
        Ok(LintInput {
            name: plain(&origin.robots_url(), MAX_NAME).into_owned(),
            body: live.body_as_read(),
            live: Some(live),
        })
    }
}

fn is_like_a_site(name: &str) -> bool {
    let host = name.split('/').next().unwrap_or_default();
    let is_label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    host.contains('.') && host.split('.').all(is_label) && !host.ends_with(".txt")
}

impl From<OsString> for Source {
    fn from(argument: OsString) -> Self {
        let is_url = |text: &str| {
            text.split_once("://")
                .is_some_and(|(scheme, _)| Scheme::parse(scheme.as_bytes()).is_some())
        };
        match argument.to_str() {
            Some("-") => Self::Stdin,
            Some(text) if is_url(text) => Self::Url(text.to_owned()),
            _ => Self::File(argument.into()),
        }
    }
}

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
    pub(super) fn of(live: &Live) -> Option<Self> {
        let (is_fault, text) = match live.answer() {
            Answer::Rules(_) | Answer::LastCopy(..) => return None,
            Answer::NoRobots => match live.detour() {
                Some(detour) => (
                    true,
                    format!("the robots.txt {detour}, which is treated as no robots.txt: everything is allowed"),
                ),
                None => (false, AnswerKind::NoRobots.meaning().to_owned()),
            },
            Answer::Soft404 => (
                true,
                format!(
                    "the server answers {} with a page that says there is no robots.txt: this allows everything \
                     for Google's crawler and nothing for others; make the server answer 404",
                    live.traced.fetched.status()
                ),
            ),
            answer @ (Answer::Unreachable(_) | Answer::UnreachableTooLong(_)) => {
                let reason = answer.failure().map(|failure| failure.error.to_string());
                let reason = reason.unwrap_or_default();
                let meaning = answer.holds().meaning();
                (true, format!("{meaning}: {}", plain(&reason, MAX_REASON)))
            }
        };
        Some(Self { text, is_fault })
    }
}

/// Maximum lengths of a printed file name or URL, and of a printed reason, in bytes.
const MAX_NAME: usize = 1000;
const MAX_REASON: usize = 500;
