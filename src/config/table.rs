//! Reads the values of a table of the configuration file. Each value must have the type that its key takes.
//!
//! If a value cannot be read, the mistake is reported and the default is used, so that one run also finds the other
//! mistakes. Each method also records what its key takes, for the schema and for `robotgate config show`.

mod values;

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::checker::Checker;
use super::keys::{Key, Kind, Recording};
use super::reader;

/// A table of the configuration file. The file need not contain it.
pub(super) struct Table<'c> {
    pub checker: &'c Checker<'c>,
    /// The dotted name, without list indexes; empty for the top level of the file.
    name: String,
    /// The index in a list of tables (`[[name]]`).
    entry: Option<usize>,
    raw: Option<Spanned<&'c DeTable<'c>>>,
    /// The keys that the code of the section has asked for.
    known: RefCell<Vec<&'static str>>,
}

type Value<'c> = Spanned<DeValue<'c>>;

/// An empty list, as the default of a key.
pub(super) const NONE: Vec<toml::Value> = Vec::new();

const TEXT: &str = "a string in quotes";
const LIST: &str = "a list in brackets";
const TABLE: &str = "a table in braces, like { key = value }";

// === impl Table ===

impl<'c> Table<'c> {
    pub(super) fn file<T>(
        document: &'c DeTable<'c>,
        checker: &'c Checker<'c>,
        read: impl FnOnce(&Table<'c>) -> T,
    ) -> T {
        Self::read(checker, (String::new(), None), Some(Spanned::new(0..0, document)), read)
    }

    /// Calls the closure `read`. Then reports the unknown keys: those for which the closure did not ask.
    fn read<T>(
        checker: &'c Checker<'c>,
        (name, entry): (String, Option<usize>),
        raw: Option<Spanned<&'c DeTable<'c>>>,
        read: impl FnOnce(&Table<'c>) -> T,
    ) -> T {
        let table = Self {
            checker,
            name,
            entry,
            raw,
            known: RefCell::default(),
        };
        let taken = read(&table);
        let known = table.known.into_inner();
        for key in table.raw.iter().flat_map(|table| table.get_ref().keys()) {
            let name = &**key.get_ref();
            if !known.contains(&name) {
                let message = match table.name.is_empty() {
                    true => reader::unknown_section(name, &known),
                    false => reader::unknown_key(name, &known),
                };
                checker.unread(key.span(), message);
            }
        }
        taken
    }

    /// Also calls `read` if the file does not contain the table: all its keys then have no value.
    pub(super) fn table<T>(&self, key: &'static str, read: impl FnOnce(&Table<'c>) -> T) -> T {
        let name = self.name_of(key);
        let raw = self.value(key, || Kind::Table).and_then(|value| match value.get_ref() {
            DeValue::Array(_) => {
                let message = format!("there can be only one of these; write [{name}], in single brackets");
                self.checker.unread(value.span(), message);
                None
            }
            _ => self.typed(value, TABLE, DeValue::as_table),
        });
        Self::read(self.checker, (name, None), raw, read)
    }

    pub(super) fn tables<T>(&self, key: &'static str, mut read: impl FnMut(&Table<'c>) -> Option<T>) -> Vec<T> {
        let name = self.name_of(key);
        let tables = self
            .value(key, || Kind::Tables)
            .and_then(|value| match value.get_ref() {
                DeValue::Table(_) => {
                    let message = format!("there can be several of these; write [[{name}]], in double brackets");
                    self.checker.unread(value.span(), message);
                    None
                }
                _ => self.items(value, TABLE, DeValue::as_table),
            });
        let tables = tables.value_or_default();
        if tables.is_empty() && self.checker.recording == Recording::All {
            Self::read(self.checker, (name.clone(), None), None, &mut read);
        }
        let read = |(entry, table)| Self::read(self.checker, (name.clone(), Some(entry)), Some(table), &mut read);
        tables.into_iter().enumerate().filter_map(read).collect()
    }

