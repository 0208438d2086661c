//! What a person should know about a robots.txt, line by line: what is lost, what means something
//! else than it seems to, what changes nothing.
//!
//! Never says what is false in the reading of Google's parser, never decides a request and never
//! fails. Time and memory stay in proportion to the file whatever is in it, but for the logarithm of
//! sorting.
//!
//! The way of a file: `octets` (what can be said of the bytes) → `lines` (what each line says, and `patterns`, each by
//! itself) → `groups` (who is bound by what) → `rules` (which of them do nothing beside others: the engine is asked).

mod catalogue;
mod groups;
mod lines;
mod octets;
mod patterns;
mod rules;

pub use catalogue::{Lint, Severity};
pub use octets::Disguise;

use self::{groups::LintGroup, lines::Reader};
use super::{Profile, RobotsTxt, SiteAccess, groups as texts, line::Lines};
use crate::text::plain;

/// One thing that a person should know about a file.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
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

    let mut reader = Reader::default();
    reader.disguised = disguise.is_some();
    let mut lines = Lines::new(kept);
    while let Some((number, raw)) = lines.next_raw() {
        reader.read(number, raw, &mut findings);
    }

    let texts = texts::read(Profile::Google, kept);
    let groups = groups::check(&texts, &reader.breaks, &mut findings);
    rules::compare(&groups, &mut findings);
    check_file(body, kept, disguise, &groups, &mut findings);
    findings.finish(body)
}

/// Says whether the file has rules, and whether they shut everyone out. `kept` is what counts of
/// `body`.
fn check_file(body: &[u8], kept: &[u8], disguise: Option<Disguise>, groups: &[LintGroup<'_>], findings: &mut Findings) {
    let ruled = groups.iter().any(LintGroup::binds);
    if let Some(disguise) = disguise {
        disguise.report(ruled, findings);
    } else if body.is_empty() {
        let message = "The file is empty: every crawler may fetch everything.";
        findings.add(0, Lint::EmptyFile, message);
    } else if !ruled {
        let message = "No rule in the file binds anybody: every crawler may fetch everything.";
        findings.add(0, Lint::NoRules, message);
    }
    let robots = RobotsTxt::parse(kept);
    let everyone = robots.product("");
    if everyone.site_access() == SiteAccess::AllDisallowed
        && let Some(rule) = everyone.decide(b"/").rule
    {
        let message = "This shuts every crawler that has no group of its own out of the whole site.";
        findings.add(rule.line(), Lint::BlocksEverything, message);
    }
}

/// What has been found so far, in any order.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

// === impl Findings ===

impl Findings {
    fn add(&mut self, line: u32, code: Lint, message: impl Into<String>) {
        self.0.push(Finding {
            line,
            severity: code.severity(),
            code,
            message: message.into(),
            related: None,
            text: String::new(),
        });
    }

    /// As [`add`](Self::add), where the line `related` has to do with it.
    fn relate(&mut self, line: u32, related: u32, code: Lint, message: impl Into<String>) {
        self.add(line, code, message);
        if let Some(finding) = self.0.last_mut() {
            finding.related = Some(related);
        }
    }

    /// By line, each with the text of its line in `body`.
    fn finish(mut self, body: &[u8]) -> Vec<Finding> {
        self.0.sort_by_key(|finding| (finding.line, finding.code));
        let mut lines = Lines::new(body);
        let mut current = (0, &[][..]);
        for finding in &mut self.0 {
            while current.0 < finding.line
                && let Some(next) = lines.next_raw()
            {
                current = next;
            }
            finding.text = shown(current.1.trim_ascii_end(), MAX_TEXT);
        }
        self.0
    }
}

/// The start of `bytes` in backticks, for a sentence.
fn quoted(bytes: &[u8]) -> String {
    format!("`{}`", shown(bytes, MAX_QUOTE))
}

/// The first `max` bytes or so, fit for a sentence and a terminal.
fn shown(bytes: &[u8], max: usize) -> String {
    // A line of a megabyte is not looked at. No character has more than four bytes, so none is cut that is shown.
    let start = &bytes[..bytes.len().min(max + 4)];
    plain(&String::from_utf8_lossy(start), max).into_owned()
}

/// Bytes of a quotation in a sentence.
const MAX_QUOTE: usize = 60;

/// Bytes of a line that are shown.
const MAX_TEXT: usize = 100;

#[cfg(test)]
mod tests;
