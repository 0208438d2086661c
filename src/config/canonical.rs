//! The text of a configuration in one fixed form, and its digest, by which the audit log names the configuration. The
//! text contains no secret, because secrets are in separate files.

use std::sync::Arc;

use toml::Table;

use crate::copy::Sha256;

/// Everything that is set in the configuration file, in environment variables or with `--set`, as TOML with sorted
/// keys, without comments and without defaults.
///
/// Two `Canonical` values always compare equal, even if their texts differ, so that [`Config`](super::Config)s with the
/// same meaning are equal.
#[derive(Clone, Debug)]
pub struct Canonical {
    text: Arc<str>,
    sha256: Sha256,
}

// === impl Canonical ===

impl Canonical {
    /// Returns the canonical form of a valid TOML text. An invalid text is treated like an empty one.
    pub fn of(text: &str) -> Self {
        Self::of_table(&text.parse().unwrap_or_default())
    }

    pub(super) fn of_table(table: &Table) -> Self {
        // Tables keep their keys sorted, and a table that was just parsed can always be written.
        let text: Arc<str> = toml::to_string(table).unwrap_or_default().into();
        Self {
            sha256: Sha256::of(text.as_bytes()),
            text,
        }
    }

    /// Returns the configuration as text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the SHA-256 of [`Canonical::text`].
    pub fn sha256(&self) -> Sha256 {
        self.sha256
    }
}

impl Default for Canonical {
    fn default() -> Self {
        Self::of("")
    }
}

impl PartialEq for Canonical {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, Environment};

    const WRITTEN: &str = r##"
# Where it listens.
proxy.listen = ["127.0.0.1:3128"]
[robots]
default-ttl = "24h" # a day
[https]
tunnel = [{ host = "bank.example", reason = "pins \"its\" certificate", until = 2099-12-31 }]
[[bot]]
name = "B"
user-agents = ['B/*']
exempt-hosts = ["a.example"]
[[bot]]
name = "A"
user-agents = ["A"]
[[expect]]
agent = "A"
url = "http://a.example/#é"
robots = """
User-agent: *
Disallow: /\tx
"""
verdict = "deny"
"##;

    /// Audit logs contain digests of such texts. So the form of these texts must not change, even if the `toml` crate
    /// changes.
    const CANONICAL: &str = r##"[[bot]]
exempt-hosts = ["a.example"]
name = "B"
user-agents = ["B/*"]

[[bot]]
name = "A"
user-agents = ["A"]

[[expect]]
agent = "A"
robots = """
User-agent: *
Disallow: /\tx
"""
url = "http://a.example/#é"
verdict = "deny"

[[https.tunnel]]
host = "bank.example"
reason = 'pins "its" certificate'
until = 2099-12-31

[proxy]
listen = ["127.0.0.1:3128"]

[robots]
default-ttl = "24h"
"##;

    fn parse(text: &str) -> Config {
        let environment = Environment::from_vars(|_| None);
        Config::parse_in(&environment, "robotgate.toml", text, Path::new("/etc")).expect(text)
    }

    #[test]
    fn the_canonical_text_has_one_form_and_means_the_same() {
        let mut config = parse(WRITTEN);
        assert_eq!(&**config.canonical.text(), CANONICAL);
        assert_eq!(config.canonical.sha256(), Sha256::of(CANONICAL.as_bytes()));
        let mut again = parse(CANONICAL);
        assert_eq!(again.canonical.text(), config.canonical.text());
        // The line numbers in `[[expect]]` cases differ, so compare only the robots.txt of the case.
        assert_eq!(again.expect[0].robots, config.expect[0].robots);
        config.expect.clear();
        again.expect.clear();
        assert_eq!(again, config);
    }

    #[test]
    fn the_order_of_keys_and_comments_do_not_change_the_digest() {
        let digest = |text| Canonical::of(text).sha256();
        let text = "[proxy]\nname = 'a'\nthreads = 2\n[cache]\nmax-bytes = '1MiB'\n";
        for same in [
            "cache.max-bytes = \"1MiB\" # small\n[proxy]\nthreads = 0x2\n\nname = \"\\u0061\"",
            "proxy = { threads = 2, name = 'a' }\ncache = { max-bytes = '1MiB' }",
        ] {
            assert_eq!(digest(same), digest(text), "{same}");
        }
        for other in [
            "[proxy]\nname = 'b'\nthreads = 2\n[cache]\nmax-bytes = '1MiB'\n",
            "[proxy]\nname = 'a'\nthreads = 2\n",
        ] {
            assert_ne!(digest(other), digest(text), "{other}");
        }
        assert_ne!(digest("egress.allow = ['a', 'b']"), digest("egress.allow = ['b', 'a']"));
    }

    #[test]
    fn the_built_in_configuration_has_the_empty_text() {
        let built_in = Config::built_in(&Environment::from_vars(|_| None));
        assert_eq!(&**built_in.canonical.text(), "");
        assert_eq!(built_in.canonical.sha256(), Sha256::of(b""));
        assert_eq!(parse("# nothing\n").canonical.sha256(), Sha256::of(b""));
    }
}
