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
    /// The length of an interval, and the start and the counts of each interval.
    pub(super) timeline: (Duration, Vec<(SystemTime, OutcomeCounts)>),
}

#[derive(Debug)]
pub(super) struct Section {
    /// The name of the table in CSV.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) notes: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

/// `name` must be one of [`NAMES`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) name: &'static str,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    /// The counts that the bar in the HTML report shows.
    pub(super) counts: Option<OutcomeCounts>,
}

/// A cell of a table. Its texts are safe for a terminal.
#[derive(Debug)]
pub(super) enum Cell {
    Text(String),
    /// Shortened if the terminal is too narrow.
    Long(String),
    /// Hexadecimal digits, of which formats for people show only the first [`DIGITS`].
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
    /// Returns the text for people, such as `1,234`.
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

    /// Returns the text for programs, such as `1234`.
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

/// A damaged log can contain any duration, so a very long one is shown as `over …`.
fn length(duration: Duration) -> String {
    match duration.as_millis() {
        ..10_000 => format!("{:.3} s", duration.as_secs_f64()),
        _ if duration > MAX_LENGTH => format!("over {}", Span(MAX_LENGTH)),
        _ => Span(duration).to_string(),
    }
}

/// Enough digits of a checksum to distinguish the versions of a robots.txt.
const DIGITS: usize = 12;
const MAX_LENGTH: Duration = Duration::from_secs(9999 * 24 * 3600);
