//! `conf/robotgate.toml` must load, and every default in it must be the real one. The presets next to it must have
//! their intended effect.

use std::path::Path;
use std::time::Duration;

use robotgate::config::{Config, Sources};
use robotgate::copy::{Policy, Then, Unreachable, WithoutCopy};
use robotgate::pace::{CrawlDelay, Policy as Pace};

use super::{environment, good, parse};

const EXAMPLE: &str = include_str!("../../../conf/robotgate.toml");
const CACHED_COPY: &str = include_str!("../../../conf/rfc9309-cached-copy.toml");
const POLITE: &str = include_str!("../../../conf/polite.toml");
const TWELVE_HOURS: &str = include_str!("../../../conf/google-12-hours.toml");

/// Uncomments every default in the example.
pub(super) fn uncommented() -> String {
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
    let parsed = good(&uncommented());
    assert_eq!(parsed, good(EXAMPLE));
    let built_in = Config::built_in(&environment());
    let (bots, expect) = (parsed.bots.clone(), parsed.expect.clone());
    assert_eq!(
        parsed,
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
        "",
        "proxy",
        "https",
        "robots",
        "robots.unreachable",
        "refusals",
        "cache",
        "evidence",
        "fleet",
        "ftp",
        "egress",
        "usage",
        "audit",
        "admin",
        "identity",
        "bot",
        "expect",
    ] {
        let header = match section {
            "" => String::new(),
            "bot" | "expect" => format!("[[{section}]]"),
            _ => format!("[{section}]"),
        };
        let table = section
            .split('.')
            .filter(|key| !key.is_empty())
            .fold(&shown, |table, key| match &table[key] {
                toml::Value::Array(list) => list[0].as_table().unwrap(),
                table => table.as_table().unwrap(),
            });
        for key in known_keys(&header) {
            let no_default = matches!(
                (section, &*key),
                ("audit", "path" | "mask-client")
                    | ("evidence", "seal-origin")
                    | (
                        "fleet",
                        "url" | "username-file" | "password-file" | "ca-file" | "key-file" | "size"
                    )
                    | ("admin", "token-file")
                    | ("identity", "credentials")
                    | ("expect", "purpose")
                    | (
                        "bot",
                        "credentials" | "certificates" | "networks" | "delay" | "exempt-hosts" | "purposes"
                    )
            );
            let shown_in_words = key == "tunnel" && EXAMPLE.contains("[[https.tunnel]]")
                || section.is_empty() && key == "pace" && EXAMPLE.contains("[pace]")
                || section == "proxy" && key == "tls" && EXAMPLE.contains("[proxy.tls]")
                || section == "egress" && key == "ports" && EXAMPLE.contains("# ports = ")
                || no_default && EXAMPLE.contains(&format!("\n# {key} = "));
            assert!(
                table.contains_key(&key) || shown_in_words,
                "conf/robotgate.toml lacks a line `#{key} = DEFAULT` under {header}. If the key has no default, write \
                 `# {key} = EXAMPLE`, and add the key to `no_default` in this test"
            );
        }
    }
}

/// Returns the lines that a comment in the example shows, from `header` on.
fn commented(header: &str) -> String {
    let start = EXAMPLE.find(&format!("#     {header}")).unwrap();
    let lines = EXAMPLE[start..].lines().map_while(|line| line.strip_prefix("#     "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_shows_how_to_listen_with_tls() {
    let shown: toml::Table = commented("[proxy.tls]").parse().unwrap();
    let shown = shown["proxy"]["tls"].as_table().unwrap();
    for key in known_keys("[proxy.tls]") {
        assert!(shown.contains_key(&key), "{key}");
    }
}

#[test]
fn the_example_shows_every_key_of_pace_with_its_default() {
    let text = commented("[pace]");
    let shown: toml::Table = text.parse().unwrap();
    for key in known_keys("[pace]") {
        assert!(shown["pace"].as_table().unwrap().contains_key(&key), "{key}");
    }
    let shown = good(&text).pace.unwrap();
    assert_eq!(shown.concurrency, Some(8), "an example: the default is none");
    let expected = Pace {
        concurrency: None,
        ..shown
    };
    assert_eq!(good("[pace]").pace, Some(expected));
    assert_eq!(good("").pace, None);
}

#[test]
fn the_polite_preset_limits_the_pace_and_nothing_else() {
    let mut config = good(POLITE);
    let polite = Pace {
        delay: Duration::from_secs(1),
        concurrency: Some(1),
        crawl_delay: CrawlDelay::Enforce,
        ..Pace::default()
    };
    assert_eq!(config.pace.take(), Some(polite));
    assert_eq!(config, Config::built_in(&environment()));
}

#[test]
fn the_presets_change_only_the_unreachable_settings() {
    for (preset, deny_for, without_copy) in [
        (CACHED_COPY, Duration::ZERO, WithoutCopy::Deny),
        (TWELVE_HOURS, Duration::from_secs(12 * 60 * 60), WithoutCopy::Allow),
    ] {
        let mut config = good(preset);
        let unreachable = Unreachable {
            deny_for,
            then: Then::LastCopy,
            without_copy,
            ..Unreachable::default()
        };
        let policy = Policy {
            unreachable,
            ..Policy::default()
        };
        assert_eq!(config.robots.policy, policy, "{preset}");
        config.robots.policy.unreachable = Unreachable::default();
        assert_eq!(config, Config::built_in(&environment()), "{preset}");
    }
}

#[test]
fn the_presets_state_every_key_even_if_it_is_the_default() {
    for preset in [CACHED_COPY, TWELVE_HOURS] {
        let parsed: toml::Table = preset.parse().unwrap();
        let section = parsed["robots"]["unreachable"].as_table().unwrap();
        for key in ["deny-for", "then", "without-copy"] {
            assert!(section.contains_key(key), "{key} is not in {preset}");
        }
    }
}

#[test]
fn every_shipped_configuration_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf");
    for entry in folder.read_dir().unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        Config::load(&Sources::from(&*file)).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Returns the known keys, as the error for an unknown key lists them.
fn known_keys(header: &str) -> Vec<String> {
    let error = parse(&format!("{header}\nqqqqqqqqqqqq = 1")).unwrap_err().to_string();
    let line = error.lines().next().unwrap();
    let keys = line
        .split_once("the keys here are ")
        .map_or_else(|| panic!("{error}"), |(_, keys)| keys);
    keys.replace(" and ", ", ").split(", ").map(str::to_owned).collect()
}
