//! The environment that defaults depend on: where state is kept, and the number of cores.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

/// The values that the built-in defaults depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The directory for state, such as the files of the certificate authority.
    pub state_dir: PathBuf,
    /// Number of cores that this process may use.
    pub cores: usize,
}

// === impl Environment ===

impl Environment {
    /// Returns the environment of this process.
    pub fn of_process() -> Self {
        Self::from_vars(|name| std::env::var_os(name))
    }

    /// Builds the environment from the variables that `var` returns. The directory for state is the first of these that
    /// is set:
    ///
    /// - the first directory of `STATE_DIRECTORY`, which systemd sets
    /// - `XDG_STATE_HOME/robotgate`
    /// - `HOME/.local/state/robotgate`
    /// - `/var/lib/robotgate`
    ///
    /// Empty and relative values are ignored, as the XDG specification asks.
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let directory = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let systemd = || {
            std::env::split_paths(&var("STATE_DIRECTORY")?)
                .next()
                .filter(|path| path.is_absolute())
        };
        let state_dir = systemd()
            .or_else(|| Some(directory("XDG_STATE_HOME")?.join("robotgate")))
            .or_else(|| Some(directory("HOME")?.join(".local/state/robotgate")))
            .unwrap_or_else(|| PathBuf::from("/var/lib/robotgate"));
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self { state_dir, cores }
    }
}

/// Returns this machine's name, or 127.0.0.1 if that name is not a valid host name.
pub fn host_name() -> String {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match !node.is_empty() && node != "(none)" && node.bytes().all(is_name) {
        true => node,
        false => "127.0.0.1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_most_specific_state_directory_is_used() {
        let cases: [(&[(&str, &str)], &str); 7] = [
            (&[], "/var/lib/robotgate"),
            (&[("HOME", "/home/a")], "/home/a/.local/state/robotgate"),
            (&[("HOME", "/home/a"), ("XDG_STATE_HOME", "/s")], "/s/robotgate"),
            (
                &[("XDG_STATE_HOME", "/s"), ("STATE_DIRECTORY", "/var/lib/rg")],
                "/var/lib/rg",
            ),
            (&[("STATE_DIRECTORY", "/var/lib/rg:/var/lib/other")], "/var/lib/rg"),
            (
                &[("HOME", "/home/a"), ("XDG_STATE_HOME", "relative")],
                "/home/a/.local/state/robotgate",
            ),
            (&[("HOME", ""), ("STATE_DIRECTORY", "")], "/var/lib/robotgate"),
        ];
        for (vars, expected) in cases {
            let environment =
                Environment::from_vars(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()));
            assert_eq!(environment.state_dir, Path::new(expected), "{vars:?}");
        }
    }
}
