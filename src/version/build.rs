//! Determines the version of this build for `src/version.rs`.
//!
//! The commit comes from the environment variable `ROBOTGATE_COMMIT`, or in a release build from git. A debug build
//! does not ask git, because it would be built again after every commit.

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

/// Returns the short hash and date of the commit, and makes Cargo run this script again after the next commit.
fn commit(folder: &Path) -> Option<String> {
    // An unpacked tarball can be inside another git repository.
    let top = git(folder, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top).ok()? != fs::canonicalize(folder).ok()? {
        return None;
    }
    let branch = git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let Some(path) = git(folder, &["rev-parse", "--git-path", name]) else {
            continue;
        };
        // If `rerun-if-changed` named a missing file, Cargo would run this script before every build.
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
