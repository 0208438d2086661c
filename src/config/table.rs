//! Reads the values of a table of the configuration file. Each value must have the type that its key requires.
//!
//! The code of each section calls a method here for each of its keys. A value that cannot be read is reported with its
//! place, and the section continues with a default, so that one run finds all mistakes of a file. A key that no section
//! reads is unknown. Each reading method also records what the key takes, for the schema and for `robotgate config
//! show`. This module does not know what a value is for.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml::value::Datetime;

use super::checker::{Checker, List, Text};
use super::keys::{Key, Kind, Recording};
use super::reader;
use super::units::{self, HumanDuration, HumanSize, UnitError};

/// A table of the configuration file. The file need not contain it.
pub(super) struct Table<'c> {
    pub checker: &'c Checker<'c>,
    /// The dotted name of the table, without list indexes. The name of the file itself is empty.
    name: String,
    /// The index in a list of tables.
    entry: Option<usize>,
    raw: Option<Spanned<&'c DeTable<'c>>>,
    /// The keys that the code of the section has asked for.
    known: RefCell<Vec<&'static str>>,
}

type Value<'c> = Spanned<DeValue<'c>>;

/// The empty list, as the default of a key that takes a list.
pub(super) const NONE: Vec<toml::Value> = Vec::new();

// Descriptions of expected types, for messages.
const TEXT: &str = "a string in quotes";
const LIST: &str = "a list in brackets";
const TABLE: &str = "a table";
const AMOUNT: &str = r#"a number and a unit in quotes, like "24h" or "256MiB""#;

// === impl Table ===

