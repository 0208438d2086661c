//! Findings for a person: as a compiler tells them, a line of the file under each.
//!
//! Never lets a byte of the file through: findings come fit for a terminal.

use std::{
    collections::BTreeMap,
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

/// Findings of one code beyond those that are shown.
struct More {
    count: usize,
    first: u32,
    last: u32,
}

/// Writes at most `limit` findings of each code, what is left out, and the sum.
pub(super) fn write(
    out: &mut impl Write,
    name: &str,
    findings: &[Finding],
    counts: Counts,
    limit: usize,
    style: Style,
) -> io::Result<()> {
    let mut shown: BTreeMap<Lint, usize> = BTreeMap::new();
    let mut more: BTreeMap<Lint, More> = BTreeMap::new();
    for finding in findings {
        let count = shown.entry(finding.code).or_default();
        if *count < limit {
            *count += 1;
            write_finding(out, name, finding, style)?;
        } else {
            let left_out = more.entry(finding.code).or_insert(More {
                count: 0,
                first: finding.line,
                last: finding.line,
            });
            left_out.count += 1;
            left_out.last = finding.line;
        }
    }
    for (code, More { count, first, last }) in more {
        let severity = style.severity(code.severity());
        let place = match count {
            1 => format!("in line {first}"),
            _ => format!("in lines {first} to {last}"),
        };
        let code = style.dim(&format!("[{code}]"));
        writeln!(out, "{name}: {severity}: {count} more {place} (see --all) {code}")?;
    }
    writeln!(out, "{name}: {}", sum(counts))
}

fn write_finding(out: &mut impl Write, name: &str, finding: &Finding, style: Style) -> io::Result<()> {
    let severity = style.severity(finding.severity);
    let code = style.dim(&format!("[{}]", finding.code));
    let message = &finding.message;
    if finding.line == 0 {
        return writeln!(out, "{name}: {severity}: {message} {code}\n");
    }
    let number = finding.line;
    writeln!(out, "{name}:{number}: {severity}: {message} {code}")?;
    writeln!(out, "{} {}\n", style.dim(&format!("{number:>6} |")), finding.text)
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
