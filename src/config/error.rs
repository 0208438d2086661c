//! Why a configuration could not be loaded. For each mistake: its file, line, column and key, a message, and the text
//! of the line.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::files::Unreadable;

/// Why a configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}: {}", path.display(), Unreadable(source))]
    Read {
        /// The configuration file.
        path: PathBuf,
        source: io::Error,
    },
    /// The file is empty, perhaps because it is being written. robotgate must not use the defaults then: they could
    /// allow what the complete file forbids.
    #[error(
        "{} is empty, perhaps because it is still being written; for all defaults, use a file with only a comment line",
        .0.display()
    )]
    Empty(PathBuf),
    /// An environment variable for the configuration cannot be used.
    #[error("the environment variable {name} {problem}")]
    Variable {
        name: String,
        /// What is wrong with it, and what to do.
        problem: &'static str,
    },
    #[error("{0}")]
    Invalid(Problems),
}

/// The mistakes in a configuration, at least one: those in the file first, then those in environment variables and
/// `--set`. If the file has syntax errors, the first of them is the only mistake of the file that is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub(super) Vec<Problem>);

/// One mistake, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the caller named it; or the environment variable; or `--set`.
    pub source_name: Arc<str>,
    /// The line in the file, from 1; 0 for an environment variable or `--set`.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The dotted key, such as `robots.default-ttl` or `bot[1].name`. Empty for a syntax error outside of any key,
    /// and for a byte that is not UTF-8.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub message: String,
    /// The text of the line. For an environment variable or `--set`, the key and its value, like `proxy.name=a`.
    pub source_line: String,
    /// Number of characters to mark in the line, at least 1.
    pub width: usize,
}

/// A mistake before its line and key are known. `span` is its range of bytes in the text of the configuration.
pub(super) struct Complaint {
    pub span: Range<usize>,
    /// The key that is missing from the table at `span`, if that is the mistake.
    pub missing: Option<&'static str>,
    pub message: String,
}

// === impl Problems ===

impl Problems {
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = match self.line {
            0 => {
                write!(f, "{}: ", self.source_name)?;
                " ".repeat(5)
            }
            line => {
                write!(f, "{}:{line}:{}: ", self.source_name, self.column)?;
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
