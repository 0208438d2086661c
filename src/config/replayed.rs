//! Reads the stored text of a configuration, for replaying decisions.

use std::path::Path;

use toml::{Table, Value};

use super::{Config, ConfigError, Environment};

impl Config {
    /// Reads the settings that decisions depend on from the canonical text of a configuration. All other settings have
    /// their defaults, so no certificate and no secret is read.
    ///
    /// # Errors
    /// If this version does not accept the text.
    pub fn for_replay(text: &str) -> Result<Self, ConfigError> {
        let mut table: Table = text.parse().unwrap_or_default();
        table.retain(|section: &str, _| SECTIONS.contains(&section));
        if let Some(Value::Table(https)) = table.get_mut("https") {
            https.retain(|key: &str, _| HTTPS.contains(&key));
        }
        if let Some(Value::Table(identity)) = table.get_mut("identity") {
            // A replay takes the sender of a request from the log.
            identity.remove("required");
        }
        if let Some(Value::Array(bots)) = table.get_mut("bot") {
            for bot in bots.iter_mut().filter_map(Value::as_table_mut) {
                bot.retain(|key: &str, _| !PROOFS.contains(&key));
            }
        }
        let environment = Environment::of_process();
        let text = table.to_string();
        Self::parse_by(&environment, "the stored configuration", &text, Path::new("/"), false)
    }
}

/// The sections that decisions depend on.
const SECTIONS: [&str; 5] = ["https", "robots", "identity", "pace", "bot"];
const HTTPS: [&str; 3] = ["mode", "unverifiable", "tunnel"];
const PROOFS: [&str; 3] = ["credentials", "certificates", "networks"];
