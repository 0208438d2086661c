//! The JSON Schema of the configuration file, for editors. It is made from the keys that the parser records, and the
//! descriptions in docs/configuration.md.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Config;
use super::environment::Environment;
use super::keys::{Key, Kind};
use super::reading::all_keys;
use super::units;

// === impl Config ===

impl Config {
    /// Returns the JSON Schema (draft 2020-12) of the configuration file. A TOML type that JSON does not have, such as
    /// a date, is a `string`, as editors expect.
    pub fn schema() -> Value {
        // Leave out the defaults that depend on the machine: those that differ between two environments.
        let [keys, others] = [("/var/lib/robotgate", 1), ("/", 2)].map(|(state_dir, cores)| {
            all_keys(&Environment {
                state_dir: state_dir.into(),
                cores,
            })
        });
        let mut tables: BTreeMap<String, Vec<Key>> = BTreeMap::new();
        for (mut key, other) in keys.into_iter().zip(others) {
            key.default = key.default.filter(|default| Some(default) == other.default.as_ref());
            tables.entry(key.table.clone()).or_default().push(key);
        }
        let mut schema = object(&tables, "", &Descriptions::read(DOCUMENTATION));
        schema.insert(
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        schema.insert("title".to_owned(), "The configuration of robotgate".into());
        schema.into()
    }
}

fn object(tables: &BTreeMap<String, Vec<Key>>, name: &str, descriptions: &Descriptions<'_>) -> Map<String, Value> {
    let keys = tables.get(name).map(Vec::as_slice).unwrap_or_default();
    let properties = keys.iter().map(|key| {
        let dotted = key.dotted();
        let mut property = match key.kind {
            Kind::Table => object(tables, &dotted, descriptions),
            Kind::Tables => members(json!({ "type": "array", "items": object(tables, &dotted, descriptions) })),
            _ => members(value(&key.kind)),
        };
        if let Some(default) = key
            .default
            .as_ref()
            .and_then(|default| serde_json::to_value(default).ok())
        {
            property.insert("default".to_owned(), default);
        }
        if let Some(description) = descriptions.of(&dotted, &key.kind) {
            property.insert("description".to_owned(), description.into());
        }
        (key.name.to_owned(), Value::from(property))
    });
    let mut schema = members(json!({ "type": "object", "additionalProperties": false }));
    schema.insert("properties".to_owned(), Value::Object(properties.collect()));
    let required: Vec<_> = keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

fn value(kind: &Kind) -> Value {
    let text = || json!({ "type": "string" });
    let list = |items: Value| json!({ "type": "array", "items": items });
    match kind {
        Kind::Text | Kind::Date => text(),
        Kind::Texts => list(text()),
        Kind::TextOrTexts => json!({ "anyOf": [text(), list(text())] }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Words(words) => list(json!({ "enum": words })),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::FlagOrTexts => json!({ "anyOf": [{ "type": "boolean" }, list(text())] }),
        Kind::Number(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Numbers(numbers) => json!({ "enum": numbers }),
        Kind::Ports => {
            let port = json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX });
            list(json!({ "anyOf": [port, { "type": "string", "pattern": PORTS }] }))
        }
        Kind::Duration(_) => json!({ "type": "string", "pattern": units::duration_pattern() }),
        Kind::Size(_) => {
            let text = json!({ "type": "string", "pattern": units::size_pattern() });
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, text] })
        }
        // This arm is not used, because the function `object` makes the schema of a table.
        Kind::Table | Kind::Tables => json!({}),
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

struct Descriptions<'d>(BTreeMap<&'d str, Description<'d>>);

#[derive(Default)]
struct Description<'d> {
    text: String,
    /// The values that a key takes, in words. `None` for a section.
    values: Option<&'d str>,
}

// === impl Descriptions ===

