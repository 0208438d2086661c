//! From a range of bytes to the place that a person looks for: line, column and dotted key.
//!
//! It reads the parsed document and never changes or judges it, but for taking out what was already reported.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Problem;

/// A mistake before its place is known in words.
pub(super) struct Complaint {
    /// The bytes that are meant.
    pub span: Range<usize>,
    /// A key that should stand in the table at `span` and does not.
    pub missing: Option<&'static str>,
    pub message: String,
}

/// One step of a dotted key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Turns complaints about a text into problems with a place.
pub(super) struct Places<'t> {
    pub file: Arc<str>,
    pub text: &'t str,
    pub document: &'t DeTable<'t>,
}

/// The path to the smallest key or value around the range.
pub(super) fn path(document: &DeTable<'_>, span: &Range<usize>) -> Vec<Step> {
    let mut search = Search {
        span,
        here: Vec::new(),
        best: None,
    };
    search.table(document);
    search.best.map(|(_, path)| path).unwrap_or_default()
}

/// Takes the entry at the path out of the document: in a list, the whole list, so that the other items keep their
/// numbers. Says whether something was there.
pub(super) fn remove(document: &mut DeTable<'_>, path: &[Step]) -> bool {
    let Some(last_key) = path.iter().rposition(|step| matches!(step, Step::Key(_))) else {
        return false;
    };
    let mut table = document;
    let mut steps = path[..last_key].iter().peekable();
    while let Some(Step::Key(key)) = steps.next() {
        let mut value = table.get_mut(key.as_str()).map(Spanned::get_mut);
        while let Some(Step::Index(index)) = steps.next_if(|step| matches!(step, Step::Index(_))) {
            value = match value {
                Some(DeValue::Array(list)) => list.get_mut(*index).map(Spanned::get_mut),
                _ => None,
            };
        }
        let Some(DeValue::Table(inner)) = value else {
            return false;
        };
        table = inner;
    }
    match &path[last_key] {
        Step::Key(key) => table.remove(key.as_str()).is_some(),
        Step::Index(_) => false,
    }
}

/// The line number of a byte, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count()
}

/// Without line ends and terminal sequences, which a quoted key or value may hold.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            printable.extend(c.escape_default())
        } else {
            printable.push(c)
        }
    }
    printable
}

struct Search<'s> {
    span: &'s Range<usize>,
    here: Vec<Step>,
    best: Option<(usize, Vec<Step>)>,
}

// === impl Places ===

impl Places<'_> {
    pub(super) fn problem(&self, complaint: Complaint) -> Problem {
        let Range { start, end } = complaint.span;
        let start = self.text.floor_char_boundary(start);
        let from = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let to = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |length| start + length);
        let source_line = self.text[from..to].trim_end_matches('\r');
        let column = self.text[from..start].chars().count();
        let shown = source_line.chars().count();
        let meant = self
            .text
            .get(start..end.min(to))
            .map_or(1, |meant| meant.trim_end().chars().count());

        Problem {
            file: Arc::clone(&self.file),
            line: line(self.text, start),
            column: column + 1,
            key: self.key(&(start..end), complaint.missing),
            message: printable(&complaint.message),
            source_line: source_line.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}"),
            width: meant.min(shown.saturating_sub(column)).max(1),
        }
    }

    fn key(&self, span: &Range<usize>, missing: Option<&str>) -> String {
        let mut dotted = String::new();
        let missing = missing.map(|key| Step::Key(key.to_owned()));
        for step in path(self.document, span).iter().chain(&missing) {
            match step {
                Step::Index(index) => dotted.push_str(&format!("[{index}]")),
                Step::Key(key) => {
                    if !dotted.is_empty() {
                        dotted.push('.');
                    }
                    dotted.push_str(&printable(key));
                }
            }
        }
        dotted
    }
}

// === impl Search ===

impl Search<'_> {
    fn table(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            self.here.push(Step::Key(key.get_ref().to_string()));
            self.offer(key.span());
            self.value(value);
            self.here.pop();
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>) {
        self.offer(value.span());
        match value.get_ref() {
            DeValue::Table(table) => self.table(table),
            DeValue::Array(list) => {
                for (index, item) in list.iter().enumerate() {
                    self.here.push(Step::Index(index));
                    self.value(item);
                    self.here.pop();
                }
            }
            _ => {}
        }
    }

    /// Keeps the path if its range is around the one sought, and no wider than the best so far: in a tie (a list of
    /// tables and its first item share a header) the deeper one is meant.
    fn offer(&mut self, range: Range<usize>) {
        // A value that was left out in the text has no place.
        let somewhere = range != (0..0);
        let around = range.start <= self.span.start && self.span.end <= range.end;
        if somewhere && around && self.best.as_ref().is_none_or(|(width, _)| range.len() <= *width) {
            self.best = Some((range.len(), self.here.clone()));
        }
    }
}
