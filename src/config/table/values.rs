//! Reads values of each type from a [`Table`], such as strings, lists, choices, numbers, durations and sizes.

use std::{borrow::Cow, fmt::Display, ops::RangeInclusive, path::PathBuf, time::Duration};

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use toml::Spanned;
use toml::de::DeValue;
use toml::value::Datetime;

use super::{TEXT, Table, ValueOr as _};
use crate::config::{
    checker::{List, Text},
    keys::Kind,
    reader,
    units::{self, HumanDuration, HumanSize, UnitError},
};

const AMOUNT: &str = r#"a number and a unit in quotes, like "24h" or "256MiB""#;

// === impl Table ===

impl<'c> Table<'c> {
    pub(in crate::config) fn text(&self, key: &'static str) -> Option<Text<'c>> {
        self.typed(self.value(key, || Kind::Text)?, TEXT, DeValue::as_str)
    }

    /// The default is `file` in the state directory.
    pub(in crate::config) fn path_or_state(&self, key: &'static str, raw: Option<Text<'_>>, file: &str) -> PathBuf {
        self.path_or(key, raw, self.checker.environment.state_dir.join(file))
    }

    pub(in crate::config) fn path_or(&self, key: &'static str, raw: Option<Text<'_>>, default: PathBuf) -> PathBuf {
        self.has_default(key, &*default.to_string_lossy());
        raw.and_then(|raw| self.checker.path(&raw)).unwrap_or(default)
    }

    pub(in crate::config) fn parsed<T, E: Display>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.checker.parsed(&self.text(key)?, parse)
    }

