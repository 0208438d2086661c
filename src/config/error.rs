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

use super::text::{Origin, SourceText};
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
    /// An environment variable that is about the configuration cannot be used.
    #[error("the environment variable {name} {problem}")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong with it, and what to do.
        problem: &'static str,
    },
    /// The file is invalid.
    #[error("{0}")]
    Invalid(Problems),
}

/// All mistakes in a configuration; never empty. Mistakes in the file come first, in the order of the file, then those
/// in environment variables and in `--set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// One mistake, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the caller named it; or the environment variable; or `--set`.
    pub place: Arc<str>,
    /// The line in the file, from 1. It is 0 if the mistake is in an environment variable or in `--set`.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The dotted key, such as `robots.default-ttl` or `bot[1].name`. The indexes of lists begin at 0. The key is empty
    /// for a syntax error outside of any key.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub message: String,
    /// The text of the line, as in the file. For an environment variable or `--set`, the key and its value, like
    /// `proxy.name=a`.
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
    /// The dotted key that the search is looking at.
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
    /// Finds the place of each complaint in the text.
    pub(super) fn new(source: &SourceText, document: &DeTable<'_>, mut complaints: Vec<Complaint>) -> Self {
        complaints.sort_by_key(|complaint| complaint.span.start);
        let problem = |complaint| Problem::new(source, document, complaint);
        Self(complaints.into_iter().map(problem).collect())
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
    fn new(source: &SourceText, document: &DeTable<'_>, complaint: Complaint) -> Self {
        let text = &*source.text;
        let Range { start, end } = complaint.span;
        let start = text.floor_char_boundary(start);
        let part = source.range(start);
        let from = text[part.start..start]
            .rfind('\n')
            .map_or(part.start, |newline| part.start + newline + 1);
        let to = text[start..part.end]
            .find('\n')
            .map_or(part.end, |length| start + length);
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
        let (place, line) = match source.origin(start) {
            Origin::File(file, line) => (file, line),
            Origin::Override(place) => (place, 0),
        };
        Self {
            place: place.clone(),
            line,
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
        let gutter = match self.line {
            0 => {
                write!(f, "{}: ", self.place)?;
                " ".repeat(5)
            }
            line => {
                write!(f, "{}:{line}:{}: ", self.place, self.column)?;
                format!("{line:>5}")
            }
        };
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        writeln!(f, "{}", self.message)?;
        writeln!(f, "{gutter} | {}", self.source_line)?;
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

    /// Makes the current key the best match if `range` encloses `self.span` and is not wider than the best range so
    /// far. Of two equal ranges, the later one wins, because it is deeper: a list of tables and its first table have
    /// the same range, that of the first header.
    fn offer(&mut self, range: Range<usize>) {
        // Ignore the range 0..0, which means that a table is not written in the text. An example is `a` in `[a.b]`.
        let somewhere = range != (0..0);
        let around = range.start <= self.span.start && self.span.end <= range.end;
        if somewhere && around && self.best.as_ref().is_none_or(|(width, _)| range.len() <= *width) {
            self.best = Some((range.len(), self.here.clone()));
        }
    }
}
