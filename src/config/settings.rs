//! The keys that a configuration sets, as a flat list, to show to an operator and to compare two files.
//!
//! The keys of a bot contain its name and not its index, so a new entry does not change the keys of the entries after
//! it. Values contain no secret, because secrets are in separate files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toml::{Table, Value};

/// The keys that a configuration sets, with their values in TOML. Two `Settings` always compare equal, so that
/// configurations with the same meaning are equal; to compare the keys, use [`Settings::changes`].
#[derive(Clone, Debug, Default)]
pub struct Settings(BTreeMap<String, String>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    pub key: String,
    pub how: How,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// The values before and after: "default" if the key is not set, "no entry" if it belongs to a `[[bot]]` or
    /// `[[https.tunnel]]` that does not exist.
    Value { before: String, after: String },
    /// A secret has changed, or the content of a file that the configuration names, such as a certificate. The string
    /// says what has changed, such as `another certificate`, but does not show the content.
    Unseen(&'static str),
}

// === impl Settings ===

impl Settings {
    pub(super) fn of(table: Table) -> Self {
        let mut settings = Self::default();
        for (key, value) in table {
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

    fn add_entries(&mut self, key: &str, entries: Vec<Value>) {
        let mut names: Vec<Value> = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let name = NAME_KEYS.iter().find_map(|name| entry.get(name)?.as_str());
            let name = name.map_or_else(|| (index + 1).to_string(), str::to_owned);
            // The order of these entries matters, so record it.
            if ORDERED_LISTS.contains(&key) {
                names.push(name.clone().into());
            }
            self.add(format!("{key}.{name}"), entry);
        }
        if !names.is_empty() {
            self.0.insert(key.to_owned(), Value::Array(names).to_string());
        }
    }

    /// Returns the keys and their values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns the keys whose values are different in `after`, sorted by key.
    pub fn changes(&self, after: &Self) -> Vec<KeyChange> {
        let keys: BTreeSet<&String> = self.0.keys().chain(after.0.keys()).collect();
        let changed = keys.into_iter().filter(|key| self.0.get(*key) != after.0.get(*key));
        let change = |key: &String| KeyChange {
            key: key.clone(),
            how: How::Value {
                before: self.value(key),
                after: after.value(key),
            },
        };
        changed.map(change).collect()
    }

    /// Returns the value of `key`, or "default" or "no entry" as in [`How::Value`].
    fn value(&self, key: &str) -> String {
        if let Some(value) = self.0.get(key) {
            return value.clone();
        }
        // In `https.tunnel.a.example.until`, the last dot separates the entry, whose name is `a.example`, from its key.
        let (entry, _) = key.rsplit_once('.').unwrap_or_default();
        let is_in = |list: &str| entry.strip_prefix(list).is_some_and(|name| name.starts_with('.'));
        let sets = |name: &str| self.0.contains_key(&format!("{entry}.{name}"));
        // Every entry sets its name or host. So if neither is set, the entry does not exist.
        let has_no_entry = ORDERED_LISTS.into_iter().any(is_in) && !NAME_KEYS.into_iter().any(sets);
        if has_no_entry { NO_ENTRY } else { DEFAULT }.to_owned()
    }
}

impl PartialEq for Settings {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

// === impl KeyChange ===

impl fmt::Display for KeyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.how {
            How::Value { before, after } => {
                write!(f, "{}: {before} -> {after}", self.key)
            }
            How::Unseen(how) => write!(f, "{}: {how}", self.key),
        }
    }
}

const ORDERED_LISTS: [&str; 2] = ["bot", "https.tunnel"];
const NAME_KEYS: [&str; 2] = ["name", "host"];
const DEFAULT: &str = "default";
const NO_ENTRY: &str = "no entry";

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(before: &str, after: &str) -> Vec<String> {
        let [before, after] = [before, after].map(|text| Settings::of(text.parse().unwrap()));
        let changes = before.changes(&after);
        changes.iter().map(KeyChange::to_string).collect()
    }

    #[test]
    fn changed_settings_are_listed_by_key() {
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
    fn inserting_a_bot_does_not_list_changes_of_the_other_bots() {
        let a = "[[bot]]\nname = \"A\"\nenforcement = \"report\"\n";
        let b = "[[bot]]\nname = \"B\"\nuser-agents = [\"B\"]\n";
        assert_eq!(
            changes(a, &format!("{b}{a}")),
            [
                "bot: [\"A\"] -> [\"B\", \"A\"]",
                "bot.B.name: no entry -> \"B\"",
                "bot.B.user-agents: no entry -> [\"B\"]",
            ]
        );
        assert_eq!(
            changes(&format!("{a}{b}"), b),
            [
                "bot: [\"A\", \"B\"] -> [\"B\"]",
                "bot.A.enforcement: \"report\" -> no entry",
                "bot.A.name: \"A\" -> no entry",
            ]
        );
        assert_eq!(
            changes(&a.replace("enforcement = \"report\"\n", ""), a),
            ["bot.A.enforcement: default -> \"report\""]
        );
        let tunnel = "[[https.tunnel]]\nhost = \"a.example\"\nreason = \"r\"\n";
        assert_eq!(
            changes("", tunnel),
            [
                "https.tunnel: default -> [\"a.example\"]",
                "https.tunnel.a.example.host: no entry -> \"a.example\"",
                "https.tunnel.a.example.reason: no entry -> \"r\"",
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
