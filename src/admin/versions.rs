//! The versions of a site's robots.txt in the store of evidence, and the difference between two. All functions block.

use std::{path::Path, time::Duration};

use serde::Serialize;
use similar::TextDiff;

use crate::{
    copy::Sha256,
    evidence::{self, EvidenceReader},
    origin::Origin,
    robots::{GroupChange, Profile, changes},
    store::FileError,
    text::{Minute, Timestamp, plain},
};

/// A version of a robots.txt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Version {
    /// 1 for the oldest version.
    pub version: usize,
    pub first_seen: Timestamp,
    /// When the site last answered with this version. For the last version, this can be up to a day too early.
    pub last_seen: Timestamp,
    pub status: Option<u16>,
    pub bytes: Option<u32>,
    /// `None` if the site had no robots.txt.
    pub sha256: Option<Sha256>,
}

/// All versions of a site's robots.txt.
#[derive(Debug)]
pub struct Versions {
    reader: EvidenceReader,
    /// The oldest first.
    pub list: Vec<Version>,
}

/// The difference between two versions.
#[derive(Debug, Serialize)]
pub struct Difference {
    pub from: Version,
    pub to: Version,
    /// `changed` or [`UNCHANGED`].
    pub rules: &'static str,
    pub rules_added: usize,
    pub rules_removed: usize,
    pub groups: Vec<GroupChange>,
    pub diff: String,
    /// Whether `groups` is incomplete.
    #[serde(skip)]
    pub is_cut: bool,
}

/// Why a version cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0}")]
    Unknown(String),
}

// === impl Versions ===

impl Versions {
    /// Reads the versions of `origin` from the store of evidence at `path`.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn read(path: &Path, origin: &Origin) -> Result<Self, FileError> {
        let reader = EvidenceReader::open(path)?;
        let found = reader.history(origin)?;
        let list = (1..).zip(&found).map(|(number, found)| Version::new(number, found));
        Ok(Self {
            list: list.collect(),
            reader,
        })
    }

    /// Returns the text of a version; empty if the site had no robots.txt.
    ///
    /// # Errors
    /// Fails if the store cannot be read, or no longer has the text.
    pub fn text(&self, version: &Version) -> Result<Vec<u8>, VersionError> {
        let Some(sha256) = version.sha256 else {
            return Ok(Vec::new());
        };
        let text = self.reader.read(&[sha256])?.remove(&sha256);
        text.ok_or_else(|| {
            VersionError::Unknown(format!(
                "the store of evidence no longer has the text of version {}",
                version.version
            ))
        })
    }

    /// Compares two versions of a robots.txt.
    ///
    /// # Errors
    /// Fails if the store cannot be read, or no longer has one of the texts.
    pub fn difference(&self, profile: Profile, from: &Version, to: &Version) -> Result<Difference, VersionError> {
        let (before, after) = (self.text(from)?, self.text(to)?);
        let found = changes(profile, &before, &after);
        Ok(Difference {
            rules: if found.has_rules() { "changed" } else { UNCHANGED },
            rules_added: found.rules_added(),
            rules_removed: found.rules_removed(),
            diff: unified(&before, &after, &from.title(), &to.title()),
            is_cut: found.is_cut,
            groups: found.groups,
            from: from.clone(),
            to: to.clone(),
        })
    }

    /// Returns the two versions that `named` names: with one name, that version and the one before it; with none, the
    /// last two. `list` must not be empty.
    ///
    /// # Errors
    /// Fails if one of the two versions does not exist.
    pub fn pair(&self, named: &[String]) -> Result<(&Version, &Version), VersionError> {
        pair(&self.list, named)
    }

    /// Finds a version by its number or the beginning of its SHA-256; the last one if several match.
    ///
    /// # Errors
    /// Fails if there is no such version.
    pub fn find(&self, named: &str) -> Result<&Version, VersionError> {
        find(&self.list, named)
    }
}

// === impl Version ===

impl Version {
    fn new(number: usize, found: &evidence::Version) -> Self {
        Self {
            version: number,
            first_seen: Timestamp(found.first_seen),
            last_seen: Timestamp(found.last_seen),
            status: Some(found.status).filter(|status| *status != 0),
            bytes: found.text.map(|text| text.bytes),
            sha256: found.text.map(|text| text.sha256),
        }
    }

    fn title(&self) -> String {
        let what = match (self.sha256, self.status) {
            (Some(sha256), _) => format!("SHA-256 {}", short(sha256)),
            (None, Some(status)) => format!("no robots.txt ({status})"),
            (None, None) => "no robots.txt".to_owned(),
        };
        format!("version {}, {}, {what}", self.version, Minute(self.first_seen.0))
    }
}

fn pair<'v>(versions: &'v [Version], named: &[String]) -> Result<(&'v Version, &'v Version), VersionError> {
    let (from, to) = match named {
        [from, to] => (find(versions, from)?, find(versions, to)?),
        [] | [_] => {
            let to = match named.first() {
                Some(named) => find(versions, named)?,
                // The caller of `Versions::pair` has made sure that the list is not empty.
                None => &versions[versions.len() - 1],
            };
            let from = to.version.checked_sub(2).map(|before| &versions[before]);
            let from = from.ok_or_else(|| {
                VersionError::Unknown(format!(
                    "version {} is the oldest, so there is none to compare it with",
                    to.version
                ))
            })?;
            (from, to)
        }
        // clap and the API accept at most two versions.
        _ => return Err(VersionError::Unknown("--diff compares two versions at most".to_owned())),
    };
    Ok((from, to))
}

