//! The bare `HttpProxy`, in a separate process so that its processor time can be measured.

use std::process::Command;

use super::Setup;
use crate::proxy::{Outcome, process::Process};

pub fn start(setup: &Setup) -> Outcome<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--bare").arg(setup.plain.to_string());
    Ok(Process::start(&mut command, &setup.log())?)
}