impl<'c> Table<'c> {
    /// Reads the top level of the file with `read`.
    pub(super) fn file<T>(
        document: &'c DeTable<'c>,
        checker: &'c Checker<'c>,
        read: impl FnOnce(&Table<'c>) -> T,
    ) -> T {
        Self::read(checker, (String::new(), None), Some(Spanned::new(0..0, document)), read)
    }

    /// Reads a table with `read`. Then reports the keys that `read` did not ask for, as unknown.
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
                checker.unread(key.span(), reader::unknown_key(name, &known));
            }
        }
        taken
    }

    /// Reads the table at a key with `read`. Does so even if the file does not contain the table.
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

    /// Reads each of the tables written as `[[key]]` with `read`.
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

    /// Returns where the table's header is. Returns `None` if the file does not contain the table.
    pub(super) fn span(&self) -> Option<Range<usize>> {
        // To record all keys, the parser must also read the sections that the file lacks. So pretend that the table is
        // at 0..0.
        let absent = (self.checker.recording == Recording::All).then_some(0..0);
        self.raw.as_ref().map(Spanned::span).or(absent)
    }

    /// Returns where the value at a dotted key is, whatever its type. The key does not count as read.
    pub(super) fn span_of(&self, dotted: &str) -> Option<Range<usize>> {
        let mut keys = dotted.split('.');
        let first = self.raw.as_ref()?.get_ref().get(keys.next()?)?;
        Some(keys.try_fold(first, |value, key| value.get_ref().get(key))?.span())
    }

    /// Reports a key that is missing from this table.
    pub(super) fn missing(&self, key: &'static str, message: String) {
        self.checker.missing(self.span().unwrap_or_default(), key, message);
    }

    /// Reads the value of a required key with `take`. `example` is a value in TOML, which the error shows if the key is
    /// missing.
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

    /// Records the default of a key that was read before. This is for keys whose reading method does not get the
    /// default as an argument.
    pub(super) fn has_default(&self, key: &'static str, default: impl Into<toml::Value>) {
        self.checker
            .amend(&self.name, key, |key| key.default = Some(default.into()));
    }

    /// Records that the default of a key that was read before does not apply, because of another key.
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

    /// Returns the value of a key. `kind` says what the key takes, for the list of recorded keys.
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

    /// Converts the value with `take`. Reports the value if `take` returns `None`, because its type is wrong.
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
            // TOML reads the words `inf` and `nan` as numbers. Here they were meant as a string.
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

    /// Reads a list whose items all have the expected type.
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

    pub(super) fn text(&self, key: &'static str) -> Option<Text<'c>> {
        self.typed(self.value(key, || Kind::Text)?, TEXT, DeValue::as_str)
    }

    /// Reads a path from `raw`, which is the value of `key`. If `key` is not set, returns the path of `file` in the
    /// state directory.
    pub(super) fn path_or_state(&self, key: &'static str, raw: Option<Text<'_>>, file: &str) -> PathBuf {
        self.path_or(key, raw, self.checker.environment.state_dir.join(file))
    }

    /// Reads a path from `raw`, which is the value of `key`. If `key` is not set, returns `default`.
    pub(super) fn path_or(&self, key: &'static str, raw: Option<Text<'_>>, default: PathBuf) -> PathBuf {
        self.has_default(key, &*default.to_string_lossy());
        raw.and_then(|raw| self.checker.path(&raw)).unwrap_or(default)
    }

    /// Reads a string and parses it.
    pub(super) fn parsed<T, E: Display>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.checker.parsed(&self.text(key)?, parse)
    }

    /// Reads a list of strings.
    pub(super) fn list(&self, key: &'static str) -> Option<List<'c>> {
        self.items(self.value(key, || Kind::Texts)?, TEXT, DeValue::as_str)
    }

    /// Reads a list of strings, or a single string.
    pub(super) fn texts(&self, key: &'static str) -> Option<List<'c>> {
        let value = self.value(key, || Kind::TextOrTexts)?;
        if value.get_ref().is_array() {
            return self.items(value, TEXT, DeValue::as_str);
        }
        let text = self.typed(value, "a string or a list of strings", DeValue::as_str)?;
        Some(Spanned::new(value.span(), vec![text]))
    }

    /// Reads a list of ports and port ranges, as strings. A port can also be written as a number.
    pub(super) fn ports(&self, key: &'static str) -> Option<Spanned<Vec<Spanned<Cow<'c, str>>>>> {
        let expected = r#"a port like 8080 or a range in quotes like "8000-8999""#;
        self.items(self.value(key, || Kind::Ports)?, expected, |value| match value {
            DeValue::String(text) => Some(Cow::Borrowed(&**text)),
            _ => integer(value).map(|number| number.to_string().into()),
        })
    }

    /// Reads one of the words that the type `T` allows.
    pub(super) fn choice<T: DeserializeOwned>(&self, key: &'static str) -> Option<Spanned<T>> {
        let value = self.value(key, || Kind::Word(words::<T>()))?;
        let message = match value.get_ref() {
            DeValue::String(name) => match word(name) {
                Ok(choice) => return Some(Spanned::new(value.span(), choice)),
                Err(error) => reader::unknown_choice(name, &error.to_string()),
            },
            DeValue::Array(_) | DeValue::Table(_) => format!("expected {TEXT}"),
            _ => reader::quote(self.checker.source(value.span())),
        };
        self.checker.unread(value.span(), message);
        None
    }

    /// Reads one of the words that the type `T` defines. If the key is not set, returns `default`.
    pub(super) fn choice_or<T: DeserializeOwned + PartialEq>(&self, key: &'static str, default: T) -> T {
        let choice = self.choice(key);
        self.has_choice(key, &default);
        choice.value_or(default)
    }

    /// Records the default of a key that [`Table::choice`] read.
    pub(super) fn has_choice<T: DeserializeOwned + PartialEq>(&self, key: &'static str, default: &T) {
        self.checker.amend(&self.name, key, |key| {
            let is_default = |name: &String| word::<T>(name).is_ok_and(|choice| choice == *default);
            key.default = words::<T>().into_iter().find(is_default).map(Into::into);
        });
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<Spanned<bool>> {
        let value = self.value(key, || Kind::Flag)?;
        self.typed(value, "true or false, without quotes", DeValue::as_bool)
    }

    pub(super) fn flag_or(&self, key: &'static str, default: bool) -> bool {
        let flag = self.flag(key);
        self.has_default(key, default);
        flag.value_or(default)
    }

    /// Reads `true` or `false`, or a list of strings. For a list, returns `false` and the list.
    pub(super) fn flag_or_list(&self, key: &'static str, expected: &str) -> Option<(bool, Option<List<'c>>)> {
        let value = self.value(key, || Kind::FlagOrTexts)?;
        if value.get_ref().is_array() {
            return Some((false, self.items(value, TEXT, DeValue::as_str)));
        }
        let flag = self.typed(value, expected, DeValue::as_bool)?;
        Some((flag.into_inner(), None))
    }

    pub(super) fn date(&self, key: &'static str) -> Option<Spanned<&'c Datetime>> {
        let expected = "a date without quotes, like 2027-01-31";
        self.typed(self.value(key, || Kind::Date)?, expected, DeValue::as_datetime)
    }

    fn integer(&self, key: &'static str, kind: impl FnOnce() -> Kind) -> Option<Spanned<i128>> {
        self.typed(self.value(key, kind)?, "a whole number", integer)
    }

    /// Reads a whole number, which the caller compares with `choices`. The first of them is the default.
    pub(super) fn one_of(&self, key: &'static str, choices: &[u16]) -> Option<Spanned<i128>> {
        let number = self.integer(key, || Kind::Numbers(choices.iter().copied().map(i64::from).collect()));
        if let Some(default) = choices.first() {
            self.has_default(key, i64::from(*default));
        }
        number
    }

    /// Reads a whole number in a range.
    pub(super) fn number<T>(&self, key: &'static str, default: T, range: RangeInclusive<T>) -> T
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        self.number_of(["", ""], key, default, range)
    }

    /// Does the same as [`Table::number`]. `words` are added to messages, as in [`Table::number_in`].
    pub(super) fn number_of<T>(&self, words: [&str; 2], key: &'static str, default: T, range: RangeInclusive<T>) -> T
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let number = self.number_in(words, key, range);
        self.has_default(key, whole(&default));
        number.unwrap_or(default)
    }

    /// Reads a whole number in a range, for a key without a default. Messages have `things` after the number, such as "
    /// threads", and `or` at the end, which offers an alternative.
    pub(super) fn number_in<T>(&self, [things, or]: [&str; 2], key: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let (low, high) = (range.start(), range.end());
        let raw = self.integer(key, || Kind::Number(whole(low), whole(high)))?;
        match T::try_from(*raw.get_ref()) {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                let message = format!(
                    "{}{things} is out of range; write a number from {low} to {high}{or}",
                    raw.get_ref()
                );
                self.checker.complain(raw.span(), message);
                None
            }
        }
    }

    pub(super) fn duration(&self, key: &'static str, default: Duration, limits: RangeInclusive<Duration>) -> Duration {
        let time = self.time(key, limits);
        self.has_default(key, HumanDuration(default).to_string());
        time.value_or(default)
    }

    /// Reads a duration within limits.
    pub(super) fn time(&self, key: &'static str, limits: RangeInclusive<Duration>) -> Option<Spanned<Duration>> {
        let in_words = || {
            let (low, high) = (HumanDuration(*limits.start()), HumanDuration(*limits.end()));
            format!("from {low} to {high}")
        };
        let value = self.value(key, || Kind::Duration(in_words()))?;
        let amount = self.typed(value, AMOUNT, amount)?.into_inner();
        let time = match amount {
            Amount::Number(number) => Err(format!("{number} has no unit; write \"{number}s\" if you mean seconds")),
            Amount::Text(text) => match units::duration(text) {
                Err(error) => Err(format!("\"{text}\" {error}")),
                Ok(time) if !limits.contains(&time) => {
                    Err(format!("\"{text}\" is out of range; write a time {}", in_words()))
                }
                Ok(time) => Ok(Spanned::new(value.span(), time)),
            },
        };
        self.checker.taken(value.span(), time)
    }

    /// Reads a size in bytes. `limits` is the allowed range, which `in_words` describes. A number without a unit counts
    /// bytes.
    pub(super) fn size(&self, key: &'static str, default: u64, (limits, in_words): (RangeInclusive<u64>, &str)) -> u64 {
        let value = self.value(key, || Kind::Size(in_words.to_owned()));
        self.has_default(key, HumanSize(default).to_string());
        let raw = value.and_then(|value| self.typed(value, AMOUNT, amount));
        let Some(raw) = raw else { return default };
        let (shown, size) = match raw.get_ref() {
            Amount::Text(text) => (format!("\"{text}\""), units::size(text)),
            Amount::Number(number) => (number.to_string(), u64::try_from(*number).map_err(|_| UnitError::Size)),
        };
        let size = match size {
            Err(error) => Err(format!("{shown} {error}")),
            Ok(size) if !limits.contains(&size) => Err(format!("{shown} is out of range; write a size {in_words}")),
            Ok(size) => Ok(size),
        };
        self.checker.taken(raw.span(), size).unwrap_or(default)
    }
}

/// A duration or a size as written in the file: a string, or a number without a unit, which only some keys accept.
enum Amount<'c> {
    Text(&'c str),
    Number(i128),
}

fn amount<'c>(value: &'c DeValue<'_>) -> Option<Amount<'c>> {
    let text = value.as_str().map(Amount::Text);
    text.or_else(|| integer(value).map(Amount::Number))
}

/// Reads a TOML integer. Returns `None` if it does not fit into 128 bits.
fn integer(value: &DeValue<'_>) -> Option<i128> {
    let number = value.as_integer()?;
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Parses one of the words that the type `T` defines.
fn word<T: DeserializeOwned>(name: &str) -> Result<T, Error> {
    let deserializer: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(deserializer)
}

/// Returns the words that the type `T` defines. They are taken from serde's error for an unknown word, which lists
/// them.
fn words<T: DeserializeOwned>() -> Vec<String> {
    let error = word::<T>("").err().map(|error| error.to_string()).unwrap_or_default();
    reader::choices(&error).map(str::to_owned).collect()
}

/// Converts a limit or a default to `i64`. All of them fit.
fn whole(number: &impl Display) -> i64 {
    number.to_string().parse().unwrap_or(i64::MAX)
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
