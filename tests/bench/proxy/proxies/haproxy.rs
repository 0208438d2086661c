//! HAProxy as a forward proxy that connects to the address in the target. It writes no log.

use std::process::Command;

use super::Setup;
use crate::proxy::{Outcome, process::Process};

pub fn start(setup: &Setup) -> Outcome<Process> {
    let listen = setup.plain;
    let path = setup.write(
        "haproxy.cfg",
        &format!(
            "defaults
    mode http
    timeout connect 5s
    timeout client 1m
    timeout server 1m

frontend proxy
    bind {listen}
    http-request deny if {{ path_beg /private }}
    http-request set-dst url_ip
    http-request set-dst-port url_port
    default_backend origins

backend origins
    http-reuse always
    server any 0.0.0.0:0
"
        ),
    )?;
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(path);
    Ok(Process::start(&mut command, &setup.log())?)
}
