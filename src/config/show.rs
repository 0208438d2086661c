//! Writes the configuration in force as TOML. A comment after each value says where the value comes from.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::Config;
use super::checker::Reads;
use super::environment::Environment;
use super::error::{ConfigError, Problems};
use super::keys::{Key, Kind, Recording};
use super::reading::Reading;
use super::sources::Sources;
use super::text::{SourceText, TextSource, to_table};

// === impl Config ===

impl Config {
    /// Returns every key that has a value, without secrets, as TOML that means the same as the sources.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or the configuration is invalid.
    pub fn show(sources: &Sources) -> Result<String, ConfigError> {
        Self::show_in(&Environment::of_process(), &SourceText::load(sources)?)
    }

    fn show_in(environment: &Environment, text: &SourceText) -> Result<String, ConfigError> {
        let reading = Reading::of(environment, text, Reads::NoSecrets, Recording::Requested);
        if !reading.complaints.is_empty() {
            let problems = Problems::new(text, &reading.document, reading.complaints);
            return Err(ConfigError::Invalid(problems));
        }
        let shown = Shown {
            keys: &reading.keys,
            set: to_table(&reading.document),
            text,
        };
        let mut out = String::new();
        shown.table("", None, &mut out);
        Ok(out)
    }
}

struct Shown<'k> {
    keys: &'k [Key],
    /// What the sources set.
    set: Table,
    text: &'k SourceText,
}

// === impl Shown ===

impl Shown<'_> {
    fn table(&self, name: &str, entry: Option<usize>, out: &mut String) {
        let keys = || self.keys.iter().filter(|key| key.table == name && key.entry == entry);
        let lines: Vec<_> = keys().filter_map(|key| self.line(key)).collect();
        if !lines.is_empty() {
            let blank = if out.is_empty() { "" } else { "\n" };
            let [open, close] = if entry.is_some() { ["[[", "]]"] } else { ["[", "]"] };
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(out, "{blank}{open}{name}{close}");
        }
        for (setting, origin) in lines {
            let _ = writeln!(out, "{setting:WIDTH$}  # {origin}");
        }
        for key in keys() {
            let dotted = key.dotted();
            match key.kind {
                Kind::Table => self.table(&dotted, None, out),
                Kind::Tables => {
                    let entries = self.keys.iter().filter(|key| key.table == dotted);
                    let last = entries.filter_map(|key| key.entry).max();
                    (0..last.map_or(0, |last| last + 1)).for_each(|entry| self.table(&dotted, Some(entry), out));
                }
                _ => {}
            }
        }
    }

    fn line(&self, key: &Key) -> Option<(String, String)> {
        if matches!(key.kind, Kind::Table | Kind::Tables) {
            return None;
        }
        let Some(span) = &key.span else {
            let default = key.default.as_ref()?;
            return Some((format!("{} = {default}", key.name), "default".to_owned()));
        };
        let value = self.value(key)?;
        let origin = match self.text.source_of(span.start) {
            TextSource::File(file, line) => format!("{file}:{line}"),
            TextSource::Override(name) => name.to_string(),
        };
        Some((format!("{} = {value}", key.name), origin))
    }

    fn value(&self, key: &Key) -> Option<&Value> {
        let mut path = key.table.split('.').filter(|name| !name.is_empty());
        let table = path.try_fold(&self.set, |table, name| match table.get(name)? {
            Value::Array(entries) => entries.get(key.entry?)?.as_table(),
            value => value.as_table(),
        });
        table?.get(key.name)
    }
}

/// The width to which a key and its value are padded, so that the comments line up.
const WIDTH: usize = 39;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Setting;

    fn environment() -> Environment {
        Environment {
            state_dir: "/state".into(),
            cores: 4,
        }
    }

    fn show(text: &str, set: &[&str]) -> String {
        let set: Vec<Setting> = set.iter().map(|set| set.parse().unwrap()).collect();
        let variables = [("ROBOTGATE_SET_ROBOTS__WAIT".into(), "2s".into())];
        let sources = Sources::new(None, variables, &set).unwrap();
        let text = SourceText::new("a.toml", text, Path::new("/"), sources.overrides());
        Config::show_in(&environment(), &text).unwrap_or_else(|error| panic!("{error}"))
    }

    const FILE: &str = r##"
[proxy]
name = "gate" # a comment
tls = { listen = "127.0.0.1:1", certificate = "/c", key = "/k" }
[pace]
[audit.mask-client]
[https]
[[https.tunnel]]
host = "a.example"
reason = "# \"r\""
until = 2099-01-31
[[bot]]
name = "A"
user-agents = ["A"]
[[bot]]
name = "B"
user-agents = ["B"]
delay = "5s"
"##;

    #[test]
    fn each_value_is_shown_with_its_source() {
        let shown = show(FILE, &["proxy.idle-timeout=7s"]);
        for line in [
            "name = \"gate\"                            # a.toml:3",
            "idle-timeout = \"7s\"                      # --set",
            "wait = \"2s\"                              # ROBOTGATE_SET_ROBOTS__WAIT",
            "threads = 4                              # default",
            "ca-key = \"/state/ca-key.pem\"             # default",
            "reason = '# \"r\"'                         # a.toml:10",
            "max-wait = \"10s\"                         # default",
            "ipv4 = 24                                # default",
            "delay = \"5s\"                             # a.toml:18",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
        }
        assert_eq!(shown.matches("[[bot]]").count(), 2);
        assert_eq!(shown.matches("enforcement = \"enforce\"").count(), 3);
        assert!(!shown.contains("token-file"), "a key without a value is not shown");
    }

    #[test]
    fn the_shown_configuration_can_be_read_again_with_the_same_meaning() {
        for (text, set) in [
            ("", &[] as &[&str]),
            (FILE, &["proxy.idle-timeout=7s"]),
            (include_str!("../../conf/robotgate.toml"), &[]),
            ("", &["cache.persist=false"]),
            ("", &["cache.persist=false", "evidence.path=/e"]),
            ("", &["evidence.enabled=false"]),
            ("", &["audit.path=/log", "evidence.seal=true"]),
            ("", &["robots.max-ttl=1h", "robots.unreachable.retry-longest=10s"]),
            ("", &["robots.profile=rfc9309", "robots.unreachable.then=deny"]),
            ("", &["pace={}", "fleet.url=redis://localhost", "fleet.size=2"]),
        ] {
            let parse = |text: &str| {
                Config::parse_in(&environment(), "a.toml", text, Path::new("/")).unwrap_or_else(|e| panic!("{e}"))
            };
            let shown = show(text, set);
            // The test's own function `show` sets this key too, so set it here.
            let set = set.iter().chain(&["robots.wait=2s"]).map(|set| set.parse().unwrap());
            let sources = Sources::new(None, [], &set.collect::<Vec<_>>()).unwrap();
            let text = SourceText::new("a.toml", text, Path::new("/"), sources.overrides());
            let meant = Reading::of(&environment(), &text, Reads::NoSecrets, Recording::Nothing);
            let mut meant = meant.checked(&text).unwrap_or_else(|error| panic!("{error}"));
            let mut read = parse(&shown);
            // The line numbers in `[[expect]]` cases differ, so do not compare these cases.
            (meant.expect, read.expect) = (Vec::new(), Vec::new());
            assert_eq!(read, meant, "{shown}");
        }
    }
}
