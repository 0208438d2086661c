//! A URL that somebody asks about: split as the proxy splits a request target, so that odd spellings
//! come to the same. Nothing is normalised but the origin.

use pingora::protocols::http::authority::{RawTargetAuthority, raw_target_authority};

use crate::origin::{Authority, AuthorityError, MAX_TARGET, Origin, Scheme, unsendable};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) origin: Origin,
    /// Path and query, as written.
    pub(crate) path: Vec<u8>,
}

/// The URL is none that has a robots.txt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    #[error("this is not a whole URL; write one like https://example.com/page")]
    NotAbsolute,
    #[error("only http and https URLs have a robots.txt")]
    Scheme,
    #[error("the URL's host cannot be read: {0}")]
    Authority(#[from] AuthorityError),
    #[error("the URL has no host; write one like https://example.com/page")]
    NoHost,
    #[error("the URL can be read in two ways")]
    Ambiguous,
    #[error("the URL has {}, which has to be percent-encoded: write %{:02X} for it", name(*.0), .0)]
    Character(u8),
    #[error("the URL is longer than {} KiB, which the proxy refuses", MAX_TARGET / 1024)]
    TooLong,
}

// === impl Target ===

impl Target {
    pub(crate) fn parse(url: &str) -> Result<Self, TargetError> {
        let RawTargetAuthority::Absolute {
            scheme,
            authority,
            path_and_query,
        } = (match raw_target_authority(url.as_bytes()) {
            RawTargetAuthority::AmbiguousAuthority if has_no_host(url) => return Err(TargetError::NoHost),
            RawTargetAuthority::AmbiguousAuthority => return Err(TargetError::Ambiguous),
            RawTargetAuthority::None => return Err(TargetError::NotAbsolute),
            absolute @ RawTargetAuthority::Absolute { .. } => absolute,
        })
        else {
            return Err(TargetError::NotAbsolute);
        };
        let scheme = Scheme::parse(scheme).ok_or(TargetError::Scheme)?;
        Ok(Self {
            origin: Origin::new(scheme, Authority::parse(authority)?),
            path: path_and_query.to_vec(),
        })
    }

    /// Checks that a client could send the path, and the proxy would take it. A fragment is never
    /// sent.
    pub(crate) fn check_sendable(&self) -> Result<(), TargetError> {
        let sent = self.path.split(|byte| *byte == b'#').next().unwrap_or_default();
        if sent.len() > MAX_TARGET {
            return Err(TargetError::TooLong);
        }
        unsendable(sent).map_or(Ok(()), |byte| Err(TargetError::Character(byte)))
    }
}

/// Of a URL whose authority cannot be read: whether it has none.
fn has_no_host(url: &str) -> bool {
    let behind = url.split_once("://").map(|(_, behind)| behind);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(['/', '?', '#']))
}

fn name(byte: u8) -> String {
    match byte {
        b' ' => "a space".to_owned(),
        b'!'..=b'~' => format!("the character {}", char::from(byte)),
        _ => format!("the control character U+{byte:04X}"),
    }
}
