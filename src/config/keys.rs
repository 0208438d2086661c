//! The keys of the configuration. The parser records each key that it looks for. So there is no separate list of keys,
//! which could differ from what the parser reads.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Value;

/// A key that the parser looked for.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// The dotted name of the table that the key is in, without list indexes. Empty for the top level of the file.
    pub table: String,
    /// The index of the table in its list, from 0. `None` if the table is not in a list.
    pub entry: Option<usize>,
    pub name: &'static str,
    pub kind: Kind,
    pub is_required: bool,
    /// The value that applies if the key is not set. `None` if the key has no default.
    pub default: Option<Value>,
    /// Where the value is; `None` if the key is not set.
    pub span: Option<Range<usize>>,
}

/// The type of value that a key takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    /// A list of texts.
    Texts,
    /// A text or a list of texts.
    TextOrTexts,
    /// One of these words.
    Word(Vec<String>),
    /// A list of these words.
    Words(Vec<String>),
    Flag,
    FlagOrTexts,
    Date,
    /// A whole number in a range.
    Number(i64, i64),
    /// One of these numbers.
    Numbers(Vec<i64>),
    /// A list of ports and ranges of ports.
    Ports,
    /// A duration. The string describes the allowed range, for people.
    Duration(String),
    /// A size in bytes. The string describes the allowed range, for people.
    Size(String),
    Table,
    /// A list of tables.
    Tables,
}

/// Which keys the parser records while it reads a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recording {
    Nothing,
    /// The keys that the parser looks for in this configuration. It does not look for the keys of a missing `[[bot]]`.
    Looked,
    /// All keys, including those of tables that the file does not contain.
    All,
}

// === impl Key ===

impl Key {
    /// Returns the dotted name.
    pub(super) fn dotted(&self) -> String {
        match &*self.table {
            "" => self.name.to_owned(),
            table => format!("{table}.{}", self.name),
        }
    }
}

// === impl Kind ===

impl Kind {
    /// Returns whether the key takes only text. In an environment variable or `--set`, a value without quotes is then a
    /// text. A duration is not a text here: `30` is a number that lacks its unit, which is a mistake.
    fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Word(_))
    }
}

/// Returns the dotted names of the keys that take only text.
pub(super) fn texts(keys: &[Key]) -> BTreeSet<String> {
    keys.iter().filter(|key| key.kind.is_text()).map(Key::dotted).collect()
}
