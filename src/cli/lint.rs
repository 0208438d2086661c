//! `robotgate lint`: prints what [`crate::robots::lint()`] finds in a robots.txt, with line numbers.

mod report;
mod source;

use std::{
    fmt,
    io::{self, BufWriter, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::builder::{OsStringValueParser, TypedValueParser as _};

use super::{
    Overrides,
    colour::{Colour, Paint},
    fail,
    live::Live,
};
use crate::{
    explanation::FetchRecord,
    robots::{Finding, Severity, lint},
};
use source::{Absence, LintInput, Source};

/// Find lines of a robots.txt that have no effect, are misleading, or are useless
///
/// Reads the file as Google's parser does. Examples of lines without effect: rules before any user-agent, patterns that
/// never match, misspelt keys, and lines after the first 500 KiB. Examples of misleading lines: user-agents that share
/// rules only because no rule separates them, a `#` or `$` inside a pattern, and names that the parser cuts. Useless
/// lines are rules that occur twice or never change a decision.
///
/// For a URL, lint fetches /robots.txt of that site as the proxy would, and first reports the result of the fetch. It
/// fetches nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct LintArgs {
    /// A file, `-` for standard input, or any URL of a site
    #[arg(value_name = "FILE|URL", value_parser = OsStringValueParser::new().map(Source::from))]
    source: Source,
    /// Fetch with this configuration: with its egress section, its trusted root certificates and its time-outs
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// Show every finding. Without this option, lint shows the first ten errors and warnings of each code, and the
    /// first note of each code
    #[arg(long)]
    all: bool,
    /// Print all findings as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct LintReport<'a> {
    source: &'a str,
    fetch: Option<FetchRecord<'a>>,
    /// Why there is no robots.txt to check.
    absent: Option<&'a str>,
    #[serde(flatten)]
    counts: SeverityCounts,
    findings: &'a [Finding],
}

#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct SeverityCounts {
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// Prints the findings. Fails if a finding is worse than a note, or if the site has no robots.txt because of a fault.
#[must_use]
pub fn run(args: &LintArgs) -> ExitCode {
    let found = match args.source.find(args.config.as_deref(), &args.overrides) {
        Ok(found) => found,
        Err(error) => return fail(&error),
    };
    let absence = found.live.as_ref().and_then(Absence::of);
    let findings = found.body.as_deref().map_or_else(Vec::new, lint);
    let counts = SeverityCounts::of(&findings);
    match print(args, &found, absence.as_ref(), &findings, counts) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(&format_args!("cannot write to standard output: {error}"))
        }
        _ if counts.errors + counts.warnings > 0 => ExitCode::FAILURE,
        _ if absence.is_some_and(|absence| absence.is_fault) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn print(
    args: &LintArgs,
    found: &LintInput,
    absence: Option<&Absence>,
    findings: &[Finding],
    counts: SeverityCounts,
) -> io::Result<()> {
    let name = &*found.name;
    let stdout = io::stdout().lock();
    let paint = Paint::for_output(&stdout);
    let mut out = BufWriter::new(stdout);
    if args.json {
        let report = LintReport {
            source: name,
            fetch: found.live.as_ref().map(Live::record),
            absent: absence.map(|absence| &*absence.text),
            counts,
            findings,
        };
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
        return out.flush();
    }
    if let Some(live) = &found.live {
        writeln!(out, "{}\n{}", paint.in_colour(Colour::Strong, "Fetched:"), live.way())?;
    }
    match absence {
        Some(absence) => writeln!(out, "{name}: {}", absence.text)?,
        None => {
            report::write(&mut out, name, findings, args.all, paint)?;
            writeln!(out, "{name}: {counts}")?;
        }
    }
    out.flush()
}

// === impl SeverityCounts ===

impl SeverityCounts {
    fn of(findings: &[Finding]) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            match finding.severity {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Note => counts.notes += 1,
            }
        }
        counts
    }
}

impl fmt::Display for SeverityCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            errors,
            warnings,
            notes,
        } = *self;
        let mut comma = "";
        for (count, noun) in [(errors, "error"), (warnings, "warning"), (notes, "note")] {
            if count > 0 {
                write!(f, "{comma}{count} {noun}{}", if count == 1 { "" } else { "s" })?;
                comma = ", ";
            }
        }
        match comma {
            "" => f.write_str("nothing to remark"),
            _ => Ok(()),
        }
    }
}

const AFTER_HELP: &str = "\
Severities:
  error    something in the file has no effect, or the file is no robots.txt
  warning  its meaning is probably not what the author intended, or crawlers disagree about it
  note     harmless, but good to know

Exit status: 0 if there are no errors and no warnings, also if the site has no robots.txt; 1 if there are errors or \
warnings, if the robots.txt cannot be read or fetched, or if the site redirects too often or reports \"not found\" as \
a server error; 2 for a usage error.

Try it:
  robotgate lint https://www.google.com
  robotgate lint robots.txt";
