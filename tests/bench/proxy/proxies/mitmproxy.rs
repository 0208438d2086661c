//! mitmproxy without a screen and without scripts.

use std::process::{Command, Stdio};

use super::Place;
use crate::proxy::{Outcome, certificates::AUTHORITY, process::Process};

pub fn start(place: &Place) -> Outcome<Process> {
    let mut command = Command::new("mitmdump");
    command
        .arg("--quiet")
        .args(["--listen-host", &place.plain.ip().to_string()])
        .args(["--listen-port", &place.plain.port().to_string()])
        .arg("--set")
        .arg(format!("confdir={}", place.own.display()))
        .arg("--set")
        .arg(format!(
            "ssl_verify_upstream_trusted_ca={}",
            place.shared.join(AUTHORITY).display()
        ))
        .stdout(Stdio::null());
    Ok(Process::start(&mut command, &place.log())?)
}
