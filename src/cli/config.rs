//! `robotgate config`: prints configurations.

use std::process::ExitCode;

use super::print;

/// Print a configuration for a container
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print a configuration that makes sense in a container, as a file to start from
    Container,
}

/// Prints what the action asks for.
pub fn run(args: &ConfigArgs) -> ExitCode {
    match args.action {
        Action::Container => print(CONTAINER),
    }
}

const CONTAINER: &str = include_str!("../../conf/container.toml");

const AFTER_HELP: &str = "\
Try it:
  robotgate config container > robotgate.toml";
