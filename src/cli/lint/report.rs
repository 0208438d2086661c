//! Prints findings for a person, in the style of a compiler. The findings must already be escaped for a terminal.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use crate::{
    cli::colour::{Colour, Paint},
    robots::{Finding, Lint, Severity},
};

/// Unless `all` is set, writes only the first few findings of each kind, and how many more there are.
pub(super) fn write(out: &mut impl Write, name: &str, findings: &[Finding], all: bool, paint: Paint) -> io::Result<()> {
    let shown_of = |severity| match severity {
        _ if all => usize::MAX,
        Severity::Note => 1,
        Severity::Warning | Severity::Error => 10,
    };
    let mut lines: BTreeMap<Lint, Vec<u32>> = BTreeMap::new();
    for finding in findings {
        lines.entry(finding.code).or_default().push(finding.line);
    }
    let mut shown: BTreeMap<Lint, usize> = BTreeMap::new();
    for finding in findings {
        let (most, shown) = (shown_of(finding.severity), shown.entry(finding.code).or_default());
        if *shown == most {
            continue;
        }
        *shown += 1;
        write_finding(out, name, finding, paint)?;
        if finding.severity == Severity::Note
            && let Some(more) = more(&lines[&finding.code], most)
        {
            let bar = paint.in_colour(Colour::Faint, format!("{:>6} |", ""));
            writeln!(out, "{bar} … and {more} (--all shows each)")?;
        }
        writeln!(out)?;
    }
    for (code, lines) in lines {
        let severity = code.severity();
        if severity != Severity::Note
            && let Some(more) = more(&lines, shown_of(severity))
        {
            let severity = paint.in_colour(colour(severity), severity.as_str());
            let code = paint.in_colour(Colour::Faint, format!("[{code}]"));
            writeln!(out, "{name}: {severity}: {more} (see --all) {code}")?;
        }
    }
    Ok(())
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
    let bar = paint.in_colour(Colour::Faint, format!("{number:>6} |"));
    writeln!(out, "{bar} {}", finding.text)
}

/// Says how many findings of one kind are not shown, and in which lines they are. `lines` are the line numbers of all
/// findings of this kind.
fn more(lines: &[u32], shown: usize) -> Option<String> {
    let rest = lines.get(shown..)?;
    let (count, first, last) = (rest.len(), rest.first()?, rest.last()?);
    Some(if first == last {
        format!("{count} more in line {first}")
    } else {
        format!("{count} more in lines {first} to {last}")
    })
}

fn colour(severity: Severity) -> Colour {
    match severity {
        Severity::Error => Colour::Bad,
        Severity::Warning => Colour::Warning,
        Severity::Note => Colour::Note,
    }
}
