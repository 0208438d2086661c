//! What environment variables and `--set` set, together with a file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use robotgate::config::{Config, ConfigError, Setting, Sources};

const FILE: &str =
    "[proxy]\nname = 'file'\nidle-timeout = '1s'\nread-timeout = '1s'\n[[bot]]\nname = 'A'\nuser-agents = ['A']\n";

fn sources(file: Option<&Path>, variables: &[(&str, &str)], set: &[&str]) -> Result<Sources, ConfigError> {
    let variables = variables
        .iter()
        .map(|(name, value)| (OsString::from(*name), OsString::from(*value)));
    let set: Vec<Setting> = set.iter().map(|text| text.parse().unwrap()).collect();
    Sources::new(file.map(Path::to_owned), variables, &set)
}

fn load(variables: &[(&str, &str)], set: &[&str]) -> Result<Config, ConfigError> {
    Config::load(&sources(None, variables, set)?)
}

fn canonical(set: &[&str]) -> String {
    let config = load(&[], set).unwrap_or_else(|error| panic!("{error}"));
    config.canonical.text().to_string()
}

fn error(set: &str) -> String {
    load(&[], &[set]).expect_err(set).to_string()
}

#[test]
fn options_override_the_environment_which_overrides_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    fs::write(&file, FILE).unwrap();
    let variables = [
        ("ROBOTGATE_SET_PROXY__IDLE_TIMEOUT", "2s"),
        ("ROBOTGATE_SET_PROXY__READ_TIMEOUT", "2s"),
        ("ROBOTGATE_CONFIG", "/nowhere.toml"),
    ];
    let set = ["proxy.read-timeout=3s", "proxy.read-timeout=4s", "robots.wait=4s"];
    let config = Config::load(&sources(Some(&file), &variables, &set).unwrap()).unwrap();
    assert_eq!(
        &**config.canonical.text(),
        "[[bot]]\nname = \"A\"\nuser-agents = [\"A\"]\n\n\
         [proxy]\nidle-timeout = \"2s\"\nname = \"file\"\nread-timeout = \"4s\"\n\n\
         [robots]\nwait = \"4s\"\n"
    );
    assert_eq!(config.proxy.read_timeout.as_secs(), 4);
    assert_eq!(config.bots.len(), 1, "the file's other sections are untouched");
}

#[test]
fn a_list_replaces_that_of_the_file_and_a_table_adds_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    fs::write(&file, FILE).unwrap();
    let set = [
        r#"bot=[{ name = "B", user-agents = ["B"] }, { name = "C", user-agents = ["C"] }]"#,
        "proxy={ via = false }",
    ];
    let config = Config::load(&sources(Some(&file), &[], &set).unwrap()).unwrap();
    let names: Vec<_> = config.bots.iter().map(|bot| &*bot.name).collect();
    assert_eq!(names, ["B", "C"]);
    assert_eq!((&*config.proxy.name, config.proxy.via), ("file", false));
}

#[test]
fn a_value_without_quotes_is_text_where_the_key_takes_text() {
    for (set, expected) in [
        ("proxy.listen=0.0.0.0:3128", "[proxy]\nlisten = \"0.0.0.0:3128\"\n"),
        ("proxy.listen=[::]:3128", "[proxy]\nlisten = \"[::]:3128\"\n"),
        ("proxy.name=\"a\"", "[proxy]\nname = \"a\"\n"),
        // TOML would read these values as a number, a date and a flag.
        ("cache.path=2027", "[cache]\npath = \"2027\"\n"),
        ("cache.path=2027-01-31", "[cache]\npath = \"2027-01-31\"\n"),
        ("cache.path=true", "[cache]\npath = \"true\"\n"),
        ("https.mode=tunnel", "[https]\nmode = \"tunnel\"\n"),
        ("robots.user-agent= a (b=c) ", "[robots]\nuser-agent = \"a (b=c)\"\n"),
        ("proxy.threads=0x10", "[proxy]\nthreads = 16\n"),
        ("proxy.via=false", "[proxy]\nvia = false\n"),
        ("cache.max-bytes=1048576", "[cache]\nmax-bytes = 1048576\n"),
        ("cache.max-bytes=1MiB", "[cache]\nmax-bytes = \"1MiB\"\n"),
        (
            "egress.ports=[80, \"8000-8999\"]",
            "[egress]\nports = [80, \"8000-8999\"]\n",
        ),
        (
            "audit.redact-query=[\"token\"]",
            "[audit]\nredact-query = [\"token\"]\n",
        ),
        ("pace={}", "[pace]\n"),
    ] {
        assert_eq!(canonical(&[set]), expected, "{set}");
    }
}

