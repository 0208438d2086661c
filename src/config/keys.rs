//! The keys of the configuration. The parser records each key that it looks for, so there is no separate list of keys.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Value;

#[derive(Clone, Debug)]
pub(super) struct Key {
    /// The dotted name of the table that the key is in, without list indexes. Empty for the top level of the file.
    pub table: String,
    /// The index of the table in its list, from 0. `None` if the table is not in a list.
    pub entry: Option<usize>,
    pub name: &'static str,
    pub kind: Kind,
    pub is_required: bool,
    pub default: Option<Value>,
    /// Where the value is; `None` if the key is not set.
    pub span: Option<Range<usize>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Texts,
    TextOrTexts,
    Word(Vec<String>),
    Words(Vec<String>),
    Flag,
    FlagOrTexts,
    Date,
    Number(i64, i64),
    Numbers(Vec<i64>),
    Ports,
    /// A duration. The string describes the allowed range, for people.
    Duration(String),
    /// A size in bytes. The string describes the allowed range, for people.
    Size(String),
    Table,
    Tables,
}

/// Which keys the parser records while it reads a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recording {
    Nothing,
    /// The keys that the parser looks for in this configuration. It looks for the keys of a `[[bot]]`, for example,
    /// only if the configuration has a `[[bot]]`.
    Requested,
    /// All keys, including those of tables that the file does not contain.
    All,
}

// === impl Key ===

impl Key {
    pub(super) fn dotted(&self) -> String {
        match &*self.table {
            "" => self.name.to_owned(),
            table => format!("{table}.{}", self.name),
        }
    }
}

// === impl Kind ===

impl Kind {
    /// Returns whether an unquoted `30` in an environment variable or `--set` means the text "30", and not a number.
    fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Word(_))
    }
}

pub(super) fn texts(keys: &[Key]) -> BTreeSet<String> {
    keys.iter().filter(|key| key.kind.is_text()).map(Key::dotted).collect()
}
