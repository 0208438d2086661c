//! Finds lines of a robots.txt that are ignored, do not mean what they seem to mean, or have no effect.
//!
//! It reads the file as Google's parser does. Linting never affects a request and never fails. A budget limits its work
//! for patterns with wildcards.

mod catalogue;
mod groups;
mod lines;
mod octets;
mod patterns;
mod rules;
mod usage;

pub use catalogue::{Lint, Severity};
pub use octets::Disguise;

use self::{groups::LintGroup, lines::Reader};
use super::{Profile, RobotsTxt, SiteAccess, groups as texts, line::Lines};
use crate::text::plain;

/// One mistake or surprise in a file.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Finding {
    /// Line number, from 1. 0 if the finding is about the whole file.
    pub line: u32,
    pub severity: Severity,
    pub code: Lint,
    /// What is wrong and usually what to do, in a few sentences that are safe to print in a terminal.
    pub message: String,
    /// Another line that the finding involves, such as the earlier of two equal lines.
    pub related: Option<u32>,
    /// Text of the line, cut and escaped so that it is safe to print in a terminal. Empty if `line` is 0.
    pub text: String,
}

/// Returns all findings about a file, sorted by line. Accepts any bytes, but checks only the first
/// [`LIMIT`](super::LIMIT) of them.
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

/// Checks whether the file has rules, and whether they forbid everything. `kept` is `body` within the size limit.
fn check_file(body: &[u8], kept: &[u8], disguise: Option<Disguise>, groups: &[LintGroup<'_>], findings: &mut Findings) {
    let ruled = groups.iter().any(LintGroup::has_effective_rules);
    if let Some(disguise) = disguise {
        disguise.report(ruled, findings);
    } else if body.is_empty() {
        let message = "The file is empty: every crawler may fetch everything.";
        findings.add(0, Lint::EmptyFile, message);
    } else if !ruled {
        let message = "No rule in the file applies to any crawler: every crawler may fetch everything.";
        findings.add(0, Lint::NoRules, message);
    }
    let robots = RobotsTxt::parse(kept);
    let everyone = robots.product("");
    if everyone.site_access() == SiteAccess::AllDisallowed
        && let Some(rule) = everyone.decide(b"/").rule
    {
        let message = "This blocks the whole site for every crawler without its own group.";
        findings.add(rule.line(), Lint::BlocksEverything, message);
    }
}

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

    fn relate(&mut self, line: u32, related: u32, code: Lint, message: impl Into<String>) {
        self.add(line, code, message);
        if let Some(finding) = self.0.last_mut() {
            finding.related = Some(related);
        }
    }

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

fn quoted(bytes: &[u8]) -> String {
    format!("`{}`", shown(bytes, MAX_QUOTE))
}

/// Returns about the first `max` bytes, made safe for a sentence and a terminal.
fn shown(bytes: &[u8], max: usize) -> String {
    // A line can be huge, so convert only its start. Four more bytes complete the last character.
    let start = &bytes[..bytes.len().min(max + 4)];
    plain(&String::from_utf8_lossy(start), max).into_owned()
}

/// Maximum length of a quotation in a sentence, in bytes.
const MAX_QUOTE: usize = 60;

/// Maximum length of a line that is shown, in bytes.
const MAX_TEXT: usize = 100;

#[cfg(test)]
mod tests;