    pub(in crate::config) fn list(&self, key: &'static str) -> Option<List<'c>> {
        self.items(self.value(key, || Kind::Texts)?, TEXT, DeValue::as_str)
    }

    /// Reads a list of strings, or a single string.
    pub(in crate::config) fn texts(&self, key: &'static str) -> Option<List<'c>> {
        let value = self.value(key, || Kind::TextOrTexts)?;
        if value.get_ref().is_array() {
            return self.items(value, TEXT, DeValue::as_str);
        }
        let text = self.typed(value, "a string or a list of strings", DeValue::as_str)?;
        Some(Spanned::new(value.span(), vec![text]))
    }

    /// Reads a list of ports and port ranges as text. In the file, a port can be a string or a number.
    pub(in crate::config) fn ports(&self, key: &'static str) -> Option<Spanned<Vec<Spanned<Cow<'c, str>>>>> {
        let expected = r#"a port like 8080 or a range in quotes like "8000-8999""#;
        self.items(self.value(key, || Kind::Ports)?, expected, |value| match value {
            DeValue::String(text) => Some(Cow::Borrowed(&**text)),
            _ => integer(value).map(|number| number.to_string().into()),
        })
    }

    pub(in crate::config) fn choice<T: DeserializeOwned>(&self, key: &'static str) -> Option<Spanned<T>> {
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

    pub(in crate::config) fn choice_or<T: DeserializeOwned + PartialEq>(&self, key: &'static str, default: T) -> T {
        let choice = self.choice(key);
        self.has_choice(key, &default);
        choice.value_or(default)
    }

    /// Records the default of a key that [`Table::choice`] read.
    pub(in crate::config) fn has_choice<T: DeserializeOwned + PartialEq>(&self, key: &'static str, default: &T) {
        self.checker.amend(&self.name, key, |key| {
            let is_default = |name: &String| word::<T>(name).is_ok_and(|choice| choice == *default);
            key.default = words::<T>().into_iter().find(is_default).map(Into::into);
        });
    }

    pub(in crate::config) fn flag(&self, key: &'static str) -> Option<Spanned<bool>> {
        let value = self.value(key, || Kind::Flag)?;
        self.typed(value, "true or false, without quotes", DeValue::as_bool)
    }

    pub(in crate::config) fn flag_or(&self, key: &'static str, default: bool) -> bool {
        let flag = self.flag(key);
        self.has_default(key, default);
        flag.value_or(default)
    }

    /// For true or false, returns this value and no list; for a list, `false` and the list.
    pub(in crate::config) fn flag_or_list(
        &self,
        key: &'static str,
        expected: &str,
    ) -> Option<(bool, Option<List<'c>>)> {
        let value = self.value(key, || Kind::FlagOrTexts)?;
        if value.get_ref().is_array() {
            return Some((false, self.items(value, TEXT, DeValue::as_str)));
        }
        let flag = self.typed(value, expected, DeValue::as_bool)?;
        Some((flag.into_inner(), None))
    }

    pub(in crate::config) fn date(&self, key: &'static str) -> Option<Spanned<&'c Datetime>> {
        let expected = "a date without quotes, like 2027-01-31";
        self.typed(self.value(key, || Kind::Date)?, expected, DeValue::as_datetime)
    }

    fn integer(&self, key: &'static str, kind: impl FnOnce() -> Kind) -> Option<Spanned<i128>> {
        self.typed(self.value(key, kind)?, "a whole number", integer)
    }

    /// The first of `choices` is the default. The caller has to check that the number is one of `choices`.
    pub(in crate::config) fn one_of(&self, key: &'static str, choices: &[u16]) -> Option<Spanned<i128>> {
        let number = self.integer(key, || Kind::Numbers(choices.iter().copied().map(i64::from).collect()));
        if let Some(default) = choices.first() {
            self.has_default(key, i64::from(*default));
        }
        number
    }

    pub(in crate::config) fn number<T>(&self, key: &'static str, default: T, range: RangeInclusive<T>) -> T
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        self.number_of(["", ""], key, default, range)
    }

    /// `words` are for errors, as in [`Table::number_in`].
    pub(in crate::config) fn number_of<T>(
        &self,
        words: [&str; 2],
        key: &'static str,
        default: T,
        range: RangeInclusive<T>,
    ) -> T
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let number = self.number_in(words, key, range);
        self.has_default(key, to_integer(&default));
        number.unwrap_or(default)
    }

    /// `things` and `or` are parts of the error for a number out of range: what the number counts, such as
    /// ` fetches at once`, and the end of the error, such as `, or remove the key`.
    pub(in crate::config) fn number_in<T>(
        &self,
        [things, or]: [&str; 2],
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let (low, high) = (range.start(), range.end());
        let raw = self.integer(key, || Kind::Number(to_integer(low), to_integer(high)))?;
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

    pub(in crate::config) fn duration(
        &self,
        key: &'static str,
        default: Duration,
        limits: RangeInclusive<Duration>,
    ) -> Duration {
        let time = self.time(key, limits);
        self.has_default(key, HumanDuration(default).to_string());
        time.value_or(default)
    }

    pub(in crate::config) fn time(
        &self,
        key: &'static str,
        limits: RangeInclusive<Duration>,
    ) -> Option<Spanned<Duration>> {
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

    /// A number without a unit counts bytes. `in_words` describes `limits`.
    pub(in crate::config) fn size(
        &self,
        key: &'static str,
        default: u64,
        (limits, in_words): (RangeInclusive<u64>, &str),
    ) -> u64 {
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

/// A duration or a size as written in the file: a string, or a number without a unit, which only sizes accept.
enum Amount<'c> {
    Text(&'c str),
    Number(i128),
}

fn amount<'c>(value: &'c DeValue<'_>) -> Option<Amount<'c>> {
    let text = value.as_str().map(Amount::Text);
    text.or_else(|| integer(value).map(Amount::Number))
}

fn integer(value: &DeValue<'_>) -> Option<i128> {
    let number = value.as_integer()?;
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

fn word<T: DeserializeOwned>(name: &str) -> Result<T, Error> {
    let deserializer: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(deserializer)
}

/// Returns the words that the type `T` defines. serde lists them in its error for an unknown word.
fn words<T: DeserializeOwned>() -> Vec<String> {
    let error = word::<T>("").err().map(|error| error.to_string()).unwrap_or_default();
    reader::choices(&error).map(str::to_owned).collect()
}

/// All limits and defaults in robotgate fit into `i64`.
fn to_integer(number: &impl Display) -> i64 {
    number.to_string().parse().unwrap_or(i64::MAX)
}
