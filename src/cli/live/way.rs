//! Writes a fetch for a person: each requested URL, the result, and how long the result applies. Everything from
//! outside is escaped for a terminal.

use std::fmt::{Display, Formatter, Result};

use super::Live;
use crate::{
    copy::{Answer, Fetched},
    fetch::TracedHop,
    text::{Minute, Span},
    text::{plain, plain_message},
};

pub(super) struct Way<'a>(pub(super) &'a Live);

// === impl Way ===

impl Display for Way<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self(live) = self;
        for TracedHop { url, status, .. } in &live.traced.hops {
            let url = plain(url, MAX_URL);
            match status {
                Some(status) => writeln!(f, "  {status}  {url}")?,
                None => writeln!(f, "  ---  {url}")?,
            }
        }
        let took = live.traced.took.as_secs_f64();
        match (&live.traced.fetched, live.body(), live.detour()) {
            (Fetched::Failed(failure), ..) => {
                let error = failure.error.to_string();
                writeln!(f, "  after {took:.3} s: {}", plain_message(&error, MAX_ERROR))?;
            }
            (_, Some(body), _) => {
                let bytes = body.len();
                let plural = if bytes == 1 { "" } else { "s" };
                writeln!(f, "  {bytes} byte{plural} in {took:.3} s")?;
            }
            (_, None, Some(detour)) => {
                writeln!(f, "  {detour}, which is treated like a 404; that took {took:.3} s")?;
            }
            (_, None, None) => writeln!(f, "  answered in {took:.3} s")?,
        }
        if live.is_cut() {
            writeln!(f, "  the file is longer, but robotgate uses only its first 500 KiB")?;
        }
        let Some(expires) = live.source_fetch().expires else {
            return Ok(());
        };
        let left = Span(expires.duration_since(live.at).unwrap_or_default());
        match live.answer() {
            // Bots may not reach the site, so do not say when to try again.
            Answer::Unreachable(Some(failure)) if failure.is_prohibited() => Ok(()),
            Answer::Unreachable(_) | Answer::UnreachableTooLong(_) => {
                writeln!(f, "  would be tried again after {left}")
            }
            _ => writeln!(f, "  valid for {left}, until {}", Minute(expires)),
        }
    }
}

/// Maximum lengths of a printed URL and of a printed error, in bytes.
const MAX_URL: usize = 500;
const MAX_ERROR: usize = 200;
