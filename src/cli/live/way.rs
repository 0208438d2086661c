//! A fetch as people are told of it: each URL that was asked, what came of it, and for how long that
//! holds.
//!
//! Everything from outside is made fit for a terminal; nothing is decided.

use std::{
    fmt::{Display, Formatter, Result},
    time::{Duration, SystemTime},
};

use super::Live;
use crate::{
    audit::{Timestamp, plain},
    cache::{Answer, Asked, Fetched},
};

/// The way of a fetch, in indented lines.
pub(super) struct Way<'a>(pub(super) &'a Live);

// === impl Way ===

impl Display for Way<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self(live) = self;
        for Asked { url, status } in &live.traced.hops {
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
                writeln!(f, "  after {took:.3} s: {}", plain(&error, MAX_ERROR))?;
            }
            (_, Some(body), _) => {
                let bytes = body.len();
                let plural = if bytes == 1 { "" } else { "s" };
                writeln!(f, "  {bytes} byte{plural} in {took:.3} s")?;
            }
            (_, None, Some(detour)) => {
                writeln!(f, "  {detour}, which counts as no robots.txt; that took {took:.3} s")?;
            }
            // What such an answer says is not read.
            (_, None, None) => writeln!(f, "  answered in {took:.3} s")?,
        }
        if live.is_cut() {
            writeln!(f, "  the file is longer, but only its first 500 KiB count")?;
        }
        let Some(expires) = live.ground().expires else {
            return Ok(());
        };
        let left = Left(expires.duration_since(live.at).unwrap_or_default());
        match live.answer() {
            Answer::Unreachable(_) | Answer::UnreachableTooLong(_) => writeln!(f, "  tried again in {left}"),
            _ => writeln!(f, "  holds for {left}, until {}", Minute(expires)),
        }
    }
}

/// A time as people say it, down to seconds.
struct Left(Duration);

/// A time without its seconds.
struct Minute(SystemTime);

// === impl Left ===

impl Display for Left {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let seconds = self.0.as_secs_f64().round() as u64;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match (hours, minutes, seconds) {
            (0, 0, seconds) => write!(f, "{seconds} s"),
            (0, minutes, 0) => write!(f, "{minutes} min"),
            (0, minutes, seconds) => write!(f, "{minutes} min {seconds} s"),
            (hours, 0, _) => write!(f, "{hours} h"),
            (hours, minutes, _) => write!(f, "{hours} h {minutes} min"),
        }
    }
}

// === impl Minute ===

impl Display for Minute {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let whole = Timestamp(self.0).to_string();
        // The log's form has 16 characters up to the minutes.
        let minute = whole.get(..16).unwrap_or(&whole);
        write!(f, "{} UTC", minute.replace('T', " "))
    }
}

/// Bytes of what is shown of a URL, of an error.
const MAX_URL: usize = 500;
const MAX_ERROR: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_do() {
        for (seconds, said) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (66, "1 min 6 s"),
            (3600, "1 h"),
            (86_400, "24 h"),
            (5 * 3600 + 62, "5 h 1 min"),
        ] {
            assert_eq!(Left(Duration::from_secs(seconds)).to_string(), said);
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(Minute(time).to_string(), "1994-11-06 08:49 UTC");
    }
}
