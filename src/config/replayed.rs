//! Reads the stored text of an old configuration, to decide requests of that time again.

use toml::{Table, Value};

use super::{Config, ConfigError};

impl Config {
    /// Reads the canonical text of a configuration, but none of the files that it names. If this version of robotgate
    /// does not accept the whole text, reads only the parts on which decisions depend.
    ///
    /// # Errors
    /// Fails if this version does not accept even these parts.
    pub fn for_replay(text: &str) -> Result<Self, ConfigError> {
        if let Ok(config) = Self::parse_alone(NAME, text) {
            return Ok(config);
        }
        let mut table: Table = text.parse().unwrap_or_default();
        table.retain(|section: &str, _| SECTIONS.contains(&section));
        if let Some(Value::Table(https)) = table.get_mut("https") {
            https.retain(|key: &str, _| HTTPS.contains(&key));
        }
        if let Some(Value::Table(audit)) = table.get_mut("audit") {
            audit.retain(|key: &str, _| AUDIT.contains(&key));
        }
        if let Some(Value::Table(identity)) = table.get_mut("identity") {
            // The log says who sent a request, so a replay needs no credential.
            identity.remove(REQUIRED);
        }
        if let Some(Value::Array(bots)) = table.get_mut("bot") {
            for bot in bots.iter_mut().filter_map(Value::as_table_mut) {
                bot.retain(|key: &str, _| !PROOFS.contains(&key));
            }
        }
        Self::parse_alone(NAME, &table.to_string())
    }
}

const NAME: &str = "the stored configuration";
/// The sections on which decisions and their log lines depend.
const SECTIONS: [&str; 7] = ["https", "robots", "audit", "identity", "pace", "usage", "bot"];
const HTTPS: [&str; 3] = ["mode", "unverifiable", "tunnel"];
/// The keys that say which parts of URLs and User-Agents the log leaves out.
const AUDIT: [&str; 2] = ["redact-query", "user-agent"];
const REQUIRED: &str = "required";
const PROOFS: [&str; 3] = ["credentials", "certificates", "networks"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{
        super::{Environment, reading::all_keys},
        *,
    };

    #[test]
    fn every_key_is_either_read_or_left_out_on_purpose() {
        let keys = all_keys(&Environment::of_process());
        let names = |table: &str| -> BTreeSet<&str> {
            let keys = keys.iter().filter(|key| key.table == table);
            keys.map(|key| key.name).collect()
        };
        // Decisions do not depend on these sections, or the log contains their effect.
        let others = [
            "proxy", "refusals", "cache", "evidence", "fleet", "ftp", "egress", "admin", "expect",
        ];
        assert_eq!(names(""), SECTIONS.into_iter().chain(others).collect());
        let others = ["ca-certificate", "ca-key", "extra-roots", "upstream-http2"];
        assert_eq!(names("https"), HTTPS.into_iter().chain(others).collect());
        assert!(names("audit").is_superset(&AUDIT.into()), "{AUDIT:?}");
        assert!(names("identity").contains(REQUIRED));
        assert!(names("bot").is_superset(&PROOFS.into()), "{PROOFS:?}");
    }
}