impl<'d> Descriptions<'d> {
    /// Reads the documentation page: its tables of keys, and the first paragraph of each section.
    fn read(page: &'d str) -> Self {
        let mut descriptions = BTreeMap::new();
        let mut section = None;
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = heading.strip_prefix('`').map(|name| name.trim_matches(['`', '[', ']']));
            } else if let Some(name) = section.filter(|_| !line.is_empty() && !is_markup(line)) {
                let Description { text, .. } = descriptions.entry(name).or_default();
                text.push_str(if text.is_empty() { "" } else { " " });
                text.push_str(line);
            } else if line.is_empty() && section.is_some_and(|name| descriptions.contains_key(name)) {
                section = None;
            }
            let cells: Vec<&str> = line.split(" | ").collect();
            if let [keys, _, values, text, ..] = &*cells
                && let Some(keys) = keys.strip_prefix("| `").and_then(|keys| keys.strip_suffix('`'))
            {
                for key in keys.split("`, `") {
                    let (text, values) = ((*text).to_owned(), Some(*values));
                    descriptions.insert(key, Description { text, values });
                }
            }
        }
        Self(descriptions)
    }

    fn of(&self, key: &str, kind: &Kind) -> Option<String> {
        let Description { text, values } = self.0.get(key)?;
        let text = without_links(text);
        let values = match kind {
            Kind::Duration(range) | Kind::Size(range) => Some(&**range),
            Kind::Text | Kind::Texts | Kind::TextOrTexts | Kind::Date | Kind::Ports => *values,
            // For the other kinds, the schema lists the values in a form that editors read.
            _ => None,
        };
        Some(match values {
            Some(values) => format!("{text}\n\nValues: {}", without_links(values)),
            None => text,
        })
    }
}

fn is_markup(line: &str) -> bool {
    line.starts_with(['|', '#']) || line.starts_with("```")
}

fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, after)) = after.split_once(')') else {
            break;
        };
        // The text of a link can itself begin with a bracket, as in "[`[pace]`](#pace)".
        let open = before
            .rfind("[`[")
            .or_else(|| before.rfind('['))
            .filter(|_| !target.contains(' '));
        match open {
            Some(open) => plain.extend([&before[..open], &before[open + 1..]]),
            None => plain.extend([before, "](", target, ")"]),
        }
        rest = after;
    }
    plain + rest
}

const DOCUMENTATION: &str = include_str!("../../docs/configuration.md");
const PORTS: &str = "^\\s*[0-9]{1,5}\\s*(-\\s*[0-9]{1,5}\\s*)?$";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description_and_every_description_a_key() {
        let descriptions = Descriptions::read(DOCUMENTATION);
        let environment = Environment {
            state_dir: "/".into(),
            cores: 1,
        };
        let keys: Vec<String> = all_keys(&environment).iter().map(Key::dotted).collect();
        for key in &keys {
            assert!(
                descriptions.0.contains_key(&**key),
                "docs/configuration.md has no {key}"
            );
        }
        for described in descriptions.0.keys() {
            assert!(keys.iter().any(|key| key == described), "{described} is no key");
        }
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let environment = Environment {
            state_dir: "/".into(),
            cores: 1,
        };
        let mut compared = 0;
        for key in all_keys(&environment) {
            let dotted = key.dotted();
            let row = DOCUMENTATION
                .lines()
                .find(|line| line.starts_with(&format!("| `{dotted}` |")));
            let Some(documented) = row.and_then(|row| row.split(" | ").nth(1)) else {
                continue;
            };
            let literal = documented.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            let Some(literal) = literal.filter(|literal| !literal.contains('`')) else {
                continue;
            };
            let documented: toml::Table = format!("v = {literal}").parse().expect(&dotted);
            let in_time = |value: &toml::Value| value.as_str().and_then(|text| units::duration(text).ok());
            let default = key.default.unwrap_or_else(|| panic!("{dotted} has no default"));
            let is_same = documented["v"] == default
                || matches!(key.kind, Kind::Duration(_)) && in_time(&documented["v"]) == in_time(&default);
            assert!(
                is_same,
                "{dotted}: {literal} is documented, but the default is {default}"
            );
            compared += 1;
        }
        assert!(compared > 50, "{compared}");
    }

    #[test]
    fn a_section_is_described_by_its_whole_first_paragraph() {
        let page = "## `[x]`\n\nThe keys of\n`a` count.\n\nMore.\n\n## `[y]`\n\n```toml\n[y]\n```\n";
        let descriptions = Descriptions::read(page);
        assert_eq!(
            descriptions.of("x", &Kind::Table).as_deref(),
            Some("The keys of `a` count.")
        );
    }

    #[test]
    fn descriptions_have_no_links() {
        assert_eq!(
            without_links("see [below](#a), [`[pace]`](#pace) and `[80, \"x\"]` [x](y z) ]("),
            "see below, `[pace]` and `[80, \"x\"]` [x](y z) ]("
        );
    }
}
