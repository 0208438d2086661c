//! `robotgate lint`: what a person should know of a robots.txt, with lines.
//!
//! Never decides what is worth telling: [`crate::robots::lint()`] does; nor what a site's answer means:
//! the cache does, as for the proxy.

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
    fail,
    live::Live,
    paint::{Colour, Paint},
};
use crate::{
    explanation::FetchRecord,
    robots::{Finding, Severity, lint},
};
use source::{Absence, Found, Source};

/// Say what a webmaster or a crawler's author should know of a robots.txt
///
/// Reads the file as Google's parser does and says, with lines: what is lost (rules before any
/// user-agent, patterns that never match, misspelt keys, what comes after 500 KiB), what means
/// something else than it seems to (groups that run together, a `#` or `$` inside a pattern, names
/// that are cut), and what does nothing (duplicate, shadowed and redundant rules).
///
/// Of a URL, whatever its path, the site's /robots.txt is fetched as the proxy would fetch it, with
/// the same bounds and time-outs, and what was got is said first. Nothing else is fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct LintArgs {
    /// A file, `-` for standard input, or any URL of a site
    #[arg(value_name = "FILE|URL", value_parser = OsStringValueParser::new().map(Source::from))]
    source: Source,
    /// The configuration to fetch a site's robots.txt by: its way out, its roots, its time-outs
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show every finding, not only the first ten of each code, and of notes the first
    #[arg(long)]
    all: bool,
    /// Print one JSON object, always with every finding
    #[arg(long)]
    json: bool,
}

/// What a program gets.
#[derive(serde::Serialize)]
struct Report<'a> {
    source: &'a str,
    /// How the fetch went, where there was one.
    fetch: Option<FetchRecord<'a>>,
    /// Why there is nothing to look at.
    absent: Option<&'a str>,
    #[serde(flatten)]
    counts: Counts,
    findings: &'a [Finding],
}

/// How many findings there are of each severity.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Counts {
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// Prints what there is to know. Fails if that is more than notes, or if there is nothing to read
/// where there should be something; a reader of the output that goes away early changes nothing.
#[must_use]
pub fn run(args: &LintArgs) -> ExitCode {
    let found = match args.source.find(args.config.as_deref()) {
        Ok(found) => found,
        Err(error) => return fail(&error),
    };
    let absence = found.live.as_ref().and_then(Absence::of);
    let findings = found.body.as_deref().map_or_else(Vec::new, lint);
    let counts = Counts::of(&findings);
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
    found: &Found,
    absence: Option<&Absence>,
    findings: &[Finding],
    counts: Counts,
) -> io::Result<()> {
    let name = &*found.name;
    let stdout = io::stdout().lock();
    let paint = Paint::for_output(&stdout);
    let mut out = BufWriter::new(stdout);
    if args.json {
        let report = Report {
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

// === impl Counts ===

impl Counts {
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

impl fmt::Display for Counts {
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
What counts:
  error    something in the file counts for nothing, or it is no robots.txt
  warning  it is likely not what was meant, or not what every crawler takes it for
  note     harmless, and good to know

Exit status: 0 with nothing but notes, or of a site without a robots.txt; 1 with errors or warnings,
or where a robots.txt cannot be had; 2 for a usage error.

Try it:
  robotgate lint https://www.google.com
  robotgate lint robots.txt";