#[test]
fn a_canonical_text_with_overrides_can_be_read_again() {
    let text = canonical(&["cache.path=2027", "https.mode=tunnel"]);
    let again = Config::parse("canonical", &text, Path::new("/")).expect("valid");
    assert_eq!(&**again.canonical.text(), text);
}

#[test]
fn a_mistake_in_an_override_gets_the_usual_error_with_its_source() {
    for (set, first_line) in [
        (
            "proxy.lisen=1",
            "--set: proxy.lisen: there is no such key; did you mean \"listen\"?",
        ),
        (
            "proxi.listen=1",
            "--set: proxi: there is no such key; did you mean \"proxy\"?",
        ),
        (
            "proxy.listen=0.0.0.0",
            "--set: proxy.listen: \"0.0.0.0\" has no port; write \"0.0.0.0:3128\"",
        ),
        (
            "proxy.threads=many",
            "--set: proxy.threads: found the string \"many\", but expected a whole number",
        ),
        (
            "proxy.idle-timeout=30",
            "--set: proxy.idle-timeout: 30 has no unit; write \"30s\" if you mean seconds",
        ),
        (
            "https.mode=tunel",
            "--set: https.mode: \"tunel\" is not one of the choices; write \"intercept\", \"tunnel\" or \"refuse\"",
        ),
        (
            "egress.allow=10.0.0.0/8",
            "--set: egress.allow: this key takes a list, even for one value; write [\"10.0.0.0/8\"]",
        ),
        (
            "proxy=3",
            "--set: proxy: found the number 3, but expected a table in braces, like { key = value }",
        ),
        (
            "proxy.name=",
            "--set: the value is missing; write \"\" for an empty text",
        ),
        (
            "proxy.name=\"a",
            "--set: this is not TOML: invalid basic string, expected `\"`",
        ),
        (
            "proxy.listen=[\"a\"",
            "--set: this is not TOML: unclosed array, expected `]`",
        ),
        (
            "a..b=1",
            "--set: a: there is no such key; the keys here are proxy, https, robots, refusals, cache, evidence, fleet, ftp, egress, pace, usage, audit, admin, identity, bot and expect",
        ),
    ] {
        assert_eq!(error(set).lines().next(), Some(first_line), "{set}");
    }
    assert_eq!(
        error("proxy.lisen=1"),
        "--set: proxy.lisen: there is no such key; did you mean \"listen\"?\n      | proxy.lisen=1\n      |       ^^^^^"
    );
    let of_variable = load(&[("ROBOTGATE_SET_PROXY__THREADS", "0")], &[])
        .unwrap_err()
        .to_string();
    assert!(
        of_variable.starts_with("ROBOTGATE_SET_PROXY__THREADS: proxy.threads: 0 threads is out of range"),
        "{of_variable}"
    );
}

#[test]
fn a_password_in_an_override_is_not_quoted() {
    let error = error("fleet.url=redis://gate:hidden@redis.example");
    assert!(error.contains("fleet.url") && !error.contains("hidden"), "{error}");
}

#[test]
fn mistakes_in_the_file_and_in_overrides_are_listed_together() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    fs::write(&file, "[proxy]\nthread = 1\n[audit]\nstdout = true\n").unwrap();
    let variables = [("ROBOTGATE_SET_ROBOTS__WAIT", "soon")];
    let error = Config::load(&sources(Some(&file), &variables, &["audit.path=audit.jsonl"]).unwrap());
    let error = error
        .unwrap_err()
        .to_string()
        .replace(&file.display().to_string(), "FILE");
    let lines: Vec<_> = error.lines().step_by(3).collect();
    assert_eq!(
        lines,
        [
            "FILE:2:1: proxy.thread: there is no such key; did you mean \"threads\"?",
            "FILE:4:10: audit.stdout: the log can go to one place only; remove either this key or audit.path",
            "ROBOTGATE_SET_ROBOTS__WAIT: robots.wait: \"soon\" is not a duration; write a number and a unit, like \"24h\" or \
             \"5m 30s\"",
        ]
    );
}

#[test]
fn relative_paths_start_at_the_folder_of_the_file_or_at_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    fs::write(&file, "cache.path = 'a.redb'\n").unwrap();
    let config = Config::load(&sources(Some(&file), &[], &["evidence.path=b.redb"]).unwrap()).unwrap();
    assert_eq!(config.cache.path, Some(folder.path().join("a.redb")));
    let here = std::env::current_dir().unwrap().join("b.redb");
    assert_eq!(config.evidence.map(|evidence| evidence.path), Some(here));
}

#[test]
fn without_sources_the_configuration_is_the_built_in_one() {
    let config = load(&[], &[]).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(&**config.canonical.text(), "");
}
