//! mitmproxy without its user interface and without scripts.

use std::process::{Command, Stdio};

use super::Setup;
use crate::proxy::{Outcome, certificates::AUTHORITY, process::Process};

pub fn start(setup: &Setup) -> Outcome<Process> {
    let mut command = Command::new("mitmdump");
    command
        .arg("--quiet")
        .args(["--listen-host", &setup.plain.ip().to_string()])
        .args(["--listen-port", &setup.plain.port().to_string()])
        .arg("--set")
        .arg(format!("confdir={}", setup.folder.display()))
        .arg("--set")
        .arg(format!(
            "ssl_verify_upstream_trusted_ca={}",
            setup.shared.join(AUTHORITY).display()
        ))
        .stdout(Stdio::null());
    Ok(Process::start(&mut command, &setup.log())?)
}
