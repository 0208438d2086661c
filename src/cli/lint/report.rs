//! Findings for a person: as a compiler tells them, a line of the file under each.
//!
//! Never lets a byte of the file through: findings come fit for a terminal.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
};

use super::Counts;
use crate::{
    cli::paint::{Colour, Paint},
    robots::{Finding, Lint, Severity},
};

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
    paint: Paint,
) -> io::Result<()> {
    let mut left_out = left_out(findings, extent);
    let mut shown: BTreeMap<Lint, usize> = BTreeMap::new();
    for finding in findings {
        let shown = shown.entry(finding.code).or_default();
        if *shown == extent.of_one(finding.severity) {
            continue;
        }
        *shown += 1;
        write_finding(out, name, finding, paint)?;
        if finding.severity == Severity::Note
            && let Some(more) = left_out.remove(&finding.code)
        {
            let bar = paint.in_colour(Colour::Faint, format!("{:>6} |", ""));
            writeln!(out, "{bar} … and {more} (--all shows each)")?;
        }
        writeln!(out)?;
    }
    for (code, more) in left_out {
        let severity = paint.in_colour(colour(code.severity()), code.severity().as_str());
        let code = paint.in_colour(Colour::Faint, format!("[{code}]"));
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

fn write_finding(out: &mut impl Write, name: &str, finding: &Finding, paint: Paint) -> io::Result<()> {
    let severity = paint.in_colour(colour(finding.severity), finding.severity.as_str());
    let code = paint.in_colour(Colour::Faint, format!("[{}]", finding.code));
    let message = &finding.message;
    if finding.line == 0 {
        return writeln!(out, "{name}: {severity}: {message} {code}");
    }
    let number = finding.line;
    writeln!(out, "{name}:{number}: {severity}: {message} {code}")?;
    writeln!(
        out,
        "{} {}",
        paint.in_colour(Colour::Faint, format!("{number:>6} |")),
        finding.text
    )
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

fn colour(severity: Severity) -> Colour {
    match severity {
        Severity::Error => Colour::Bad,
        Severity::Warning => Colour::Warning,
        Severity::Note => Colour::Note,
    }
}
