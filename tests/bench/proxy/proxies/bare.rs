//! The bare `HttpProxy`, in a process of its own so that its processor time can be told apart.

use std::process::Command;

use super::Place;
use crate::proxy::{Outcome, process::Process};

pub fn start(place: &Place) -> Outcome<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--bare").arg(place.plain.to_string());
    Ok(Process::start(&mut command, &place.log())?)
}
