//! `[audit]`: where the log goes.
//!
//! It opens no file.

use std::path::PathBuf;

use super::check::Checker;
use super::written;

/// The `[audit]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Where the lines go.
    pub output: Output,
    /// Whether queries are left out of the URLs in the log.
    pub redact_query: bool,
}

/// Where log lines go: `stdout` or `path` in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// A file, appended to.
    File(PathBuf),
}

// === impl Audit ===

impl Audit {
    pub(super) fn check(written: written::Audit, checker: &mut Checker<'_>) -> Self {
        match (&written.path, &written.stdout) {
            (Some(_), Some(stdout)) if *stdout.get_ref() => checker.complain(
                stdout.span(),
                "the log goes to one place; leave out either this or audit.path",
            ),
            (None, Some(stdout)) if !stdout.get_ref() => {
                checker.complain(stdout.span(), "the log has to go somewhere; name a file in audit.path")
            }
            _ => {}
        }
        let path = written.path.and_then(|path| checker.path(&path));
        Self {
            output: path.map_or(Output::Stdout, Output::File),
            redact_query: written.redact_query.unwrap_or(false),
        }
    }
}
