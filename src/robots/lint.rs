//! What a person should know about a robots.txt, line by line: what is lost, what means something
//! else than it seems to, what changes nothing.
//!
//! Never says what is false in the reading of Google's parser, never decides a request and never
//! fails. Time and memory stay in proportion to the file whatever is in it, but for the logarithm of
//! sorting.
//!
//! The way of a file: `octets` (what can be said of the bytes) → `reading` (what each line says) →
//! `groups` (who is bound by what, with `agents`) → `patterns` (each rule by itself) and `scopes` (rules
//! against each other: by their `shape`, which `overlap`; by their length, `stars`) → `removals` (which
//! lines can go).

mod agents;
mod catalogue;
mod findings;
mod groups;
mod octets;
mod overlap;
mod patterns;
mod quote;
mod reading;
mod removals;
mod scopes;
mod shape;
mod sitemaps;
mod spelling;
mod stars;
mod swallowed;
mod whole;

pub use catalogue::{Lint, Severity};
pub use octets::Disguise;

use findings::Findings;
use groups::Groups;
use reading::{Reader, Said};
use sitemaps::Sitemaps;

use super::line::Lines;

/// One thing that a person should know about a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The line's number, from 1; 0 where it is about the whole file.
    pub line: u32,
    /// How much it matters: that of its `code`.
    pub severity: Severity,
    /// What it is about.
    pub code: Lint,
    /// One sentence or two for a person, saying what is so and what to do. Fit for a terminal, and
    /// of bounded length.
    pub message: String,
    /// Another line that has to do with it: the earlier one of two that are the same, say.
    pub related: Option<u32>,
    /// The line's text as it can be shown on a terminal: what cannot is written out, and what is
    /// long is cut short. Empty where `line` is 0.
    pub text: String,
}

/// All that should be known about a file, by line. Takes any bytes at all.
///
/// Of a file past [`LIMIT`](super::LIMIT) only what counts is looked at, as the fetcher cuts it.
///
/// ```
/// use robotgate::robots::{Lint, Severity, lint};
///
/// let findings = lint(b"User-agent: *\nDisallow: private/\n");
/// assert_eq!((findings[0].line, findings[0].code), (2, Lint::NoLeadingSlash));
/// assert_eq!(findings[0].severity, Severity::Error);
/// assert!(lint(b"User-agent: *\nDisallow: /private/\n").is_empty());
/// ```
#[must_use]
pub fn lint(body: &[u8]) -> Vec<Finding> {
    let mut findings = Findings::default();
    let kept = octets::kept(body, &mut findings);
    let disguise = Disguise::of(kept);
    if disguise.is_none() {
        octets::start(kept, &mut findings);
    }

    let reader = Reader::new(disguise);
    let mut groups = Groups::default();
    let mut sitemaps = Sitemaps::default();
    let mut lines = Lines::new(kept);
    while let Some((number, raw)) = lines.next_raw() {
        match reader.read(number, raw, &mut findings) {
            Said::Record(record) => groups.record(number, &record, &mut findings),
            Said::Sitemap(url) => {
                sitemaps.add(number, url, &mut findings);
                groups.interrupt();
            }
            Said::Nothing => groups.interrupt(),
            Said::Comment => {}
        }
    }

    let groups = groups.finish(&mut findings);
    scopes::compare(&groups, &mut findings);
    whole::check(body, kept, disguise, &groups, &mut findings);
    findings.finish(body)
}

#[cfg(test)]
mod tests;
