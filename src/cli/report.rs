//! `robotgate report`: summarises audit logs for people.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{
    fail,
    logs::{LogError, LogReader, PeriodArgs, first_line},
    print,
};
use crate::{
    columns::columns,
    report::{By, Document, Report, time_of, to_csv, to_html, to_markdown, to_text},
};

/// Summarise audit logs: requests, refusals, exemptions, failures and changes
///
/// Counts requests by bot, site, reason and rule. Lists sites that were unreachable, changes of robots.txt files, the
/// longest waits, and starts and reloads. Reads nothing but the logs, opens no connection, and can run while the
/// proxy runs.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReportArgs {
    /// Files of the audit log, also rotated and .gz ones, in any order ("-" is standard input)
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    #[command(flatten)]
    period: PeriodArgs,
    /// The tables that count requests by a property. The report always has its other tables
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        default_value = "bot,site,reason,rule"
    )]
    by: Vec<By>,
    /// The format of the report. By default, the name of the output file decides (.md, .csv, .html or .htm, otherwise
    /// text)
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Maximum number of rows in a table, except the one of totals. By default 20, and for CSV no limit
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Aligned columns. On a terminal, long URLs and rules are shortened
    Text,
    /// Markdown tables
    Markdown,
    /// All tables as comma-separated values. The first column names the table of a row
    Csv,
    /// One page with charts and without scripts
    Html,
}

#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(
        "found no record of the audit log in {}; name a file with the log in JSON, usually that of audit.path",
        logs.iter().map(|log| match log.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => log.display().to_string(),
        }).collect::<Vec<_>>().join(", ")
    )]
    NoRecord { logs: Vec<PathBuf> },
    #[error("the report cannot be written: {}: {error}", path.display())]
    Output { path: PathBuf, error: io::Error },
}

/// Writes a report about the logs.
pub fn run(args: &ReportArgs) -> ExitCode {
    match report(args) {
        Ok(Some(text)) => print(text),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Returns the report, or `None` if it was written to the file of `--output`.
fn report(args: &ReportArgs) -> Result<Option<String>, ReportError> {
    let mut report = Report::new(args.period.period());
    for path in in_order(&args.logs) {
        let mut log = LogReader::open(path)?;
        report.next_log();
        while let Some((_, lines)) = log.next_lines()? {
            report.add(&lines);
        }
    }
    if report.has_no_record() {
        return Err(ReportError::NoRecord {
            logs: args.logs.clone(),
        });
    }
    let format = args.format.unwrap_or_else(|| Format::of(args.output.as_deref()));
    let most = match (args.top, format) {
        (Some(top), _) => usize::try_from(top).unwrap_or(usize::MAX),
        // CSV has no room for a note that rows are left out, so write all rows.
        (None, Format::Csv) => usize::MAX,
        (None, _) => ROWS,
    };
    let document = Document::of(&report, &args.by, most);
    let text = match format {
        Format::Text => {
            let is_shown = args.output.is_none() && io::stdout().is_terminal();
            to_text(&document, is_shown.then(columns))
        }
        Format::Markdown => to_markdown(&document),
        Format::Csv => to_csv(&document),
        Format::Html => to_html(&document),
    };
    let Some(path) = &args.output else {
        return Ok(Some(text));
    };
    fs::write(path, text).map_err(|error| ReportError::Output {
        path: path.clone(),
        error,
    })?;
    Ok(None)
}

/// Sorts the logs by the time in their first line, because a shell expands `audit.jsonl*` from the newest file to the
/// oldest. Logs without such a time, such as standard input, come last.
fn in_order(logs: &[PathBuf]) -> Vec<&Path> {
    let mut logs: Vec<_> = logs
        .iter()
        .map(|path| (first_line(path).and_then(|line| time_of(&line)), &**path))
        .collect();
    logs.sort_by_key(|(time, _)| (time.is_none(), *time));
    logs.into_iter().map(|(_, path)| path).collect()
}

// === impl Format ===

impl Format {
    fn of(output: Option<&Path>) -> Self {
        let extension = output
            .and_then(Path::extension)
            .and_then(|extension| extension.to_str());
        match extension {
            Some("md") => Self::Markdown,
            Some("csv") => Self::Csv,
            Some("html" | "htm") => Self::Html,
            _ => Self::Text,
        }
    }
}

const AFTER_HELP: &str = "\
Exit status: 0 if the report was written; 1 if it was not, for example because a log cannot be read, or the logs \
contain lines but no record; 2 for a usage error.

Try it:
  robotgate report --since 24h /var/log/robotgate/audit.jsonl
  robotgate report --since 2026-11-01 --until 2026-12-01 -o november.html audit.jsonl*
  robotgate report --by site --format csv audit.jsonl";

/// How many rows a table has by default.
const ROWS: usize = 20;
