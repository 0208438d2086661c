//! The text of a configuration: the file, followed by a line `key=value` for each environment variable and each
//! `--set`. So the range of a value's bytes says which of these it comes from.

use std::collections::BTreeSet;
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize as _;
use toml::de::{DeTable, DeValue, Deserializer};
use toml::{Spanned, Table};

use super::error::Complaint;
use super::sources::Override;

#[derive(Clone, Debug, Default)]
pub(super) struct SourceText {
    pub text: String,
    /// The name of the file, for errors.
    file: Arc<str>,
    /// The folder at which relative paths in the file start.
    base_dir: PathBuf,
    parts: Vec<Part>,
}

/// An environment variable or `--set`.
#[derive(Clone, Debug)]
struct Part {
    /// Where `key=value` is in the text.
    range: Range<usize>,
    /// The length of the key, in bytes.
    key: usize,
    name: Arc<str>,
    /// `key=value` after as many spaces as `SourceText::text` has bytes before it, so that the parser's ranges are also
    /// valid in that text.
    padded: String,
}

/// Where a byte of the text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextSource<'t> {
    /// The file, and the line in it, from 1.
    File(&'t Arc<str>, usize),
    Override(&'t Arc<str>),
}

/// Returns the document without the ranges of its values.
pub(super) fn to_table(document: &DeTable<'_>) -> Table {
    let document = Spanned::new(0..0, document.clone());
    // A document can always be read as a table.
    Table::deserialize(Deserializer::from(document)).unwrap_or_default()
}

/// Adds the keys of `from` to `into`. If a key is in both, and both of its values are tables, merges these tables.
/// Otherwise, the value of `from` wins.
fn merge<'t>(into: &mut DeTable<'t>, from: DeTable<'t>) {
    for (key, mut value) in from {
        let name: &str = key.get_ref();
        if let Some(DeValue::Table(old)) = into.get_mut(name).map(Spanned::get_mut)
            && let DeValue::Table(new) = value.get_mut()
        {
            merge(old, mem::take(new));
            continue;
        }
        into.remove(name);
        into.insert(key, value);
    }
}

// === impl SourceText ===

impl SourceText {
    pub(super) fn new(file: &str, text: &str, base_dir: &Path, overrides: &[Override]) -> Self {
        let mut joined = Self {
            text: text.to_owned(),
            file: file.into(),
            base_dir: base_dir.to_owned(),
            parts: Vec::new(),
        };
        for Override { name, setting } in overrides {
            joined.text.push('\n');
            let (from, part) = (joined.text.len(), setting.to_string());
            joined.text.push_str(&part);
            joined.parts.push(Part {
                range: from..joined.text.len(),
                key: setting.key.len(),
                name: name.clone(),
                padded: " ".repeat(from) + &part,
            });
        }
        joined
    }

    pub(super) fn of_file(&self) -> &str {
        &self.text[self.range(0)]
    }

    pub(super) fn has_overrides(&self) -> bool {
        !self.parts.is_empty()
    }

    fn part(&self, at: usize) -> Option<&Part> {
        self.parts.iter().rfind(|part| part.range.start <= at)
    }

    pub(super) fn source_of(&self, at: usize) -> TextSource<'_> {
        match self.part(at) {
            Some(part) => TextSource::Override(&part.name),
            None => TextSource::File(&self.file, line(&self.text, at)),
        }
    }

    /// Returns the range of the source that the byte at `at` is in: the file, one environment variable or one `--set`.
    pub(super) fn range(&self, at: usize) -> Range<usize> {
        match (self.part(at), self.parts.first()) {
            (Some(part), _) => part.range.clone(),
            // The text of the file ends before the line break that separates it from the first override.
            (None, Some(first)) => 0..first.range.start - 1,
            (None, None) => 0..self.text.len(),
        }
    }

    /// Returns the absolute form of `path`, a value that begins at the byte `at`. A relative path in the file starts at
    /// the file's folder; one in an environment variable or `--set`, at the working directory.
    pub(super) fn path(&self, path: &str, at: usize) -> PathBuf {
        match self.part(at) {
            Some(_) => std::path::absolute(path).unwrap_or_else(|_| path.into()),
            None => self.base_dir.join(path),
        }
    }

    /// Sets the keys of the environment variables and `--set` in `document`. `texts` are the keys that take only text.
    pub(super) fn apply<'t>(&'t self, document: &mut DeTable<'t>, texts: &BTreeSet<String>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        for part in &self.parts {
            let key = &self.text[part.range.start..part.range.start + part.key];
            match part.parse(texts.contains(key)) {
                Ok(table) => merge(document, table),
                Err((span, message)) => complaints.push(Complaint {
                    span,
                    missing: None,
                    message,
                }),
            }
        }
        complaints
    }
}

// === impl Part ===

impl Part {
    /// Parses `key=value`. A value without quotes is a text if it is not valid TOML, or if the key takes only text
    /// (`is_text`).
    fn parse(&self, is_text: bool) -> Result<DeTable<'_>, (Range<usize>, String)> {
        let value = &self.padded[self.range.start + self.key + 1..];
        let word = value.trim();
        let from = self.range.end - value.trim_start().len();
        let span = from..from + word.len();
        if word.is_empty() {
            let message = "the value is missing; write \"\" for an empty text".to_owned();
            return Err((self.range.clone(), message));
        }
        match DeTable::parse(&self.padded) {
            Ok(table) if !is_text || word.starts_with(['"', '\'', '[', '{']) => Ok(table.into_inner()),
            Err(error) if is_meant_as_toml(word) => {
                let message = format!("this is not TOML: {}", error.message());
                Err((error.span().unwrap_or(span), message))
            }
            _ => Ok(self.table(Spanned::new(span, DeValue::String(word.into())))),
        }
    }

    /// Returns a document that sets only this key, to `value`.
    fn table<'p>(&'p self, value: Spanned<DeValue<'p>>) -> DeTable<'p> {
        let key = self.range.start..self.range.start + self.key;
        let (mut table, mut value, mut end) = (DeTable::new(), value, key.end);
        for name in self.padded[key.clone()].rsplit('.') {
            let span = end - name.len()..end;
            end = span.start.saturating_sub(1);
            table = DeTable::new();
            table.insert(Spanned::new(span, name.into()), value);
            value = Spanned::new(key.clone(), DeValue::Table(table.clone()));
        }
        table
    }
}

/// Returns whether a word that is not valid TOML is a mistake in TOML, such as `["a", "b`, and not a text without
/// quotes, such as the address `[::1]:3128`.
fn is_meant_as_toml(word: &str) -> bool {
    word.starts_with(['"', '\'', '{']) || word.starts_with('[') && word.contains(['"', '\''])
}

fn line(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count()
}
