//! What can be wrong with a configuration, said so that the reader can mend it: file, line, column, key, a sentence,
//! and the line itself.
//!
//! It only prints; nothing is judged here.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::unreadable::Unreadable;

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

// === impl Problems ===

impl Problems {
    /// Puts the problems in the file's order.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
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
