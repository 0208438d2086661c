//! `conf/robotgate.toml` must load, and say the truth about every default.

use robotgate::config::Config;

use super::{environment, good, parse};

const EXAMPLE: &str = include_str!("../../../conf/robotgate.toml");

/// The example with every default written out: the lines that begin with `#` and a key.
fn uncommented() -> String {
    let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_loads() {
    let config = good(EXAMPLE);
    assert_eq!(config.bots.len(), 2);
    assert_eq!(config.expect.len(), 1);
}

#[test]
fn the_defaults_in_the_example_are_the_defaults() {
    let written = good(&uncommented());
    assert_eq!(written, good(EXAMPLE));
    let built_in = Config::built_in(&environment());
    let (bots, expect) = (written.bots.clone(), written.expect.clone());
    assert_eq!(
        written,
        Config {
            bots,
            expect,
            ..built_in
        }
    );
}

#[test]
fn the_example_shows_every_key() {
    let shown: toml::Table = uncommented().parse().unwrap();
    for section in [
        "", "proxy", "https", "robots", "cache", "egress", "audit", "identity", "bot", "expect",
    ] {
        let header = match section {
            "" => String::new(),
            "bot" | "expect" => format!("[[{section}]]"),
            _ => format!("[{section}]"),
        };
        let table = match shown.get(section) {
            Some(toml::Value::Array(list)) => list[0].as_table().unwrap(),
            Some(table) => table.as_table().unwrap(),
            None => &shown,
        };
        for key in known_keys(&header) {
            let shown_in_words = key == "tunnel" && EXAMPLE.contains("[[https.tunnel]]")
                || key == "path" && EXAMPLE.contains("# path = ");
            assert!(
                table.contains_key(&key) || shown_in_words,
                "{header} {key} is not in the example"
            );
        }
    }
}

/// What the error for an unknown key says are the known ones.
fn known_keys(header: &str) -> Vec<String> {
    let error = parse(&format!("{header}\nqqqqqqqqqqqq = 1")).unwrap_err().to_string();
    let line = error.lines().next().unwrap();
    let keys = line
        .split_once("the keys here are ")
        .map_or_else(|| panic!("{error}"), |(_, keys)| keys);
    keys.replace(" and ", ", ").split(", ").map(str::to_owned).collect()
}
