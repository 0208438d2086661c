//! Writes the configuration file of a test: the defaults of all tests, merged with the test's own TOML.

use std::net::SocketAddr;

use toml::{Table, Value};

pub const FILE: &str = "robotgate.toml";
pub const AUDIT: &str = "audit.jsonl";
pub const CA_CERTIFICATE: &str = "ca.pem";
pub const CREDENTIALS: &str = "credentials";
pub const ORIGIN_ROOTS: &str = "origin-ca.pem";

/// The default configuration of the tests. Requests wait much longer for a robots.txt than in robotgate's own defaults,
/// so that none is refused because the machine is busy.
pub struct Config(Table);

impl Config {
    /// Merges `overrides` into the defaults. Leaves out the keys in `without`, such as `audit.path`.
    pub fn new(dns: SocketAddr, without: &[String], overrides: &str) -> Self {
        let text = format!(
            r#"
            [proxy]
            listen = "127.0.0.1:0"

            [admin]
            listen = "127.0.0.1:0"

            [audit]
            path = "{AUDIT}"

            [https]
            ca-certificate = "{CA_CERTIFICATE}"
            ca-key = "ca-key.pem"
            extra-roots = ["{ORIGIN_ROOTS}"]

            [robots]
            wait = "1m"

            [cache]
            path = "robots.redb"

            [egress]
            allow = ["127.0.0.0/8"]
            dns = ["{dns}"]
            "#
        );
        let mut table = parse(&text);
        for key in without {
            remove(&mut table, key);
        }
        merge(&mut table, parse(overrides));
        Self(table)
    }

    /// Returns the text of the file, with `overrides` merged into it.
    pub fn text(&self, overrides: &str) -> String {
        let mut table = self.0.clone();
        merge(&mut table, parse(overrides));
        table.to_string()
    }
}

fn parse(text: &str) -> Table {
    text.parse()
        .unwrap_or_else(|error| panic!("a test's own TOML is wrong: {error}"))
}

fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over),
            (_, value) => drop(under.insert(key, value)),
        }
    }
}

fn remove(table: &mut Table, key: &str) {
    match key.split_once('.') {
        None => drop(table.remove(key)),
        Some((section, rest)) => {
            if let Some(Value::Table(inner)) = table.get_mut(section) {
                remove(inner, rest);
            }
        }
    }
}
