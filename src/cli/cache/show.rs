//! `robotgate cache show`: prints all that robotgate knows of one origin, and its robots.txt.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
    time::SystemTime,
};

use super::{CacheArgs, CacheError, NOTHING_KNOWN, origin_of, paint, print, print_json, unknown};
use crate::{
    admin::{Detail, LastCopy},
    cli::colour::{Colour, Paint},
    copy::{AnswerKind, Due, Then, Unreachable, WithoutCopy},
    robots::numbered_lines,
    text::{Minute, Span, Timestamp, plain, plain_message},
};

/// Show everything about one site, and the text of its last robots.txt
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// An origin (scheme, host and port), any URL of the site, or a bare host, which means https
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Print only the text: byte for byte, but with control characters escaped at a terminal
    #[arg(long, conflicts_with = "json")]
    text: bool,
}

// === impl ShowArgs ===

impl ShowArgs {
    pub(super) fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let origin = origin_of(&self.origin)?;
        let (config, sources) = args.load()?;
        let Some(detail) = args.ask_of(&config, |copies| copies.show(&origin))? else {
            return Err(unknown(NOTHING_KNOWN, &origin, &self.origin, &sources));
        };
        if args.json {
            return print_json(&detail);
        }
        if !self.text {
            return print(report(&detail, &config.robots.policy.unreachable, SystemTime::now(), paint()).as_bytes());
        }
        let Some(text) = detail.text() else {
            return Err(CacheError::Unknown(format!("no robots.txt of {origin} is stored")));
        };
        match io::stdout().is_terminal() {
            true => print(escaped(&text).as_bytes()),
            false => print(&text),
        }
    }
}

fn report(detail: &Detail, policy: &Unreachable, now: SystemTime, paint: Paint) -> String {
    let row = &detail.row;
    // Do not use `failing_since`: it is set after a failed fetch even if an earlier robots.txt is still valid.
    let fails = row.kind().is_some_and(AnswerKind::fails);
    let mut out = String::new();
    let mut say = |name: &str, value: String| {
        let _ = writeln!(out, "{:18}{value}", format!("{name}:"));
    };
    say("Origin", plain(&row.origin, MAX_VALUE).into_owned());
    say(
        "Holds",
        paint
            .in_colour(Colour::Strong, plain(&row.holds, MAX_VALUE))
            .to_string(),
    );
    say("Meaning", plain_message(&row.meaning, MAX_VALUE).into_owned());
    if let Some(status) = row.status {
        say("Status", status.to_string());
    }
    let is_last_try = row.failing_since.is_some() && detail.asked == row.fetched;
    if let Some(Timestamp(fetched)) = row.fetched {
        say(if is_last_try { "Last try" } else { "Fetched" }, ago(fetched, now));
    }
    if let (Some(Timestamp(last_fetch)), true) = (detail.asked, detail.asked != row.fetched) {
        say("Last try", ago(last_fetch, now));
    }
    match row.expires {
        Some(Timestamp(expires)) if fails => say("Next try", next_try(expires, now)),
        Some(Timestamp(expires)) => say("Until", until(expires, now, row.due)),
        None => {}
    }
    if let Some(text) = refused_until(detail, policy, now) {
        say("Refused until", text);
    }
    if let Some(Timestamp(since)) = row.failing_since {
        say("Failing since", ago(since, now));
        if let Some(Timestamp(answered)) = row.answered {
            say("Last good answer", ago(answered, now));
        }
    }
    if let Some(error) = &row.error {
        say("Last failure", plain_message(error, MAX_VALUE).into_owned());
    }
    if let Some(etag) = &detail.etag {
        say("ETag", plain(etag, MAX_VALUE).into_owned());
    }
    if let Some(LastCopy { status, fetched, bytes }) = &detail.last_copy {
        if row.bytes.is_none() {
            say("Last copy", format!("{}, with status {status}", ago(fetched.0, now)));
        }
        if let Some(sha256) = row.sha256 {
            say("SHA-256", sha256.to_string());
        }
        say("Bytes", bytes.to_string());
    }
    if let Some(text) = detail.text() {
        let _ = write!(out, "\n{}", numbered(&text, paint));
    }
    out
}

fn ago(then: SystemTime, now: SystemTime) -> String {
    match now.duration_since(then) {
        Ok(passed) => format!("{}, {} ago", Minute(then), Span(passed)),
        Err(_) => Minute(then).to_string(),
    }
}

fn until(then: SystemTime, now: SystemTime, due: Due) -> String {
    let how = match due {
        Due::No => "",
        Due::Background => "; refreshed in the background when a bot next needs it",
        Due::Now => "; fetched again when a bot next needs it",
    };
    match then.duration_since(now) {
        Ok(left) => format!("{}, in {}{how}", Minute(then), Span(left)),
        Err(_) => format!("{}{how}", Minute(then)),
    }
}

fn next_try(then: SystemTime, now: SystemTime) -> String {
    match then.duration_since(now) {
        Ok(left) => format!("{}, in {}, or later, when a bot asks", Minute(then), Span(left)),
        Err(_) => "when a bot next asks".to_owned(),
    }
}

/// Returns until when `policy` refuses requests to a failing site, and what applies afterwards.
fn refused_until(detail: &Detail, policy: &Unreachable, now: SystemTime) -> Option<String> {
    let Timestamp(since) = (detail.row.failing_since).filter(|_| detail.row.kind() == Some(AnswerKind::Unreachable))?;
    let then = match (policy.then, &detail.last_copy, policy.without_copy) {
        (Then::Deny, _, _) | (Then::LastCopy, None, WithoutCopy::Deny) => return None,
        (Then::LastCopy, Some(_), _) => "the last copy decides",
        (Then::Allow, _, _) | (Then::LastCopy, None, WithoutCopy::Allow) => "everything is allowed",
    };
    let end = since.checked_add(policy.deny_for)?;
    let left = Span(end.duration_since(now).ok()?);
    Some(format!(
        "{}, in {left}, if the site still fails; then {then}",
        Minute(end)
    ))
}

/// Returns the text with line numbers. A refusal names its rule by such a number.
fn numbered(text: &[u8], paint: Paint) -> String {
    if text.is_empty() {
        return String::new();
    }
    // Remove the last line end, after which `numbered_lines` would return an empty line.
    let lines = || numbered_lines(text.strip_suffix(b"\n").unwrap_or(text));
    let digits = lines().last().map_or(0, |(number, _)| number.to_string().len());
    lines()
        .map(|(number, line)| {
            let line = String::from_utf8_lossy(line);
            let margin = paint.in_colour(Colour::Faint, format!("{number:digits$} |"));
            format!("  {margin} {}\n", plain(&line, usize::MAX))
        })
        .collect()
}

/// Escapes control characters for a terminal.
pub(super) fn escaped(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines()
        .map(|line| plain(line, usize::MAX).into_owned() + "\n")
        .collect()
}

/// Maximum length of a printed value in bytes.
const MAX_VALUE: usize = 1000;

#[cfg(test)]
mod tests;
