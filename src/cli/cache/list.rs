//! `robotgate cache list`: prints a row for each known origin.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
};

use super::{CacheArgs, CacheError, paint, print, without_config};
use crate::{
    admin::Row,
    cli::{
        colour::{Colour, Paint},
        columns::{columns, cut_middle, padded, widest},
    },
    copy::{AnswerKind, Severity},
    text::{Minute, Timestamp, plain},
};

/// List the sites by name: what applies to each, and until when
///
/// HOLDS is "rules" if the rules of the robots.txt decide, and "expired" if robotgate must fetch the robots.txt again
/// before it decides. Otherwise HOLDS is the reason of each decision about the site (no-robots, soft-404, unreachable,
/// last-copy, unreachable-too-long, egress). After UNTIL, robotgate fetches the robots.txt again when a bot needs it.
/// Times are in UTC.
///
/// If another robotgate of the fleet fetched a robots.txt in the list, there is a column FROM: "fleet" for the files
/// that another robotgate fetched, and "site" for the others.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List only sites with this text in their origin, such as "example.com" or "http://"
    #[arg(value_name = "TEXT")]
    filter: Option<String>,
    /// List only sites whose robots.txt cannot be fetched at present
    #[arg(long)]
    failing: bool,
}

// === impl ListArgs ===

impl ListArgs {
    pub(super) fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let filter = self.filter.as_deref().unwrap_or_default();
        let (config, sources) = args.load()?;
        let mut rows = args.ask_of(&config, |copies| copies.list(filter))?;
        let known = rows.len();
        rows.retain(|row| !self.failing || row.failing_since.is_some());
        if args.json {
            return print(&json(&rows)?);
        }
        if rows.is_empty() {
            let what = match &self.filter {
                _ if known > 0 => "the last fetch of each matching site succeeded".to_owned(),
                Some(filter) => format!("no known site has {:?} in its origin", plain(filter, 200)),
                None => "no site is known yet".to_owned(),
            };
            eprintln!("robotgate: {what}{}", without_config(&sources));
            return Ok(());
        }
        let width = io::stdout().is_terminal().then(columns);
        print(table(&rows, width, paint()).as_bytes())
    }
}

fn json(rows: &[Row]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut out, row)?;
        out.push(b'\n');
    }
    Ok(out)
}

/// If `width` is set, cuts long origins in the middle, so that the rows fit.
fn table(rows: &[Row], width: Option<usize>, paint: Paint) -> String {
    let fails = rows.iter().any(|row| row.failing_since.is_some());
    let shares = rows.iter().any(|row| row.source.is_some());
    let shown: Vec<_> = rows.iter().map(|row| Cells::of(row, fails, shares)).collect();
    let mut heads = vec!["HOLDS", "STATUS", "FETCHED", "UNTIL"];
    heads.extend(fails.then_some("FAILING SINCE"));
    heads.extend(shares.then_some("FROM"));
    let widths: Vec<usize> = (heads.iter().enumerate())
        .map(|(column, head)| {
            let cells = shown.iter().filter_map(|cells| cells.rest.get(column));
            cells.map(|cell| cell.len()).fold(head.len(), usize::max)
        })
        .collect();
    let rest: usize = widths.iter().map(|width| width + GAP.len()).sum();
    let longest = widest(shown.iter().map(|cells| &*cells.origin)).max(ORIGIN.len());
    let room = width.map_or(longest, |width| longest.min(width.saturating_sub(rest).max(MIN_ORIGIN)));

    let mut out = String::new();
    let mut head = format!("{ORIGIN:room$}");
    for (name, width) in heads.iter().zip(&widths) {
        let _ = write!(head, "{GAP}{name:width$}");
    }
    let _ = writeln!(out, "{}", paint.in_colour(Colour::Strong, head.trim_end()));
    for (cells, row) in shown.iter().zip(rows) {
        out.push_str(&padded(&cut_middle(&cells.origin, room), room));
        let mut behind = String::new();
        for (column, (cell, width)) in cells.rest.iter().zip(&widths).enumerate() {
            match (column, colour(row)) {
                (0, Some(colour)) => {
                    let _ = write!(
                        behind,
                        "{GAP}{}",
                        paint.in_colour(colour, format_args!("{cell:width$}"))
                    );
                }
                _ => {
                    let _ = write!(behind, "{GAP}{cell:width$}");
                }
            }
        }
        let _ = writeln!(out, "{}", behind.trim_end());
    }
    out
}

struct Cells {
    origin: String,
    rest: Vec<String>,
}

// === impl Cells ===

impl Cells {
    fn of(row: &Row, fails: bool, shares: bool) -> Self {
        let time = |time: Option<Timestamp>| {
            let shown = time.map(|Timestamp(time)| Minute(time).to_string());
            shown.map_or_else(|| NONE.to_owned(), |shown| shown.trim_end_matches(" UTC").to_owned())
        };
        let status = row.status.map_or_else(|| NONE.to_owned(), |status| status.to_string());
        let mut rest = vec![
            plain(&row.holds, MAX_WORD).into_owned(),
            status,
            time(row.fetched),
            time(row.expires),
        ];
        if fails {
            rest.push(time(row.failing_since));
        }
        if shares {
            rest.push(plain(row.source.as_deref().unwrap_or("site"), MAX_WORD).into_owned());
        }
        Self {
            origin: plain(&row.origin, MAX_ORIGIN).into_owned(),
            rest,
        }
    }
}

fn colour(row: &Row) -> Option<Colour> {
    match row.kind().map(AnswerKind::severity) {
        Some(Severity::Fine) => None,
        Some(Severity::Bad) => Some(Colour::Bad),
        Some(Severity::Warning) | None => Some(Colour::Warning),
    }
}

const ORIGIN: &str = "ORIGIN";
const NONE: &str = "-";
const GAP: &str = "  ";
/// Minimum width to which an origin is cut, in columns: twelve for its beginning, one for `…`, and six for its end,
/// which contains the port.
const MIN_ORIGIN: usize = 19;
/// Maximum length of an origin in bytes.
const MAX_ORIGIN: usize = 500;
/// Maximum length of a word in the columns HOLDS and FROM, in bytes.
const MAX_WORD: usize = 40;

#[cfg(test)]
mod tests;
