//! `robotgate config`: prints the configuration in force, the schema of configurations, or a configuration for a
//! container.

use std::{path::PathBuf, process::ExitCode};

use super::{Overrides, fail, print};
use crate::config::Config;

/// Print the configuration in force, the schema of configurations, or a configuration for a container
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Show(ShowArgs),
    /// Print a JSON Schema of configuration files, for editors
    Schema,
    /// Print a configuration to start from in a container
    #[command(long_flag = "container")]
    Container,
}

/// Print every key that has a value, as TOML, and where the value comes from
///
/// A comment after each key says where the value comes from: the default, a line of the file, an environment variable
/// or --set. The output contains no secret, because the configuration only names the files that contain secrets.
#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The configuration file. Without this option, ROBOTGATE_CONFIG names the file
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
}

/// Runs the subcommand. `show` fails if the configuration is invalid.
pub fn run(args: &ConfigArgs) -> ExitCode {
    match &args.action {
        Action::Show(show) => {
            let sources = show.overrides.sources(show.config.as_deref());
            match sources.and_then(|sources| Config::show(&sources)) {
                Ok(text) => print(text),
                Err(error) => fail(&error),
            }
        }
        Action::Schema => print(format!("{:#}\n", Config::schema())),
        Action::Container => print(CONTAINER),
    }
}

const CONTAINER: &str = include_str!("../../conf/container.toml");

const AFTER_HELP: &str = "\
Try it:
  robotgate config show --config robotgate.toml
  robotgate config schema > robotgate.schema.json
  robotgate config container > robotgate.toml";