fn find<'v>(versions: &'v [Version], named: &str) -> Result<&'v Version, VersionError> {
    let number: Option<usize> = named.parse().ok();
    let by_number = number.and_then(|number| versions.get(number.checked_sub(1)?));
    let is_named = |version: &&Version| {
        let sha256 = version.sha256.map(|sha256| sha256.to_string());
        sha256.is_some_and(|sha256| named.len() >= MIN_DIGITS && sha256.starts_with(&named.to_ascii_lowercase()))
    };
    let found = by_number.or_else(|| versions.iter().rev().find(is_named));
    found.ok_or_else(|| {
        VersionError::Unknown(match versions.len() {
            0 => "no version of this site's robots.txt is stored".to_owned(),
            count => format!(
                "there is no version {:?}; name it by its number, 1 to {count}, or by the first digits of its SHA-256 \
                 ({MIN_DIGITS} at least)",
                plain(named, MAX_NAME)
            ),
        })
    })
}

/// Returns the first digits of a digest, for people.
pub fn short(sha256: Sha256) -> String {
    sha256.to_string()[..SHOWN_DIGITS].to_owned()
}

/// Escapes control characters.
fn unified(before: &[u8], after: &[u8], from: &str, to: &str) -> String {
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        match text {
            "" => Vec::new(),
            text => text
                .split('\n')
                .map(|line| plain(line, usize::MAX).into_owned())
                .collect(),
        }
    };
    let (before, after) = (lines(before), lines(after));
    let [before, after] = [&before, &after].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
    let diff = TextDiff::configure()
        .timeout(MAX_TIME)
        .newline_terminated(false)
        .diff_slices(&before, &after);
    let diff = diff.unified_diff().header(from, to).to_string();
    match diff.match_indices('\n').nth(MAX_LINES) {
        Some((end, _)) => {
            let more = diff[end + 1..].lines().count();
            format!("{}\n… {more} more lines\n", &diff[..end])
        }
        None => diff,
    }
}

/// The value of [`Difference::rules`] if the rules and groups are the same.
pub const UNCHANGED: &str = "unchanged";
/// How many digits of a SHA-256 are shown, and how many are at least needed to name a version.
const SHOWN_DIGITS: usize = 12;
const MIN_DIGITS: usize = 6;
/// How long to search for the shortest difference.
const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_LINES: usize = 5000;
/// Maximum length in bytes of an unknown version that an error quotes.
const MAX_NAME: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(digests: &[Option<&str>]) -> Vec<Version> {
        let version = |(number, text): (usize, &Option<&str>)| Version {
            version: number,
            first_seen: Timestamp(std::time::SystemTime::UNIX_EPOCH),
            last_seen: Timestamp(std::time::SystemTime::UNIX_EPOCH),
            status: Some(if text.is_some() { 200 } else { 404 }),
            bytes: text.map(|text| u32::try_from(text.len()).expect("short")),
            sha256: text.map(|text| Sha256::of(text.as_bytes())),
        };
        (1..).zip(digests).map(version).collect()
    }

    #[test]
    fn versions_are_named_by_number_or_digest_and_the_last_two_by_default() {
        let versions = versions(&[Some("a"), None, Some("b"), Some("a")]);
        let a = Sha256::of(b"a").to_string();
        for (named, expected) in [
            (&[][..], Some((3, 4))),
            (&["2"], Some((1, 2))),
            (&["1", "3"], Some((1, 3))),
            (&["3", "1"], Some((3, 1))),
            (&["2", &a[..6].to_uppercase()], Some((2, 4))),
            (&["1"], None),
            (&["0"], None),
            (&["5"], None),
            (&[&a[..5]], None),
            (&["example.com"], None),
        ] {
            let named: Vec<String> = named.iter().map(|named| (*named).to_owned()).collect();
            let found = pair(&versions, &named).map(|(from, to)| (from.version, to.version));
            assert_eq!(found.ok(), expected, "{named:?}");
        }
    }

    #[test]
    fn the_difference_shows_lines_with_their_context() {
        let before = b"User-agent: *\nDisallow: /a\nDisallow: /b\nDisallow: /c\nDisallow: /d\nDisallow: /e\n";
        let after = b"User-agent: *\nDisallow: /a\nDisallow: /b\nDisallow: /c\nDisallow: /d\nAllow: /\x1b[2J\n";
        assert_eq!(
            unified(before, after, "one", "two"),
            "--- one\n+++ two\n@@ -3,4 +3,4 @@\n Disallow: /b\n Disallow: /c\n Disallow: /d\n\
             -Disallow: /e\n+Allow: /\\u{1b}[2J\n"
        );
        assert_eq!(
            unified(b"", b"a\n", "one", "two"),
            "--- one\n+++ two\n@@ -0,0 +1 @@\n+a\n"
        );
        assert_eq!(unified(b"a", b"a\n", "one", "two"), "");
    }

    #[test]
    fn a_long_difference_is_cut() {
        let long = (0..MAX_LINES * 2).map(|line| format!("{line}\n")).collect::<String>();
        let diff = unified(b"", long.as_bytes(), "one", "two");
        assert_eq!(diff.lines().count(), MAX_LINES + 2);
        assert!(diff.ends_with("… 5002 more lines\n"), "{}", &diff[diff.len() - 80..]);
    }
}
