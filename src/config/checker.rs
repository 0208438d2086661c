//! What all tables of a file share: where its relative paths begin, and the list of what is wrong with it.
//!
//! It judges no value by itself; a parser that is handed in does.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::environment::Environment;
use super::error::{Complaint, line};

/// A text, and where it is written.
pub(super) type Text<'c> = Spanned<&'c str>;
pub(super) type List<'c> = Spanned<Vec<Text<'c>>>;

/// Collects what is wrong.
pub(super) struct Checker<'c> {
    pub environment: &'c Environment,
    base_dir: &'c Path,
    text: &'c str,
    /// Whether the credentials file has to be there and hold what the bots name.
    pub reads_credentials: bool,
    complaints: RefCell<Vec<Complaint>>,
    /// Whether something that is written could not be read as its type.
    has_unread: Cell<bool>,
}

// === impl Checker ===

impl<'c> Checker<'c> {
    pub(super) fn new(
        environment: &'c Environment,
        base_dir: &'c Path,
        text: &'c str,
        reads_credentials: bool,
    ) -> Self {
        Self {
            environment,
            base_dir,
            text,
            reads_credentials,
            complaints: RefCell::default(),
            has_unread: Cell::new(false),
        }
    }

    pub(super) fn into_complaints(self) -> Vec<Complaint> {
        let mut complaints = self.complaints.into_inner();
        if self.has_unread.get() {
            // What seems to be missing may be what could not be read.
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

    /// A complaint of a key that should stand in the table at `span`.
    pub(super) fn missing(&self, span: Range<usize>, key: &'static str, message: String) {
        self.complaints.borrow_mut().push(Complaint {
            span,
            missing: Some(key),
            message,
        });
    }

    /// A complaint of what could not be read as its type.
    pub(super) fn unread(&self, span: Range<usize>, message: String) {
        self.has_unread.set(true);
        self.complain(span, message);
    }

    /// What is written there.
    pub(super) fn source(&self, span: Range<usize>) -> &'c str {
        self.text.get(span).unwrap_or_default()
    }

    /// What a parser makes of the text; a complaint and nothing where it fails.
    pub(super) fn parsed<T, E: Display>(&self, raw: &Text<'_>, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.taken(raw.span(), parse(raw.get_ref()))
    }

    /// The value, or a complaint of why there is none.
    pub(super) fn taken<T, E: Display>(&self, span: Range<usize>, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.complain(span, error.to_string())).ok()
    }

    /// Each item of a list as a parser takes it.
    pub(super) fn each<T, E: Display>(&self, list: Option<List<'_>>, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let items = list.map(Spanned::into_inner).unwrap_or_default();
        items.iter().filter_map(|item| self.parsed(item, &parse)).collect()
    }

    /// A path, counted from the folder of the file.
    pub(super) fn path(&self, raw: &Text<'_>) -> Option<PathBuf> {
        self.parsed(raw, |text| match text {
            "" => Err("an empty path names no file; leave the key out for the default".to_owned()),
            _ if text.starts_with('~') => Err(format!("\"{text}\": a ~ is not expanded here; write the path in full")),
            _ if text.contains('\0') => Err("a path cannot hold a NUL".to_owned()),
            _ => Ok(self.base_dir.join(text)),
        })
    }

    /// A path, or a file of the state directory.
    pub(super) fn path_or_state(&self, raw: Option<Text<'_>>, file: &str) -> PathBuf {
        raw.and_then(|raw| self.path(&raw))
            .unwrap_or_else(|| self.environment.state_dir.join(file))
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        line(self.text, span.start)
    }
}
