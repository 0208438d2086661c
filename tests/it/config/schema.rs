//! Compares the JSON Schema of the configuration with the parser. A validator applies the schema.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use robotgate::config::Config;
use serde_json::{Value, json};

use super::{example, parse};
use crate::support::programs::needs;

/// Returns for each TOML document whether the schema accepts it.
fn accepted(documents: &[String]) -> Vec<bool> {
    let in_json = |text: &String| {
        json_of(
            text.parse::<toml::Table>()
                .unwrap_or_else(|e| panic!("{text}: {e}"))
                .into(),
        )
    };
    let input = json!({ "schema": Config::schema(), "documents": documents.iter().map(in_json).collect::<Vec<_>>() });
    let mut python = Command::new("/usr/bin/python3")
        .args(["-c", VALIDATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it is there");
    let mut stdin = python.stdin.take().expect("piped");
    stdin.write_all(input.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("a list")
}

/// Converts TOML to JSON as editors do: a date becomes text.
fn json_of(value: toml::Value) -> Value {
    match value {
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(json_of).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (key, json_of(value))).collect(),
        value => serde_json::to_value(value).unwrap(),
    }
}

const VALIDATOR: &str = "
import json, sys
from jsonschema import Draft202012Validator as Validator
given = json.load(sys.stdin)
Validator.check_schema(given['schema'])
validator = Validator(given['schema'])
print(json.dumps([validator.is_valid(document) for document in given['documents']]))
";

/// Calls `visit` with the dotted name of each key and its schema.
fn walk(schema: &Value, table: &str, visit: &mut impl FnMut(&str, &Value)) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let dotted = format!("{table}{}{name}", if table.is_empty() { "" } else { "." });
        visit(&dotted, property);
        let inner = if property["items"]["properties"].is_object() {
            &property["items"]
        } else {
            property
        };
        walk(inner, &dotted, visit);
    }
}

/// Returns a document in which the key has this value, and no other key is wrong.
fn with(dotted: &str, value: &str) -> String {
    let (table, key) = dotted.rsplit_once('.').unwrap_or(("", dotted));
    let (header, others) = match table {
        "" => (String::new(), &[][..]),
        "bot" => ("[[bot]]".to_owned(), &["name = 'A'", "user-agents = ['A']"][..]),
        "expect" => (
            "[[expect]]".to_owned(),
            &[
                "agent = 'A'",
                "url = 'http://a.example'",
                "robots = ''",
                "verdict = 'allow'",
            ][..],
        ),
        "https.tunnel" => (
            "[[https.tunnel]]".to_owned(),
            &["host = 'a.example'", "reason = 'r'", "until = 2099-01-31"][..],
        ),
        "proxy.tls" => (
            "[proxy.tls]".to_owned(),
            &["listen = '127.0.0.1:1'", "certificate = '/c'", "key = '/k'"][..],
        ),
        _ => (format!("[{table}]"), &[][..]),
    };
    let is_other = |line: &&&str| !line.starts_with(&format!("{key} = "));
    let others: Vec<&str> = others.iter().filter(is_other).copied().collect();
    format!("{header}\n{}\n{key} = {value}\n", others.join("\n"))
}

#[test]
fn every_shipped_configuration_is_valid_under_the_schema() {
    needs!("python3", "python3-jsonschema");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("conf");
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let mut documents: Vec<String> = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    documents.push(example::uncommented());
    for (document, is_accepted) in documents.iter().zip(accepted(&documents)) {
        assert!(is_accepted, "{document}");
    }
}

#[test]
fn wrong_values_fail_in_the_parser_and_under_the_schema() {
    needs!("python3", "python3-jsonschema");
    let mut documents = vec![
        "[proxi]".to_owned(),
        "[[bot]]\nname = 'A'".to_owned(),
        "[[proxy]]".to_owned(),
    ];
    walk(&Config::schema(), "", &mut |dotted, property| {
        // No key takes a list of lists.
        let mut wrong = vec!["[[]]".to_owned()];
        if property["enum"].is_array() || property["items"]["enum"].is_array() {
            wrong.extend(["'qqq'".to_owned(), "['qqq']".to_owned(), "1".to_owned()]);
        }
        if property["type"] == "boolean" {
            wrong.push("'true'".to_owned());
        }
        if let (Some(low), Some(high)) = (property["minimum"].as_i64(), property["maximum"].as_i64()) {
            wrong.extend([(low - 1).to_string(), (high + 1).to_string(), "'1'".to_owned()]);
        }
        if property["pattern"].is_string() {
            wrong.extend(["60", "'60'", "'h'", "'1.5h'", "'1 fortnight'"].map(str::to_owned));
        }
        documents.extend(wrong.iter().map(|value| with(dotted, value)));
        if property["additionalProperties"] == false {
            documents.push(format!("[{dotted}]\nqqqqqq = 1"));
        }
    });
    assert!(documents.len() > 200, "{}", documents.len());
    for (document, is_accepted) in documents.iter().zip(accepted(&documents)) {
        assert!(parse(document).is_err(), "the parser accepts {document}");
        assert!(!is_accepted, "the schema accepts {document}");
    }
}

#[test]
fn the_parser_and_the_schema_accept_limits_choices_and_defaults() {
    needs!("python3", "python3-jsonschema");
    let mut documents = Vec::new();
    walk(&Config::schema(), "", &mut |dotted, property| {
        let mut right: Vec<String> = Vec::new();
        right.extend(
            ["minimum", "maximum"]
                .iter()
                .filter_map(|limit| Some(property[limit].as_i64()?.to_string())),
        );
        right.extend(property["enum"].as_array().into_iter().flatten().map(Value::to_string));
        right.extend(property["default"].as_str().map(|default| format!("{default:?}")));
        documents.extend(right.iter().map(|value| with(dotted, value)));
    });
    assert!(documents.len() > 80, "{}", documents.len());
    for (document, is_accepted) in documents.iter().zip(accepted(&documents)) {
        // Some keys are valid only together with another key.
        let needs_another = ["without-copy", "[fleet]\n\nsize"]
            .iter()
            .any(|key| document.contains(key));
        assert!(
            needs_another || parse(document).is_ok(),
            "{document}: {:?}",
            parse(document)
        );
        assert!(is_accepted, "the schema refuses {document}");
    }
}

#[test]
fn the_dictionary_of_the_fuzz_target_has_every_key_and_no_other() {
    let mut keys = BTreeSet::new();
    walk(&Config::schema(), "", &mut |dotted, property| {
        let name = dotted.rsplit('.').next().unwrap();
        keys.insert(match (&property["properties"], &property["items"]["properties"]) {
            (Value::Object(_), _) => format!("[{dotted}]\\x0a"),
            (_, Value::Object(_)) => format!("[[{dotted}]]\\x0a"),
            _ => format!("\\x0a{name} = "),
        });
    });
    let lines = DICTIONARY
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    let listed = lines.filter(|line| line.ends_with("]\\x0a") || line.ends_with(" = "));
    let listed: BTreeSet<_> = listed.map(str::to_owned).collect();
    let differences: Vec<_> = listed.symmetric_difference(&keys).collect();
    assert!(
        differences.is_empty(),
        "tests/fuzz/config.dict lacks these, or has them without need: {differences:?}"
    );
}

const DICTIONARY: &str = include_str!("../../fuzz/config.dict");
