//! The keys that a file sets, one a line: for an operator to read, and to tell what differs between two files.
//!
//! A bot is named by its name and a tunnel by its host, so that one that is put before the others changes nothing of
//! theirs. Values are as they were written; none of them is a secret, as secrets stand in files of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toml::{Table, Value};

/// Each key that a file sets, dotted, and its value in TOML. Two of them are told apart by [`Settings::changes`] alone:
/// whether configurations are equal does not hang on how they were written.
#[derive(Clone, Debug, Default)]
pub struct Settings(BTreeMap<String, String>);

/// A key that stands for something else than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: String,
    pub how: How,
}

/// How it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is written otherwise; `None` where it is not, and so has its default.
    Value {
        before: Option<String>,
        after: Option<String>,
    },
    /// It is a secret, or stands in another file: that it changed is all that is told.
    Unseen(&'static str),
}

// === impl Settings ===

impl Settings {
    /// Of a text that was read without a complaint; nothing of any other.
    pub(super) fn of(text: &str) -> Self {
        let mut settings = Self::default();
        for (key, value) in text.parse::<Table>().unwrap_or_default() {
            settings.add(key, value);
        }
        settings
    }

    fn add(&mut self, key: String, value: Value) {
        let value = match value {
            Value::Table(table) => {
                for (name, value) in table {
                    self.add(format!("{key}.{name}"), value);
                }
                return;
            }
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_table) => {
                return self.add_entries(&key, items);
            }
            value => value.to_string(),
        };
        self.0.insert(key, value);
    }

    /// The tables of `[[key]]`.
    fn add_entries(&mut self, key: &str, entries: Vec<Value>) {
        let mut names: Vec<Value> = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let name = NAMES.iter().find_map(|name| entry.get(name)?.as_str());
            let name = name.map_or_else(|| (index + 1).to_string(), str::to_owned);
            // Cases have no names, and their order means nothing.
            if NAMED.contains(&key) {
                names.push(name.clone().into());
            }
            self.add(format!("{key}.{name}"), entry);
        }
        if !names.is_empty() {
            self.0.insert(key.to_owned(), Value::Array(names).to_string());
        }
    }

    /// The keys and their values, in the keys' order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// What `after` sets otherwise, in the keys' order.
    pub fn changes(&self, after: &Self) -> Vec<Change> {
        let keys: BTreeSet<&String> = self.0.keys().chain(after.0.keys()).collect();
        let changed = keys.into_iter().filter(|key| self.0.get(*key) != after.0.get(*key));
        let change = |key: &String| Change {
            key: key.clone(),
            how: How::Value {
                before: self.0.get(key).cloned(),
                after: after.0.get(key).cloned(),
            },
        };
        changed.map(change).collect()
    }
}

impl PartialEq for Settings {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

// === impl Change ===

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.how {
            How::Value { before, after } => {
                let [before, after] = [before, after].map(|value| value.as_deref().unwrap_or(DEFAULT));
                write!(f, "{}: {before} -> {after}", self.key)
            }
            How::Unseen(how) => write!(f, "{}: {how}", self.key),
        }
    }
}

/// Lists of tables in which order counts, and the key that names an entry.
const NAMED: [&str; 2] = ["bot", "https.tunnel"];
const NAMES: [&str; 2] = ["name", "host"];
const DEFAULT: &str = "default";

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(before: &str, after: &str) -> Vec<String> {
        let changes = Settings::of(before).changes(&Settings::of(after));
        changes.iter().map(Change::to_string).collect()
    }

    #[test]
    fn what_is_set_otherwise_is_told_key_by_key() {
        for (before, after, expected) in [
            ("", "", &[] as &[&str]),
            ("# a\n[proxy]\nname = 'a'", "proxy.name = \"a\" # b", &[]),
            (
                "[proxy]\nread-timeout = \"60s\"",
                "[proxy]\nread-timeout = \"30s\"\n[proxy.tls]\nlisten = []",
                &[
                    "proxy.read-timeout: \"60s\" -> \"30s\"",
                    "proxy.tls.listen: default -> []",
                ],
            ),
            (
                "egress.ports = [80, \"8000-8999\"]",
                "",
                &["egress.ports: [80, \"8000-8999\"] -> default"],
            ),
        ] {
            assert_eq!(changes(before, after), expected, "{before} / {after}");
        }
    }

    #[test]
    fn a_bot_that_is_put_before_the_others_changes_nothing_of_theirs() {
        let a = "[[bot]]\nname = \"A\"\nenforcement = \"report\"\n";
        let b = "[[bot]]\nname = \"B\"\nuser-agents = [\"B\"]\n";
        assert_eq!(
            changes(a, &format!("{b}{a}")),
            [
                "bot: [\"A\"] -> [\"B\", \"A\"]",
                "bot.B.name: default -> \"B\"",
                "bot.B.user-agents: default -> [\"B\"]",
            ]
        );
        assert_eq!(
            changes(&format!("{a}{b}"), &format!("{b}{a}")),
            ["bot: [\"A\", \"B\"] -> [\"B\", \"A\"]"]
        );
        assert_eq!(
            changes(a, &a.replace("report", "enforce")),
            ["bot.A.enforcement: \"report\" -> \"enforce\""]
        );
    }
}
