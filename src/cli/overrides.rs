//! The sources of a configuration in addition to its file: `--set`, and environment variables.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{
    config::{ConfigError, Setting, Sources},
    text::plain,
    trust::shell_word,
};

/// The keys that the command line sets.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Overrides {
    /// Set a key of the configuration, such as proxy.listen=0.0.0.0:3128 (repeatable). The value replaces the value in
    /// the file and in environment variables (ROBOTGATE_SET_PROXY__LISTEN)
    #[arg(long, value_name = "KEY=VALUE", global = true)]
    set: Vec<Setting>,
}

// === impl Overrides ===

impl Overrides {
    /// Returns the sources: `file`, or else the file that `ROBOTGATE_CONFIG` names; environment variables; and each
    /// `--set`.
    pub(super) fn sources(&self, file: Option<&Path>) -> Result<Sources, ConfigError> {
        Sources::new(file.map(PathBuf::from), env::vars_os(), &self.set)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

/// Returns `--config FILE` and each `--set`, for a suggested command. It reads the same environment variables.
pub(super) fn config_options(sources: &Sources) -> String {
    let mut options = String::new();
    if let Some(file) = sources.file() {
        options.push_str(&option("config", &file.to_string_lossy()));
    }
    options.extend(sources.set().map(|setting| option("set", &setting.to_string())));
    options
}

/// Returns an option and its value, quoted for a shell, with a space before them.
pub(super) fn option(name: &str, value: &str) -> String {
    // `robotgate env` prints the options in a shell comment, which a line break in a value would end.
    format!(" --{name} {}", shell_word(&plain(value, usize::MAX)))
}
