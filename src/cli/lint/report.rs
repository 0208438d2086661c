//! Findings for a person: as a compiler tells them, a line of the file under each.
//!
//! Never lets a byte of the file through: findings come fit for a terminal.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
};

use super::Counts;
use crate::robots::{Finding, Lint, Severity};

/// Whether to use colours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    Plain,
    Colour,
}

/// How much to show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Extent {
    /// Of each code a few: notes are told once and counted.
    Few,
    /// Each finding.
    All,
}

/// Findings of one code beyond those that are shown.
struct More {
    count: usize,
    first: u32,
    last: u32,
}

/// Writes the findings as far as `extent` has it, what is left out, and the sum.
pub(super) fn write(
    out: &mut impl Write,
    name: &str,
    findings: &[Finding],
    counts: Counts,
    extent: Extent,
    style: Style,
) -> io::Result<()> {
    let mut left_out = left_out(findings, extent);
    let mut shown: BTreeMap<Lint, usize> = BTreeMap::new();
    for finding in findings {
        let shown = shown.entry(finding.code).or_default();
        if *shown == extent.of_one(finding.severity) {
            continue;
        }
        *shown += 1;
        write_finding(out, name, finding, style)?;
        if finding.severity == Severity::Note
            && let Some(more) = left_out.remove(&finding.code)
        {
            let bar = style.dim(&format!("{:>6} |", ""));
            writeln!(out, "{bar} … and {more} (--all shows each)")?;
        }
        writeln!(out)?;
    }
    for (code, more) in left_out {
        let severity = style.severity(code.severity());
        let code = style.dim(&format!("[{code}]"));
        writeln!(out, "{name}: {severity}: {more} (see --all) {code}")?;
    }
    writeln!(out, "{name}: {}", sum(counts))
}

/// Of each code, the findings that are not shown.
fn left_out(findings: &[Finding], extent: Extent) -> BTreeMap<Lint, More> {
    let mut seen: BTreeMap<Lint, usize> = BTreeMap::new();
    let mut left_out: BTreeMap<Lint, More> = BTreeMap::new();
    for finding in findings {
        let seen = seen.entry(finding.code).or_default();
        if *seen < extent.of_one(finding.severity) {
            *seen += 1;
            continue;
        }
        let more = left_out.entry(finding.code).or_insert(More {
            count: 0,
            first: finding.line,
            last: finding.line,
        });
        more.count += 1;
        more.last = finding.line;
    }
    left_out
}

fn write_finding(out: &mut impl Write, name: &str, finding: &Finding, style: Style) -> io::Result<()> {
    let severity = style.severity(finding.severity);
    let code = style.dim(&format!("[{}]", finding.code));
    let message = &finding.message;
    if finding.line == 0 {
        return writeln!(out, "{name}: {severity}: {message} {code}");
    }
    let number = finding.line;
    writeln!(out, "{name}:{number}: {severity}: {message} {code}")?;
    writeln!(out, "{} {}", style.dim(&format!("{number:>6} |")), finding.text)
}

fn sum(counts: Counts) -> String {
    let parts = [
        (counts.errors, "error"),
        (counts.warnings, "warning"),
        (counts.notes, "note"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| format!("{count} {noun}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    if parts.is_empty() {
        "nothing to remark".to_owned()
    } else {
        parts.join(", ")
    }
}

// === impl Extent ===

impl Extent {
    /// Findings of one code that are shown.
    fn of_one(self, severity: Severity) -> usize {
        match (self, severity) {
            (Self::All, _) => usize::MAX,
            (Self::Few, Severity::Note) => 1,
            (Self::Few, Severity::Warning | Severity::Error) => 10,
        }
    }
}

// === impl More ===

impl fmt::Display for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, first, last } = self;
        if first == last {
            write!(f, "{count} more in line {first}")
        } else {
            write!(f, "{count} more in lines {first} to {last}")
        }
    }
}

// === impl Style ===

impl Style {
    /// Colours at a terminal that shows them, where <https://no-color.org> does not forbid it.
    pub(super) fn for_output(is_terminal: bool) -> Self {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb");
        if is_terminal && !forbidden && !dumb {
            Self::Colour
        } else {
            Self::Plain
        }
    }

    fn severity(self, severity: Severity) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        self.paint(code, severity.as_str())
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
