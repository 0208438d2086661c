//! A fetched robots.txt and its metadata.

use std::{fmt, str::FromStr, sync::Arc, time::SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::TdmRep;
use crate::robots::{Profile, RobotsTxt};

/// A parsed copy of a robots.txt.
pub struct RobotsCopy {
    pub robots: RobotsTxt,
    /// SHA-256 of the bytes that were parsed.
    pub sha256: Sha256,
    pub fetched: SystemTime,
    pub status: u16,
    /// `None` after redirects, because an ETag belongs to one URL (RFC 9110 §8.8.3).
    pub etag: Option<Box<str>>,
    /// Whether this is certainly the whole `/robots.txt` of the site. `false` for a text that was cut at the size
    /// limit, or that came through a redirect.
    pub complete: bool,
    /// The entries, if this is a copy of a `tdmrep.json`. Such a copy has no robots.txt rules.
    pub tdmrep: Option<Arc<TdmRep>>,
}

/// A SHA-256 digest, written in lower-case hex. With it, an auditor can find the robots.txt of a decision months later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

// === impl RobotsCopy ===

impl RobotsCopy {
    /// Parses `body`, received at `fetched`, with `profile`.
    pub fn new(profile: Profile, body: &[u8], fetched: SystemTime) -> Self {
        Self {
            robots: RobotsTxt::parse_as(profile, body),
            sha256: Sha256::of(body),
            fetched,
            status: 200,
            etag: None,
            complete: false,
            tdmrep: None,
        }
    }

    /// Parses `body`, received at `fetched`, as a `tdmrep.json`.
    pub fn of_tdmrep(profile: Profile, body: &[u8], fetched: SystemTime) -> Self {
        Self {
            robots: RobotsTxt::without_rules(profile, body),
            sha256: Sha256::of(body),
            tdmrep: Some(Arc::new(TdmRep::parse(body))),
            ..Self::new(profile, b"", fetched)
        }
    }

    /// Parses the copy's text again with another profile. A `tdmrep.json` means the same in every profile.
    #[must_use]
    pub fn under(&self, profile: Profile) -> Self {
        let parse = match self.tdmrep {
            Some(_) => RobotsTxt::without_rules,
            None => RobotsTxt::parse_as,
        };
        Self {
            robots: parse(profile, self.robots.body()),
            sha256: self.sha256,
            fetched: self.fetched,
            status: self.status,
            etag: self.etag.clone(),
            complete: self.complete,
            tdmrep: self.tdmrep.clone(),
        }
    }

    /// Returns the memory that the copy uses, in bytes.
    pub fn weight(&self) -> usize {
        // `RobotsTxt::weight` includes the size of the `RobotsTxt`.
        let overhead = size_of::<Self>() - size_of::<RobotsTxt>();
        let tdmrep = self.tdmrep.as_deref().map_or(0, TdmRep::weight);
        overhead + self.robots.weight() + self.etag.as_deref().map_or(0, str::len) + tdmrep
    }
}

impl fmt::Debug for RobotsCopy {
    /// The text, which can be half a megabyte, is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsCopy")
            .field("profile", &self.robots.profile())
            .field("sha256", &self.sha256)
            .field("fetched", &self.fetched)
            .field("etag", &self.etag)
            .finish_non_exhaustive()
    }
}

impl PartialEq for RobotsCopy {
    fn eq(&self, other: &Self) -> bool {
        let profiles_are_equal = self.robots.profile() == other.robots.profile();
        profiles_are_equal
            && (self.sha256, self.fetched, self.status, &self.etag, self.complete)
                == (other.sha256, other.fetched, other.status, &other.etag, other.complete)
    }
}

// === impl Sha256 ===

impl Sha256 {
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;

        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(data_encoding::HEXLOWER.encode_mut_str(&self.0, &mut [0; 64]))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(data_encoding::HEXLOWER.encode_mut_str(&self.0, &mut [0; 64]))
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl FromStr for Sha256 {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes());
        let digest = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        digest
            .map(Self)
            .ok_or("a SHA-256 has 64 hexadecimal digits, in small letters")
    }
}

/// Parsing this many bytes takes about half a millisecond. Larger files are parsed on a blocking thread.
pub(super) const LARGE: usize = 64 * 1024;
