//! A fetch as programs are told of it. Every field stands in it always, `null` or empty where it says
//! nothing; names that the audit log has, too, mean the same here.

use serde::Serialize;

use super::Live;
use crate::{
    audit::{Redirect, Timestamp},
    cache::{Fetched, Sha256},
};

/// What came of a fetch. The default is of none.
#[derive(Default, Serialize)]
pub(in crate::cli) struct FetchRecord<'a> {
    pub(in crate::cli) fetched: Option<Timestamp>,
    pub(in crate::cli) status: Option<u16>,
    pub(in crate::cli) redirects: Vec<Redirect<'a>>,
    /// Of what counts of a robots.txt; `null` where none was read.
    pub(in crate::cli) bytes: Option<usize>,
    /// Whether the file is longer than what counts.
    pub(in crate::cli) cut: Option<bool>,
    pub(in crate::cli) sha256: Option<Sha256>,
    pub(in crate::cli) duration_us: Option<u128>,
    pub(in crate::cli) expires: Option<Timestamp>,
    pub(in crate::cli) error: Option<String>,
}

// === impl FetchRecord ===

impl<'a> FetchRecord<'a> {
    pub(super) fn new(live: &'a Live) -> Self {
        let traced = &live.traced;
        let error = match &traced.fetched {
            Fetched::Failed(failure) => Some(failure.error.to_string()),
            Fetched::Received(_) | Fetched::NotModified { .. } | Fetched::TooManyRedirects { .. } => {
                live.detour().map(str::to_owned)
            }
        };
        let answer = live.answer();
        Self {
            fetched: Some(Timestamp(live.at)),
            status: traced.hops.last().and_then(|asked| asked.status),
            redirects: traced
                .redirects()
                .map(|(status, to)| Redirect { status, to: to.into() })
                .collect(),
            bytes: live.body().map(<[u8]>::len),
            cut: live.body().map(|_| live.is_cut()),
            sha256: answer.copy().map(|copy| copy.sha256),
            duration_us: Some(traced.took.as_micros()),
            expires: live.ground().expires.map(Timestamp),
            error: answer.failure().map(|failure| failure.error.to_string()).or(error),
        }
    }
}
