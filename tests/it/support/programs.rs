//! Programs that some tests start. A developer's machine need not have all of them; the one that decides on a change has to.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// Ends the test where one of the programs is not installed, or a Python module, as in `python3-httpx`. Says which. With the
/// environment variable `CI`, it fails instead.
macro_rules! needs {
    ($($program:literal),+) => {
        if $crate::support::programs::is_missing(&[$($program),+]) {
            return;
        }
    };
}
pub(crate) use needs;

/// Whether one is missing.
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
    // Where the tests look, whatever the PATH of who runs them.
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
fn a_program_is_there_or_not() {
    assert!(is_there("sh") && !is_there("no-such-program") && !is_there("python3-no_such_module"));
}
