//! State that all tables of a configuration share: its text, the list of mistakes, and the recorded keys.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;

use super::environment::Environment;
use super::error::Complaint;
use super::keys::{Key, Recording};
use super::text::{SourceText, TextSource};

pub(super) type Text<'c> = Spanned<&'c str>;
pub(super) type List<'c> = Spanned<Vec<Text<'c>>>;

/// Which of the files that a configuration names are read together with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    All,
    /// All but the files with secrets.
    NoSecrets,
    Nothing,
}

pub(super) struct Checker<'c> {
    pub environment: &'c Environment,
    source: &'c SourceText,
    pub reads: Reads,
    pub recording: Recording,
    complaints: RefCell<Vec<Complaint>>,
    keys: RefCell<Vec<Key>>,
    /// Whether a part of the file could not be read, such as a value of the wrong type.
    has_unread: Cell<bool>,
}

// === impl Checker ===

impl<'c> Checker<'c> {
    pub(super) fn new(environment: &'c Environment, source: &'c SourceText, reads: Reads) -> Self {
        Self {
            environment,
            source,
            reads,
            recording: Recording::Nothing,
            complaints: RefCell::default(),
            keys: RefCell::default(),
            has_unread: Cell::new(false),
        }
    }

    pub(super) fn recording(mut self, recording: Recording) -> Self {
        self.recording = recording;
        self
    }

    pub(super) fn into_results(self) -> (Vec<Complaint>, Vec<Key>) {
        let mut complaints = self.complaints.into_inner();
        if self.has_unread.get() {
            // Do not report missing keys: they may be in a part that could not be read.
            complaints.retain(|complaint| complaint.missing.is_none());
        }
        (complaints, self.keys.into_inner())
    }

    pub(super) fn record(&self, key: impl FnOnce() -> Key) {
        if self.recording != Recording::Nothing {
            self.keys.borrow_mut().push(key());
        }
    }

    /// Changes the latest record of the key `name` in `table`. Each `[[bot]]`, for example, has a record of its own.
    pub(super) fn amend(&self, table: &str, name: &str, change: impl FnOnce(&mut Key)) {
        let mut keys = self.keys.borrow_mut();
        if let Some(key) = keys.iter_mut().rfind(|key| key.name == name && key.table == table) {
            change(key);
        }
    }

    pub(super) fn complain(&self, span: Range<usize>, message: impl Into<String>) {
        self.complaints.borrow_mut().push(Complaint {
            span,
            missing: None,
            message: message.into(),
        });
    }

    pub(super) fn missing(&self, span: Range<usize>, key: &'static str, message: String) {
        self.complaints.borrow_mut().push(Complaint {
            span,
            missing: Some(key),
            message,
        });
    }

    /// Reports a part that cannot be read, such as a value of the wrong type.
    pub(super) fn unread(&self, span: Range<usize>, message: String) {
        self.has_unread.set(true);
        self.complain(span, message);
    }

    pub(super) fn source(&self, span: Range<usize>) -> &'c str {
        self.source.text.get(span).unwrap_or_default()
    }

    pub(super) fn parsed<T, E: Display>(&self, raw: &Text<'_>, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.taken(raw.span(), parse(raw.get_ref()))
    }

    /// Returns the value of `result`, or reports its error.
    pub(super) fn taken<T, E: Display>(&self, span: Range<usize>, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.complain(span, error.to_string())).ok()
    }

    pub(super) fn each<T, E: Display>(&self, list: Option<List<'_>>, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let items = list.map(Spanned::into_inner).unwrap_or_default();
        items.iter().filter_map(|item| self.parsed(item, &parse)).collect()
    }

    pub(super) fn path(&self, raw: &Text<'_>) -> Option<PathBuf> {
        self.parsed(raw, |text| match text {
            "" => Err("the path is empty; write a path, or remove the key".to_owned()),
            _ if text.starts_with('~') => Err(format!(
                "\"{text}\": robotgate does not expand ~; write the whole \
                path"
            )),
            _ if text.contains('\0') => Err("a path cannot contain a NUL character".to_owned()),
            _ => Ok(self.source.path(text, raw.span().start)),
        })
    }

    /// Returns the line where `span` begins, from 1; always 1 for an environment variable or `--set`.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        match self.source.source_of(span.start) {
            TextSource::File(_, line) => line,
            TextSource::Override(_) => 1,
        }
    }
}
