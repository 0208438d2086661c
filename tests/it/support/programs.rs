//! Finds out whether the programs are installed that some tests start. They are optional on a developer's machine and
//! required in CI.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// Skips the test, with a message, if one of the programs or Python modules (such as `python3-httpx`) is not installed.
/// If the environment variable `CI` is set, fails the test instead.
macro_rules! needs {
    ($($program:literal),+) => {
        if $crate::support::programs::is_missing(&[$($program),+]) {
            return;
        }
    };
}
pub(crate) use needs;

/// Returns whether one of the programs or Python modules is not installed.
pub fn is_missing(programs: &[&str]) -> bool {
    let Some(missing) = programs.iter().find(|program| !is_there(program)) else {
        return false;
    };
    assert!(
        env::var_os("CI").is_none(),
        "{missing} is not installed; the README's test command installs it"
    );
    eprintln!("SKIPPED: {missing} is not installed; the README's test command installs it");
    true
}

fn is_there(program: &str) -> bool {
    // Searches fixed folders, because the tests start programs from these, whatever the PATH of the caller is.
    let found = |name: &str| {
        ["/usr/bin", "/bin", "/usr/sbin"]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    match program.strip_prefix("python3-") {
        None => found(program),
        Some(module) => {
            let import = format!("import {module}");
            let mut python = Command::new("/usr/bin/python3");
            let quietly = python.args(["-c", &import]).stdout(Stdio::null()).stderr(Stdio::null());
            quietly.status().is_ok_and(|status| status.success())
        }
    }
}

#[test]
fn installed_programs_are_found() {
    assert!(is_there("sh") && !is_there("no-such-program") && !is_there("python3-no_such_module"));
}
