//! Runs this program again under valgrind, which counts its instructions.

use std::{env, process::Command};

use tempfile::TempDir;

/// Returns how many instructions the command `cost WORK TIMES` executes.
///
/// # Panics
/// If valgrind is not installed, or reports no number.
pub fn instructions(work: &str, times: u64) -> u64 {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("callgrind.out");
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe().unwrap())
        .args([work, &times.to_string()])
        .output()
        .expect("valgrind counts instructions: install it");
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{work} under valgrind: {}\n{stderr}", ran.status);
    let counted = std::fs::read_to_string(out).expect("callgrind writes what it counted");
    let total = counted.lines().find_map(|line| line.strip_prefix("totals: "));
    total.expect("callgrind sums up").trim().parse().unwrap()
}
