//! What can be wrong with a configuration, said so that the reader can mend it: file, line, column, key, a sentence,
//! and the line itself.
//!
//! It finds the place of a mistake in the parsed document, and prints; nothing is judged here.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::files::Unreadable;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {}", path.display(), Unreadable(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that is being written is empty for a moment, and one on a full disk for longer; to take it for "every
    /// default" would open what was closed.
    #[error("{} is empty; where every key is to have its default, write a comment into it", .0.display())]
    Empty(PathBuf),
    /// The file says what cannot be meant.
    #[error("{0}")]
    Invalid(Problems),
}

/// All that is wrong in one file, in the file's order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// One mistake and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The dotted key, such as `robots.default-ttl` or `bot[1].name` (lists count from 0); empty for a mistake of
    /// syntax that is at none.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub message: String,
    /// The line as it stands in the file.
    pub source_line: String,
    /// How many characters of the line are meant; at least 1.
    pub width: usize,
}

/// A mistake before its place is known in words.
pub(super) struct Complaint {
    /// The bytes that are meant.
    pub span: Range<usize>,
    /// A key that should stand in the table at `span` and does not.
    pub missing: Option<&'static str>,
    pub message: String,
}

/// A search for the smallest key or value around a range of bytes.
struct Search<'s> {
    span: &'s Range<usize>,
    /// The dotted key of where the search is.
    here: String,
    /// How wide the smallest one is, and its dotted key.
    best: Option<(usize, String)>,
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

// === impl Problems ===

impl Problems {
    /// The complaints about a file of this text, each with its place.
    pub(super) fn new(file: &str, text: &str, document: &DeTable<'_>, complaints: Vec<Complaint>) -> Self {
        let file: Arc<str> = file.into();
        let problem = |complaint| Problem::new(&file, text, document, complaint);
        let mut problems: Vec<Problem> = complaints.into_iter().map(problem).collect();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Self(problems)
    }

    /// Each of them, in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

// === impl Problem ===

impl Problem {
    fn new(file: &Arc<str>, text: &str, document: &DeTable<'_>, complaint: Complaint) -> Self {
        let Range { start, end } = complaint.span;
        let start = text.floor_char_boundary(start);
        let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let to = text[start..].find('\n').map_or(text.len(), |length| start + length);
        let source_line = text[from..to].trim_end_matches('\r');
        let column = text[from..start].chars().count();
        let shown = source_line.chars().count();
        let marked = text
            .get(start..end.min(to))
            .map_or(1, |marked| marked.trim_end().chars().count());
        let mut key = Search::key(document, &(start..end));
        if let Some(missing) = complaint.missing {
            let dot = if key.is_empty() { "" } else { "." };
            key.extend([dot, missing]);
        }

        Self {
            file: Arc::clone(file),
            line: line(text, start),
            column: column + 1,
            key,
            message: printable(&complaint.message),
            source_line: source_line.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}"),
            width: marked.min(shown.saturating_sub(column)).max(1),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        writeln!(f, "{}", self.message)?;
        writeln!(f, "{:>5} | {}", self.line, self.source_line)?;
        write!(f, "      | ")?;
        for c in self.source_line.chars().take(self.column - 1) {
            // A tab stays a tab, so that the caret stands right whatever the width of tabs.
            write!(f, "{}", if c == '\t' { '\t' } else { ' ' })?;
        }
        write!(f, "{}", "^".repeat(self.width))
    }
}

// === impl Search ===

impl Search<'_> {
    /// The dotted key of the smallest key or value around the range.
    fn key(document: &DeTable<'_>, span: &Range<usize>) -> String {
        let mut search = Search {
            span,
            here: String::new(),
            best: None,
        };
        search.table(document);
        search.best.map(|(_, key)| key).unwrap_or_default()
    }

    fn table(&mut self, table: &DeTable<'_>) {
        let length = self.here.len();
        for (key, value) in table {
            if length > 0 {
                self.here.push('.');
            }
            self.here.push_str(&printable(key.get_ref()));
            self.offer(key.span());
            self.value(value);
            self.here.truncate(length);
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>) {
        self.offer(value.span());
        match value.get_ref() {
            DeValue::Table(table) => self.table(table),
            DeValue::Array(list) => {
                let length = self.here.len();
                for (index, item) in list.iter().enumerate() {
                    self.here.push_str(&format!("[{index}]"));
                    self.value(item);
                    self.here.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Keeps the key if its range is around the one sought, and no wider than the best so far: in a tie (a list of
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
