//! Converts a fetch into a record for programs.

use super::Live;
use crate::{audit::Redirect, copy::Fetched, explanation::FetchRecord, text::Timestamp};

// === impl FetchRecord ===

impl<'a> From<&'a Live> for FetchRecord<'a> {
    fn from(live: &'a Live) -> Self {
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
            status: traced.hops.last().and_then(|hop| hop.status),
            redirects: traced
                .redirects()
                .map(|(status, to)| Redirect {
                    status,
                    to: (&*to.url).into(),
                    upstream: to.upstream.map(|address| address.to_string()),
                })
                .collect(),
            bytes: live.body().map(<[u8]>::len),
            cut: live.body().map(|_| live.is_cut()),
            sha256: answer.copy().map(|copy| copy.sha256),
            duration_us: Some(traced.took.as_micros()),
            expires: live.source_fetch().expires.map(Timestamp),
            error: answer.failure().map(|failure| failure.error.to_string()).or(error),
        }
    }
}
