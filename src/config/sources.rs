//! Where a configuration comes from: a file, environment variables, and the option `--set`. If two of them set the same
//! key, the later one in this order wins.
//!
//! This module reads neither the file nor the environment.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use super::ConfigError;
use crate::trust::shell_option;

/// The sources of a configuration. Each reload reads the same sources again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// The settings that replace those of the file, in ascending order of precedence.
    overrides: Vec<Override>,
}

/// One key that an environment variable or `--set` sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Override {
    /// The name of the variable, or `--set`.
    pub name: Arc<str>,
    pub setting: Setting,
}

/// A key and its value, such as `proxy.listen=0.0.0.0:3128`. The value is TOML, or a text without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub(super) key: String,
    pub(super) value: String,
}

/// The argument of a `--set` is not a key and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write KEY=VALUE with a key of the configuration file, like proxy.listen=0.0.0.0:3128; [[bot]] and other lists can \
     only be set as a whole"
)]
pub struct BadSetting;

// === impl Sources ===

impl Sources {
    /// Collects the sources: `file`, or the one that [`FILE_VARIABLE`] names; the variables that begin with
    /// [`SET_PREFIX`]; and `set`. If `set` has a key twice, the last value wins.
    ///
    /// # Errors
    /// Fails if one of these variables is empty, or if one that sets a key is not UTF-8. An empty variable is usually a
    /// mistake in a template, and ignoring it could allow what the operator wanted to forbid.
    pub fn new(
        file: Option<PathBuf>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        set: &[Setting],
    ) -> Result<Self, ConfigError> {
        let mut named = None;
        let mut overrides = Vec::new();
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| is_ours(name)) else {
                continue;
            };
            if value.is_empty() {
                return Err(ConfigError::Variable {
                    name: name.to_owned(),
                    problem: "is empty; give it a value, or unset it",
                });
            }
            let Some(key) = name.strip_prefix(SET_PREFIX) else {
                named = Some(PathBuf::from(value));
                continue;
            };
            let value = value.into_string().map_err(|_| ConfigError::Variable {
                name: name.to_owned(),
                problem: "is not UTF-8; give it a value in UTF-8",
            })?;
            let key = key.to_ascii_lowercase().replace("__", ".").replace('_', "-");
            let name = name.into();
            let setting = Setting { key, value };
            overrides.push(Override { name, setting });
        }
        // A variable that sets a whole table must come before the variables for its keys, so that it does not overwrite
        // them.
        overrides.sort_by(|one, other| one.setting.key.cmp(&other.setting.key));
        overrides.extend(set.iter().map(|setting| Override {
            name: SET_OPTION.into(),
            setting: setting.clone(),
        }));
        Ok(Self {
            file: file.or(named),
            overrides,
        })
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(super) fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// Returns the arguments of `--set`, in order.
    pub fn set(&self) -> impl Iterator<Item = &Setting> {
        let set = self.overrides.iter().filter(|set| &*set.name == SET_OPTION);
        set.map(|set| &set.setting)
    }

    /// Returns `--config FILE` and each `--set`, each with a space before it, for a suggested command. Leaves out the
    /// environment variables, which the command reads itself if it runs in the same environment.
    pub fn options(&self) -> String {
        let file = self
            .file
            .iter()
            .map(|file| shell_option("config", &file.to_string_lossy()));
        let set = self.set().map(|setting| shell_option("set", &setting.to_string()));
        file.chain(set).collect()
    }

    /// Describes the sources for a message: usually by the path of the file.
    pub fn name(&self) -> String {
        match (&self.file, self.overrides.is_empty()) {
            (Some(file), _) => file.display().to_string(),
            (None, false) => "the configuration without a file".to_owned(),
            (None, true) => "the built-in configuration".to_owned(),
        }
    }
}

impl From<&Path> for Sources {
    fn from(file: &Path) -> Self {
        Self {
            file: Some(file.to_owned()),
            overrides: Vec::new(),
        }
    }
}

// === impl Setting ===

impl FromStr for Setting {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Self, BadSetting> {
        let (key, value) = text.split_once('=').ok_or(BadSetting)?;
        let key = key.trim();
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match !key.is_empty() && key.chars().all(is_key) {
            true => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            false => Err(BadSetting),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The prefix `ROBOTGATE_` alone would not be enough: for a service that is called `robotgate`, Kubernetes sets
/// variables that begin with it.
fn is_ours(name: &str) -> bool {
    name == FILE_VARIABLE || name.starts_with(SET_PREFIX)
}

/// The environment variable that names the configuration file, for commands without `--config`.
pub const FILE_VARIABLE: &str = "ROBOTGATE_CONFIG";
/// The prefix of environment variables that set a key. For example, `ROBOTGATE_SET_PROXY__IDLE_TIMEOUT` sets
/// `proxy.idle-timeout`.
pub const SET_PREFIX: &str = "ROBOTGATE_SET_";
const SET_OPTION: &str = "--set";

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(variables: &[(&str, &str)], set: &[&str]) -> Result<Sources, String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let set: Vec<Setting> = set.iter().map(|text| text.parse().unwrap()).collect();
        Sources::new(None, variables, &set).map_err(|error| error.to_string())
    }

    #[test]
    fn names_of_variables_become_keys() {
        let sources = sources(
            &[
                ("ROBOTGATE_SET_PROXY__IDLE_TIMEOUT", "30s"),
                ("ROBOTGATE_SET_BOT", "[]"),
                ("ROBOTGATE_SET_PROXY", "{}"),
                ("ROBOTGATE_CONFIG", "/etc/a.toml"),
                ("ROBOTGATE_PORT_3128_TCP_ADDR", "10.0.0.1"),
                ("ROBOTGATE_SERVICE_HOST", ""),
            ],
            &["proxy.name=a=b"],
        )
        .unwrap();
        let overrides = sources.overrides().iter();
        let overrides: Vec<_> = overrides.map(|set| format!("{} {}", set.name, set.setting)).collect();
        assert_eq!(
            overrides,
            [
                "ROBOTGATE_SET_BOT bot=[]",
                "ROBOTGATE_SET_PROXY proxy={}",
                "ROBOTGATE_SET_PROXY__IDLE_TIMEOUT proxy.idle-timeout=30s",
                "--set proxy.name=a=b",
            ]
        );
        assert_eq!(sources.file(), Some(Path::new("/etc/a.toml")));
    }

    #[test]
    fn the_option_wins_over_the_variable_that_names_the_file() {
        let variables = [("ROBOTGATE_CONFIG".into(), "a.toml".into())];
        let sources = Sources::new(Some("b.toml".into()), variables, &[]).unwrap();
        assert_eq!(sources.file(), Some(Path::new("b.toml")));
    }

    #[test]
    fn empty_variables_are_errors() {
        for name in ["ROBOTGATE_CONFIG", "ROBOTGATE_SET_IDENTITY__REQUIRED"] {
            assert_eq!(
                sources(&[(name, "")], &[]),
                Err(format!(
                    "the environment variable {name} is empty; give it a value, or unset it"
                ))
            );
        }
    }

    #[test]
    fn a_setting_is_a_key_and_a_value() {
        for bad in ["proxy.listen", "=x", "[proxy]\nname=x", "a b=c", "\"a\"=c"] {
            assert_eq!(bad.parse::<Setting>(), Err(BadSetting), "{bad}");
        }
    }
}
