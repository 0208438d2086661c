//! A fetch as programs are told of it. Every field stands in it always, `null` or empty where it says
//! nothing; names that the audit log has, too, mean the same here.

use serde::Serialize;

use super::Live;
use crate::{audit::Timestamp, cache::Fetched};

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
    pub(in crate::cli) sha256: Option<&'a str>,
    pub(in crate::cli) duration_us: Option<u128>,
    pub(in crate::cli) expires: Option<Timestamp>,
    pub(in crate::cli) error: Option<String>,
}

/// One that was followed.
#[derive(Serialize)]
pub(in crate::cli) struct Redirect<'a> {
    status: Option<u16>,
    to: &'a str,
}

// === impl FetchRecord ===

impl<'a> FetchRecord<'a> {
    pub(super) fn new(live: &'a Live) -> Self {
        let traced = &live.traced;
        let error = match &traced.fetched {
            Fetched::Failed(failure) => Some(failure.error.to_string()),
            Fetched::Received(_) | Fetched::TooManyRedirects { .. } => live.detour().map(str::to_owned),
        };
        let answer = live.answer();
        Self {
            fetched: Some(Timestamp(live.at)),
            status: traced.hops.last().and_then(|asked| asked.status),
            redirects: std::iter::zip(&traced.hops, traced.hops.iter().skip(1))
                .map(|(from, to)| Redirect {
                    status: from.status,
                    to: &to.url,
                })
                .collect(),
            bytes: live.body().map(<[u8]>::len),
            cut: live.body().map(|_| live.is_cut()),
            sha256: answer.copy().map(|copy| &*copy.sha256),
            duration_us: Some(traced.took.as_micros()),
            expires: live.ground().expires.map(Timestamp),
            error: answer.failure().map(|failure| failure.error.to_string()).or(error),
        }
    }
}