    fn name_of(&self, key: &str) -> String {
        match &*self.name {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    pub(super) fn span(&self) -> Option<Range<usize>> {
        // To record all keys, also read the sections that the file lacks, as if they were in the file's bytes 0..0.
        let absent = (self.checker.recording == Recording::All).then_some(0..0);
        self.raw.as_ref().map(Spanned::span).or(absent)
    }

    /// Returns where the value at a dotted key is. The key does not count as read.
    pub(super) fn span_of(&self, dotted: &str) -> Option<Range<usize>> {
        let mut keys = dotted.split('.');
        let first = self.raw.as_ref()?.get_ref().get(keys.next()?)?;
        Some(keys.try_fold(first, |value, key| value.get_ref().get(key))?.span())
    }

    pub(super) fn missing(&self, key: &'static str, message: String) {
        self.checker.missing(self.span().unwrap_or_default(), key, message);
    }

    /// If the key is missing, the error shows `example`, a value in TOML.
    pub(super) fn required<T>(
        &self,
        key: &'static str,
        example: &str,
        take: impl FnOnce(&Self, &'static str) -> Option<T>,
    ) -> Option<T> {
        if self.span_of(key).is_none() {
            let message = format!("this key is missing, and has no default; write it like: {key} = {example}");
            self.missing(key, message);
        }
        let taken = take(self, key);
        self.checker.amend(&self.name, key, |key| key.is_required = true);
        taken
    }

    /// Records the default of a key that was read before.
    pub(super) fn has_default(&self, key: &'static str, default: impl Into<toml::Value>) {
        self.checker
            .amend(&self.name, key, |key| key.default = Some(default.into()));
    }

    /// Deletes the recorded default of a key that was read before, because another key disables this default.
    pub(super) fn has_no_default(&self, key: &'static str) {
        self.checker.amend(&self.name, key, |key| key.default = None);
    }

    /// Records that a key that was read before takes only these words, or a list of them.
    pub(super) fn has_words<'w>(&self, key: &'static str, words: impl IntoIterator<Item = &'w str>) {
        self.checker.amend(&self.name, key, |key| {
            let words = words.into_iter().map(str::to_owned).collect();
            key.kind = match key.kind {
                Kind::Texts => Kind::Words(words),
                _ => Kind::Word(words),
            };
        });
    }

    /// Returns the value of a key, and notes that the key is known.
    fn value(&self, key: &'static str, kind: impl FnOnce() -> Kind) -> Option<&'c Value<'c>> {
        self.known.borrow_mut().push(key);
        let value = self.raw.as_ref().and_then(|raw| raw.get_ref().get(key));
        self.checker.record(|| Key {
            table: self.name.clone(),
            entry: self.entry,
            name: key,
            kind: kind(),
            is_required: false,
            default: None,
            span: value.map(Spanned::span),
        });
        value
    }

    /// Converts the value with `take`. If the type is wrong, `take` returns `None`, and `typed` reports the mistake.
    fn typed<T>(
        &self,
        value: &'c Value<'c>,
        expected: &str,
        take: impl FnOnce(&'c DeValue<'c>) -> Option<T>,
    ) -> Option<Spanned<T>> {
        if let Some(taken) = take(value.get_ref()) {
            return Some(Spanned::new(value.span(), taken));
        }
        let message = match value.get_ref() {
            // TOML reads the words `inf` and `nan` as numbers. This key takes a string, so their quotes are missing.
            DeValue::Float(word) if expected == TEXT && word.as_str().ends_with(['n', 'f']) => {
                reader::quote(self.checker.source(value.span()))
            }
            DeValue::String(text) if expected == LIST => format!(
                "this key takes a list, even for one value; write \
                [{text:?}]"
            ),
            found => format!("found {}, but expected {expected}", reader::found(found)),
        };
        self.checker.unread(value.span(), message);
        None
    }

    fn items<T>(
        &self,
        list: &'c Value<'c>,
        expected: &str,
        take: impl Fn(&'c DeValue<'c>) -> Option<T>,
    ) -> Option<Spanned<Vec<Spanned<T>>>> {
        let items = self.typed(list, LIST, DeValue::as_array)?.into_inner();
        let items: Option<Vec<_>> = items.iter().map(|item| self.typed(item, expected, &take)).collect();
        Some(Spanned::new(list.span(), items?))
    }
}

/// Replaces a missing or invalid value by a default.
pub(super) trait ValueOr<T>: Sized {
    fn value_or(self, default: T) -> T;

    fn value_or_default(self) -> T
    where
        T: Default,
    {
        self.value_or(T::default())
    }
}

impl<T> ValueOr<T> for Option<Spanned<T>> {
    fn value_or(self, default: T) -> T {
        self.map_or(default, Spanned::into_inner)
    }
}
