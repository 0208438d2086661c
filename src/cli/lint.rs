//! `robotgate lint`: what a person should know of a robots.txt, with lines.
//!
//! Never decides what is worth telling: [`crate::robots::lint()`] does.

mod json;
mod report;
mod source;

use std::{
    io::{self, BufWriter, IsTerminal as _, Write as _},
    process::ExitCode,
};

use clap::builder::{OsStringValueParser, TypedValueParser as _};

use super::fail;
use crate::robots::{Finding, Severity, lint};
use report::Style;
use source::Source;

/// Say what a webmaster or a crawler's author should know of a robots.txt
///
/// Reads the file as Google's parser does and says, with lines: what is lost (rules before any
/// user-agent, patterns that never match, misspelt keys, what comes after 500 KiB), what means
/// something else than it seems to (groups that run together, a `#` or `$` inside a pattern, names
/// that are cut), and what does nothing (duplicate, shadowed and redundant rules).
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct LintArgs {
    /// A file, `-` for standard input, or the URL of a robots.txt
    #[arg(value_name = "FILE|URL", value_parser = OsStringValueParser::new().map(Source::from))]
    source: Source,
    /// Show every finding, not only the first ten of each code
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Print one JSON object with all findings
    #[arg(long)]
    json: bool,
}

/// How many findings there are of each severity.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// Prints what there is to know. Fails if that is more than notes, or if there is nothing to read; a
/// reader of the output that goes away early changes nothing.
#[must_use]
pub fn run(args: &LintArgs) -> ExitCode {
    let body = match source::body_of(&args.source) {
        Ok(body) => body,
        Err(error) => return fail(&error),
    };
    let findings = lint(&body);
    let counts = Counts::of(&findings);
    match print(args, &findings, counts) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(&format_args!("cannot write to standard output: {error}"))
        }
        _ if counts.errors + counts.warnings > 0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn print(args: &LintArgs, findings: &[Finding], counts: Counts) -> io::Result<()> {
    let name = args.source.to_string();
    let stdout = io::stdout().lock();
    let style = Style::for_output(stdout.is_terminal());
    let mut out = BufWriter::new(stdout);
    if args.json {
        json::write(&mut out, &name, findings, counts)?;
    } else {
        let limit = if args.all { usize::MAX } else { MAX_OF_ONE };
        report::write(&mut out, &name, findings, counts, limit, style)?;
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

/// Findings of one code that are shown where `--all` is not given.
const MAX_OF_ONE: usize = 10;

const AFTER_HELP: &str = "\
What counts:
  error    something in the file counts for nothing, or it is no robots.txt
  warning  it counts, but likely not as it was meant, or not for every crawler
  note     harmless, and good to know

Exit status: 0 with nothing but notes, 1 with errors or warnings or where there is nothing to read,
2 for a usage error.";
