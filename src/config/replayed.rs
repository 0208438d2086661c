//! Reads the stored text of an old configuration, to decide requests of that time again.

use toml::{Table, Value};

use super::{Config, ConfigError};

impl Config {
    /// Reads the canonical text of a configuration, but none of the files that it names. If this version does not
    /// accept the whole text, reads only the parts on which decisions depend. Everything else then has its default.
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
            // A replay needs only these two keys: they say which parts of URLs and User-Agents the log lacks.
            audit.retain(|key: &str, _| key == "redact-query" || key == "user-agent");
        }
        if let Some(Value::Table(identity)) = table.get_mut("identity") {
            // The log says which bot sent each request, so a replay requires no credentials.
            identity.remove("required");
        }
        if let Some(Value::Array(bots)) = table.get_mut("bot") {
            for bot in bots.iter_mut().filter_map(Value::as_table_mut) {
                bot.retain(|key: &str, _| !PROOFS.contains(&key));
            }
        }
        Self::parse_alone(NAME, &table.to_string())
    }
}

/// The name of the text in errors.
const NAME: &str = "the stored configuration";
/// The sections on which decisions and their log lines depend.
const SECTIONS: [&str; 7] = ["https", "robots", "audit", "identity", "pace", "usage", "bot"];
const HTTPS: [&str; 3] = ["mode", "unverifiable", "tunnel"];
const PROOFS: [&str; 3] = ["credentials", "certificates", "networks"];
