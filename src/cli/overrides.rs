//! The sources of a configuration in addition to its file: `--set`, and environment variables.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::config::{ConfigError, Setting, Sources};

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
