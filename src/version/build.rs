//! Determines the version of this build for `src/version.rs`, such as `0.1.0 (abc1234, 2026-11-20) +static`.
//!
//! The environment variable `ROBOTGATE_COMMIT` names the commit. If it is not set, a release build asks git. A debug
//! build does not, because it would be built again after every commit. If the commit is not known, as in a tarball, the
//! version has no parentheses. The same commit always gives the same version.

use std::{env, fs, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=src/version/build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    let var = |name: &str| env::var(name).unwrap_or_default();
    let is_debug = var("PROFILE") == "debug";
    let commit = match env::var(COMMIT) {
        Ok(commit) => Some(commit).filter(|commit| is_printable(commit)),
        Err(_) if is_debug => None,
        Err(_) => commit(Path::new(&var("CARGO_MANIFEST_DIR"))),
    };
    let mut version = var("CARGO_PKG_VERSION");
    if let Some(commit) = commit {
        version.push_str(&format!(" ({})", commit.trim()));
    }
    let is_static = var("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    for (is_on, feature) in [(is_debug, "debug"), (is_static, "static")] {
        if is_on {
            version.push_str(&format!(" +{feature}"));
        }
    }
    println!("cargo::rustc-env=ROBOTGATE_VERSION={version}");
}

/// Returns the short hash and the date of the commit that is checked out, and makes Cargo run this script again after
/// the next commit.
fn commit(folder: &Path) -> Option<String> {
    // If an unpacked tarball is inside another git repository, ignore the commit of that repository.
    let top = git(folder, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top).ok()? != fs::canonicalize(folder).ok()? {
        return None;
    }
    let branch = git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let Some(path) = git(folder, &["rev-parse", "--git-path", name]) else {
            continue;
        };
        // Do not name a file that does not exist, because Cargo would then run this script before every build.
        let path = folder.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let shown = git(folder, &["log", "-1", "--no-show-signature", "--format=%H %cs"])?;
    let (hash, date) = shown.split_once(' ')?;
    Some(format!("{}, {date}", hash.get(..7)?))
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn is_printable(commit: &str) -> bool {
    !commit.trim().is_empty() && !commit.contains(char::is_control)
}

const COMMIT: &str = "ROBOTGATE_COMMIT";
