//! `robotgate man`: the manual pages, for packages. One for each command from what `--help` says, and one for the
//! configuration file from its example.

mod config_page;

use std::{fs, io, path::PathBuf, process::ExitCode};

use clap::CommandFactory as _;

use super::{Cli, fail};

/// Write the manual pages into a folder
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The folder, which is made where it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes them.
pub fn run(args: &ManArgs) -> ExitCode {
    match write(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format_args!(
            "cannot write manual pages into {}: {error}",
            args.folder.display()
        )),
    }
}

fn write(ManArgs { folder }: &ManArgs) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)?;
    fs::write(folder.join("robotgate.toml.5"), config_page::render(EXAMPLE))
}

const EXAMPLE: &str = include_str!("../../conf/robotgate.toml");
