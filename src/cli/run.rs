//! `robotgate run`: the daemon.

use std::{path::PathBuf, process::ExitCode};

use super::fail;
use crate::service::{Service, logging};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The configuration file; it is read again whenever it changes, and on SIGHUP
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs until it is told to stop.
pub fn run(args: &RunArgs) -> ExitCode {
    logging::init();
    match Service::run(args.config.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}
