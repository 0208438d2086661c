//! A URL on the command line: split as the proxy splits a request target, so that odd spellings
//! come to the same. Nothing is normalised but the origin.

use pingora::protocols::http::authority::{RawTargetAuthority, raw_target_authority};

use crate::origin::{Authority, AuthorityError, Origin, Scheme};

/// What is asked for.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) origin: Origin,
    /// Path and query, as written.
    pub(super) path: Vec<u8>,
}

/// The URL is none that has a robots.txt.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("this is not a whole URL; write one like https://example.com/page")]
    NotAbsolute,
    #[error("only http and https URLs have a robots.txt")]
    Scheme,
    #[error("the URL's host cannot be read: {0}")]
    Authority(#[from] AuthorityError),
    #[error("the URL can be read in two ways")]
    Ambiguous,
}

// === impl Target ===

impl Target {
    pub(super) fn parse(url: &str) -> Result<Self, TargetError> {
        let RawTargetAuthority::Absolute {
            scheme,
            authority,
            path_and_query,
        } = (match raw_target_authority(url.as_bytes()) {
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
}
