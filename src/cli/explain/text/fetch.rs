//! Where the robots.txt came from: the way of its fetch, what came of it, and how long it holds.

use std::{
    fmt::{Result, Write as _},
    time::{Duration, SystemTime},
};

use super::{MAX_URL, MAX_VALUE, count};
use crate::{
    audit::{Timestamp, plain},
    cache::{Answer, Asked, Fetched},
    cli::{
        explain::{
            paint::{Colour, Paint},
            report::Report,
            source::Source,
        },
        live::Live,
    },
};

pub(super) fn write(report: &Report<'_>, paint: Paint, out: &mut String) -> Result {
    match report.source {
        Source::Unasked => Ok(()),
        Source::File(file) => {
            let path = match file.is_input() {
                true => "standard input".to_owned(),
                false => file.path.display().to_string(),
            };
            writeln!(
                out,
                "\nRead from {}, {}.",
                plain(&path, MAX_URL),
                count(file.body.len(), "byte")
            )?;
            if file.cut {
                writeln!(out, "The file is longer, but only its first 500 KiB count.")?;
            }
            Ok(())
        }
        Source::Live(live) => fetched(live, paint, out),
    }
}

fn fetched(live: &Live, paint: Paint, out: &mut String) -> Result {
    writeln!(out, "\n{}", paint.in_colour(Colour::Strong, "Fetched:"))?;
    for Asked { url, status } in &live.traced.hops {
        let url = plain(url, MAX_URL);
        match status {
            Some(status) => writeln!(out, "  {status}  {url}")?,
            None => writeln!(out, "  ---  {url}")?,
        }
    }
    let took = live.traced.took.as_secs_f64();
    match &live.traced.fetched {
        Fetched::Received(received) => writeln!(out, "  {} in {took:.3} s", count(received.body.len(), "byte"))?,
        Fetched::TooManyRedirects { .. } => writeln!(out, "  more than 5 redirects, or a loop, in {took:.3} s")?,
        Fetched::Failed(failure) => {
            let error = failure.error.to_string();
            writeln!(out, "  after {took:.3} s: {}", plain(&error, MAX_VALUE))?;
        }
    }
    let Some(expires) = live.ground().expires else {
        return Ok(());
    };
    let left = Left(expires.duration_since(live.at).unwrap_or_default());
    match live.answer() {
        Answer::Unreachable(_) | Answer::UnreachableTooLong(_) => writeln!(out, "  tried again in {left}"),
        _ => writeln!(out, "  holds for {left}, until {}", Minute(expires)),
    }
}

/// A time as people say it, down to seconds.
struct Left(Duration);

/// A time without its seconds.
struct Minute(SystemTime);

// === impl Left ===

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> Result {
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

impl std::fmt::Display for Minute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> Result {
        let whole = Timestamp(self.0).to_string();
        // The log's form has 16 characters up to the minutes.
        let minute = whole.get(..16).unwrap_or(&whole);
        write!(f, "{} UTC", minute.replace('T', " "))
    }
}

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
