//! Errors of a configuration, with everything that a reader needs to fix them: file, line, column, key, message and the
//! line itself.
//!
//! This module finds where a mistake is in the parsed document, and prints it. It does not look for mistakes.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::files::Unreadable;

/// Why a configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {}", path.display(), Unreadable(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is empty. It may be empty for a moment because it is being written, or for longer because the disk is
    /// full. robotgate must not use the defaults then: they could allow what the configuration forbids.
    #[error(
        "{} is empty, perhaps because it is still being written; to use all defaults, write a comment line into it",
        .0.display()
    )]
    Empty(PathBuf),
    /// The file is invalid.
    #[error("{0}")]
    Invalid(Problems),
}

/// All mistakes in one file, in the order of the file. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// One mistake, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the caller named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The dotted key, such as `robots.default-ttl` or `bot[1].name`. Lists count from 0. The key is empty for a syntax
    /// error outside of any key.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub message: String,
    /// The text of the line, as in the file.
    pub source_line: String,
    /// Number of characters to mark in the line, at least 1.
    pub width: usize,
}

/// A mistake. Its line and key are found later, from the bytes in `span`.
pub(super) struct Complaint {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// The key that is missing from the table at `span`.
    pub missing: Option<&'static str>,
    pub message: String,
}

/// A search for the innermost key or value that encloses a range of bytes.
struct Search<'s> {
    span: &'s Range<usize>,
    /// The dotted key at which the search is now.
    here: String,
    /// The smallest range so far that encloses `span`: its width and its dotted key.
    best: Option<(usize, String)>,
}

/// Returns the line number of a byte, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count()
}

/// Replaces what can be a password in `line` with asterisks, one for each character. A password is between the first
/// colon and the last `@`, as in `redis://:secret@host`. If the line sets an `address`, everything after the colon is
/// replaced, because the `@` may be missing by mistake.
fn without_password(line: &str, is_address: bool) -> String {
    let colon = line.find(':').map(|colon| colon + 1);
    let end = match is_address {
        true => Some(line.len()),
        false => line.rfind('@'),
    };
    let (Some(from), Some(to)) = (colon, end) else {
        return line.to_owned();
    };
    let hide = |(at, c): (usize, char)| {
        if at < from || at >= to || "/\"'".contains(c) {
            c
        } else {
            '*'
        }
    };
    line.char_indices().map(hide).collect()
}

/// Escapes control characters in a quoted key or value, such as line ends and sequences that control the terminal.
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
    /// Finds the line and the key of each complaint in the text.
    pub(super) fn new(file: &str, text: &str, document: &DeTable<'_>, complaints: Vec<Complaint>) -> Self {
        let file: Arc<str> = file.into();
        let problem = |complaint| Problem::new(&file, text, document, complaint);
        let mut problems: Vec<Problem> = complaints.into_iter().map(problem).collect();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Self(problems)
    }

    /// Returns the mistakes, in the order of the file.
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

        let is_address = key == "fleet.url";
        let mut message = without_password(&complaint.message, false);
        if let Some((_, value)) = source_line.split_once('=').filter(|_| is_address) {
            message = message.replace(value.trim(), "the URL");
        }
        let source_line = without_password(source_line, is_address);
        Self {
            file: Arc::clone(file),
            line: line(text, start),
            column: column + 1,
            key,
            message: printable(&message),
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
            // Keep tabs, so that the mark is in the right column for any tab width.
            write!(f, "{}", if c == '\t' { '\t' } else { ' ' })?;
        }
        write!(f, "{}", "^".repeat(self.width))
    }
}

// === impl Search ===

impl Search<'_> {
    /// Returns the dotted key of the innermost key or value that encloses `span`.
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

    /// Keeps the current key as the best match if `range` encloses the span sought and is no wider than the best range
    /// so far. If both are equally wide, the later, deeper key wins: a list of tables and its first item share one
    /// header.
    fn offer(&mut self, range: Range<usize>) {
        // A value that is not written in the text, such as an implicit table, has the range 0..0.
        let somewhere = range != (0..0);
        let around = range.start <= self.span.start && self.span.end <= range.end;
        if somewhere && around && self.best.as_ref().is_none_or(|(width, _)| range.len() <= *width) {
            self.best = Some((range.len(), self.here.clone()));
        }
    }
}
