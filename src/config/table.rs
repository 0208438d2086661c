//! A table of the configuration file. Reads values by key, as the type that the key requires.
//!
//! Each section of the configuration reads its keys here one by one. A value that cannot be read is reported with its
//! place, and the section continues with a default. So one run finds all mistakes of a file. A key that no section
//! reads is reported as unknown. This module does not know what a value is for.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml::value::Datetime;

use super::checker::{Checker, List, Text};
use super::reader;
use super::units::{self, HumanDuration, UnitError};

/// A table of the configuration file. The file need not contain it.
pub(super) struct Table<'c> {
    pub checker: &'c Checker<'c>,
    /// The dotted name of the table, without list indexes. The name of the file itself is empty.
    name: String,
    raw: Option<Spanned<&'c DeTable<'c>>>,
    /// The keys that the code of the section has asked for.
    known: RefCell<Vec<&'static str>>,
}

type Value<'c> = Spanned<DeValue<'c>>;

// Descriptions of the type that a value must have, for error messages.
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
        Self::read(checker, String::new(), Some(Spanned::new(0..0, document)), read)
    }

    /// Reads a table with `read`. Then reports the keys that `read` did not ask for, as unknown.
    fn read<T>(
        checker: &'c Checker<'c>,
        name: String,
        raw: Option<Spanned<&'c DeTable<'c>>>,
        read: impl FnOnce(&Table<'c>) -> T,
    ) -> T {
        let table = Self {
            checker,
            name,
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
        let raw = self.value(key).and_then(|value| match value.get_ref() {
            DeValue::Array(_) => {
                let message = format!("there can be only one of these; write [{name}], in single brackets");
                self.checker.unread(value.span(), message);
                None
            }
            _ => self.typed(value, TABLE, DeValue::as_table),
        });
        Self::read(self.checker, name, raw, read)
    }

    /// Reads each of the tables written as `[[key]]` with `read`.
    pub(super) fn tables<T>(&self, key: &'static str, mut read: impl FnMut(&Table<'c>) -> Option<T>) -> Vec<T> {
        let name = self.name_of(key);
        let tables = self.value(key).and_then(|value| match value.get_ref() {
            DeValue::Table(_) => {
                let message = format!("there can be several of these; write [[{name}]], in double brackets");
                self.checker.unread(value.span(), message);
                None
            }
            _ => self.items(value, TABLE, DeValue::as_table),
        });
        let read = |table| Self::read(self.checker, name.clone(), Some(table), &mut read);
        tables.value_or_default().into_iter().filter_map(read).collect()
    }

    fn name_of(&self, key: &str) -> String {
        match &*self.name {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    /// Returns where the table's header is. Returns `None` if the file does not contain the table.
    pub(super) fn span(&self) -> Option<Range<usize>> {
        self.raw.as_ref().map(Spanned::span)
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
        take(self, key)
    }

    fn value(&self, key: &'static str) -> Option<&'c Value<'c>> {
        self.known.borrow_mut().push(key);
        self.raw.as_ref()?.get_ref().get(key)
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
        self.typed(self.value(key)?, TEXT, DeValue::as_str)
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
        self.items(self.value(key)?, TEXT, DeValue::as_str)
    }

    /// Reads a list of strings, or a single string.
    pub(super) fn texts(&self, key: &'static str) -> Option<List<'c>> {
        let value = self.value(key)?;
        if value.get_ref().is_array() {
            return self.items(value, TEXT, DeValue::as_str);
        }
        let text = self.typed(value, "a string or a list of strings", DeValue::as_str)?;
        Some(Spanned::new(value.span(), vec![text]))
    }

    /// Reads a list of ports and port ranges, as strings. A port can also be written as a number.
    pub(super) fn ports(&self, key: &'static str) -> Option<Spanned<Vec<Spanned<Cow<'c, str>>>>> {
        let expected = r#"a port like 8080 or a range in quotes like "8000-8999""#;
        self.items(self.value(key)?, expected, |value| match value {
            DeValue::String(text) => Some(Cow::Borrowed(&**text)),
            _ => integer(value).map(|number| number.to_string().into()),
        })
    }

    /// Reads one of the words that the type `T` allows.
    pub(super) fn choice<T: DeserializeOwned>(&self, key: &'static str) -> Option<Spanned<T>> {
        let value = self.value(key)?;
        let message = match value.get_ref() {
            DeValue::String(name) => {
                let deserializer: StrDeserializer<'_, Error> = (&**name).into_deserializer();
                match T::deserialize(deserializer) {
                    Ok(choice) => return Some(Spanned::new(value.span(), choice)),
                    Err(error) => reader::unknown_choice(name, &error.to_string()),
                }
            }
            DeValue::Array(_) | DeValue::Table(_) => format!("expected {TEXT}"),
            _ => reader::quote(self.checker.source(value.span())),
        };
        self.checker.unread(value.span(), message);
        None
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<Spanned<bool>> {
        self.typed(self.value(key)?, "true or false, without quotes", DeValue::as_bool)
    }

    /// Reads `true` or `false`, or a list of strings. For a list, returns `false` and the list.
    pub(super) fn flag_or_list(&self, key: &'static str, expected: &str) -> Option<(bool, Option<List<'c>>)> {
        let value = self.value(key)?;
        if value.get_ref().is_array() {
            return Some((false, self.items(value, TEXT, DeValue::as_str)));
        }
        let flag = self.typed(value, expected, DeValue::as_bool)?;
        Some((flag.into_inner(), None))
    }

    pub(super) fn date(&self, key: &'static str) -> Option<Spanned<&'c Datetime>> {
        let expected = "a date without quotes, like 2027-01-31";
        self.typed(self.value(key)?, expected, DeValue::as_datetime)
    }

    /// Reads a whole number.
    pub(super) fn integer(&self, key: &'static str) -> Option<Spanned<i128>> {
        self.typed(self.value(key)?, "a whole number", integer)
    }

    /// Reads a whole number in a range.
    pub(super) fn number<T>(&self, key: &'static str, default: T, range: RangeInclusive<T>) -> T
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        self.number_of(["", ""], key, default, range)
    }

    /// Reads a whole number in a range. In error messages, `things` is what the number counts, such as " threads", and
    /// `or` says what else to do.
    pub(super) fn number_of<T>(
        &self,
        [things, or]: [&str; 2],
        key: &'static str,
        default: T,
        range: RangeInclusive<T>,
    ) -> T
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let Some(raw) = self.integer(key) else {
            return default;
        };
        match T::try_from(*raw.get_ref()) {
            Ok(number) if range.contains(&number) => number,
            _ => {
                let (low, high) = (range.start(), range.end());
                let message = format!(
                    "{}{things} is out of range; write a number from {low} to {high}{or}",
                    raw.get_ref()
                );
                self.checker.complain(raw.span(), message);
                default
            }
        }
    }

    pub(super) fn duration(&self, key: &'static str, default: Duration, limits: RangeInclusive<Duration>) -> Duration {
        self.time(key, limits).value_or(default)
    }

    /// Reads a duration within limits.
    pub(super) fn time(&self, key: &'static str, limits: RangeInclusive<Duration>) -> Option<Spanned<Duration>> {
        let value = self.value(key)?;
        let amount = self.typed(value, AMOUNT, amount)?.into_inner();
        let time = match amount {
            Amount::Number(number) => Err(format!("{number} has no unit; write \"{number}s\" if you mean seconds")),
            Amount::Text(text) => match units::duration(text) {
                Err(error) => Err(format!("\"{text}\" {error}")),
                Ok(time) if !limits.contains(&time) => {
                    let (low, high) = (HumanDuration(*limits.start()), HumanDuration(*limits.end()));
                    Err(format!("\"{text}\" is out of range; write a time from {low} to {high}"))
                }
                Ok(time) => Ok(Spanned::new(value.span(), time)),
            },
        };
        self.checker.taken(value.span(), time)
    }

    /// Reads a size in bytes. `limits` is the allowed range, which `in_words` describes. A number without a unit counts
    /// bytes.
    pub(super) fn size(&self, key: &'static str, default: u64, (limits, in_words): (RangeInclusive<u64>, &str)) -> u64 {
        let raw = self.value(key).and_then(|value| self.typed(value, AMOUNT, amount));
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

/// Replaces a value that is missing or invalid by a default.
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
