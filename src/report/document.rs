//! A report as tables, which the modules for the output formats write.

mod tables;

use std::time::{Duration, SystemTime};

use super::OutcomeCounts;
use crate::text::{Minute, Second, Span, grouped};

/// A report as tables.
#[derive(Debug)]
pub struct Document {
    pub(super) title: &'static str,
    pub(super) sections: Vec<Section>,
    /// Numbers of requests over time: the length of an interval, and the start and counts of each interval.
    pub(super) timeline: (Duration, Vec<(SystemTime, OutcomeCounts)>),
}

/// A table with its heading.
#[derive(Debug)]
pub(super) struct Section {
    /// The name of the table in CSV.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Remarks about the table, such as which rows it leaves out.
    pub(super) notes: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

/// A column of a table. `name` is its name in CSV, which must be one of [`NAMES`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) name: &'static str,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    /// The counts from which the HTML report draws a bar in this row.
    pub(super) counts: Option<OutcomeCounts>,
}

#[derive(Debug)]
pub(super) enum Cell {
    /// Plain text, safe for a terminal.
    Text(String),
    /// A URL, a rule or a name from the log. It is shortened if the terminal is too narrow.
    Long(String),
    /// A checksum in hexadecimal digits. Formats for people show only the first [`DIGITS`] digits.
    Digest(String),
    Count(u64),
    Time(SystemTime),
    Length(Duration),
    None,
}

/// The names of the columns in CSV, after the first column `table`.
pub(super) const NAMES: [&str; 14] = [
    "name",
    "site",
    "bot",
    "requests",
    "forwarded",
    "refused",
    "not_enforced",
    "exempt",
    "time",
    "until",
    "seconds",
    "count",
    "before",
    "after",
];

// === impl Cell ===

impl Cell {
    /// Returns the text of the cell as people read it, such as `1,234`.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Long(text) => text.clone(),
            Self::Digest(digits) => digits.chars().take(DIGITS).collect(),
            Self::Count(count) => grouped(*count),
            Self::Time(time) => Minute(*time).to_string(),
            Self::Length(duration) => length(*duration),
            Self::None => "-".to_owned(),
        }
    }

    /// Returns the text of the cell as programs read it, such as `1234`.
    pub(super) fn exact(&self) -> String {
        match self {
            Self::Text(text) | Self::Long(text) | Self::Digest(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Time(time) => Second(*time).to_string(),
            Self::Length(duration) => format!("{:.3}", duration.as_secs_f64()),
            Self::None => String::new(),
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Count(_) | Self::Length(_))
    }
}

/// Formats a duration. A short one gets milliseconds. A very long one is shown as `over …`, because a damaged log can
/// contain any number.
fn length(duration: Duration) -> String {
    match duration.as_millis() {
        ..10_000 => format!("{:.3} s", duration.as_secs_f64()),
        _ if duration > MAX_LENGTH => format!("over {}", Span(MAX_LENGTH)),
        _ => Span(duration).to_string(),
    }
}

/// How many digits of a checksum to show. They are enough to tell the versions of a robots.txt apart.
const DIGITS: usize = 12;
const MAX_LENGTH: Duration = Duration::from_secs(9999 * 24 * 3600);
