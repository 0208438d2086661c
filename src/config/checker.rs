//! State that all tables of a configuration file share: the folder to which paths are relative, and the list of
//! mistakes.
//!
//! This module judges no value itself: callers pass parsers, which do.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::environment::Environment;
use super::error::{Complaint, line};

/// A string in the configuration file, and where it is.
pub(super) type Text<'c> = Spanned<&'c str>;
pub(super) type List<'c> = Spanned<Vec<Text<'c>>>;

/// Which of the files that a configuration names robotgate reads together with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    All,
    /// All but the files with secrets. Every credential that a bot names is accepted.
    NoSecrets,
    Nothing,
}

/// Collects the mistakes of a configuration file.
pub(super) struct Checker<'c> {
    pub environment: &'c Environment,
    base_dir: &'c Path,
    text: &'c str,
    pub reads: Reads,
    complaints: RefCell<Vec<Complaint>>,
    /// Whether some value or table could not be read because it has the wrong type.
    has_unread: Cell<bool>,
}

// === impl Checker ===

impl<'c> Checker<'c> {
    pub(super) fn new(environment: &'c Environment, base_dir: &'c Path, text: &'c str, reads: Reads) -> Self {
        Self {
            environment,
            base_dir,
            text,
            reads,
            complaints: RefCell::default(),
            has_unread: Cell::new(false),
        }
    }

    pub(super) fn into_complaints(self) -> Vec<Complaint> {
        let mut complaints = self.complaints.into_inner();
        if self.has_unread.get() {
            // Do not report missing keys: they may be in a part that could not be read.
            complaints.retain(|complaint| complaint.missing.is_none());
        }
        complaints
    }

    pub(super) fn complain(&self, span: Range<usize>, message: impl Into<String>) {
        self.complaints.borrow_mut().push(Complaint {
            span,
            missing: None,
            message: message.into(),
        });
    }

    /// Reports a key that is missing from the table at `span`.
    pub(super) fn missing(&self, span: Range<usize>, key: &'static str, message: String) {
        self.complaints.borrow_mut().push(Complaint {
            span,
            missing: Some(key),
            message,
        });
    }

    /// Reports a value of the wrong type.
    pub(super) fn unread(&self, span: Range<usize>, message: String) {
        self.has_unread.set(true);
        self.complain(span, message);
    }

    /// Returns the part of the file's text at `span`.
    pub(super) fn source(&self, span: Range<usize>) -> &'c str {
        self.text.get(span).unwrap_or_default()
    }

    /// Parses a string. If that fails, reports the error and returns `None`.
    pub(super) fn parsed<T, E: Display>(&self, raw: &Text<'_>, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.taken(raw.span(), parse(raw.get_ref()))
    }

    /// Returns the value. If `result` is an error, reports it and returns `None`.
    pub(super) fn taken<T, E: Display>(&self, span: Range<usize>, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.complain(span, error.to_string())).ok()
    }

    /// Parses each item of a list, and reports those that fail.
    pub(super) fn each<T, E: Display>(&self, list: Option<List<'_>>, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let items = list.map(Spanned::into_inner).unwrap_or_default();
        items.iter().filter_map(|item| self.parsed(item, &parse)).collect()
    }

    /// Reads a path, which is relative to the folder of the configuration file.
    pub(super) fn path(&self, raw: &Text<'_>) -> Option<PathBuf> {
        self.parsed(raw, |text| match text {
            "" => Err("the path is empty; remove the key for the default".to_owned()),
            _ if text.starts_with('~') => Err(format!(
                "\"{text}\": robotgate does not expand ~; write the whole \
                path"
            )),
            _ if text.contains('\0') => Err("a path cannot contain a NUL character".to_owned()),
            _ => Ok(self.base_dir.join(text)),
        })
    }

    /// Reads a path. If the key is not set, returns the path of `file` in the directory for state.
    pub(super) fn path_or_state(&self, raw: Option<Text<'_>>, file: &str) -> PathBuf {
        raw.and_then(|raw| self.path(&raw))
            .unwrap_or_else(|| self.environment.state_dir.join(file))
    }

    /// Returns the number of the line where `span` begins, from 1.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        line(self.text, span.start)
    }
}
