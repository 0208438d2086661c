//! A fetch as programs are told of it. Every field stands in it always, `null` or empty where it says
//! nothing; names that the audit log has, too, mean the same here.

use serde::Serialize;

use super::Live;
use crate::{
    audit::Timestamp,
    cache::{Fetched, Received},
};

/// What came of a fetch. The default is of none.
#[derive(Default, Serialize)]
pub(in crate::cli) struct FetchRecord<'a> {
    pub(in crate::cli) fetched: Option<Timestamp>,
    pub(in crate::cli) status: Option<u16>,
    pub(in crate::cli) redirects: Vec<Redirect<'a>>,
    pub(in crate::cli) bytes: Option<usize>,
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
        let (bytes, error) = match &traced.fetched {
            Fetched::Received(Received { body, .. }) => (Some(body.len()), None),
            Fetched::TooManyRedirects { .. } => (None, Some("more than 5 redirects, or a loop".to_owned())),
            Fetched::Failed(failure) => (None, Some(failure.error.to_string())),
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
            bytes,
            sha256: answer.copy().map(|copy| &*copy.sha256),
            duration_us: Some(traced.took.as_micros()),
            expires: live.ground().expires.map(Timestamp),
            error: answer.failure().map(|failure| failure.error.to_string()).or(error),
        }
    }
}
