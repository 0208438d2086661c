//! `robotgate completions`: prints a script with which a shell completes commands and options.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, print};

/// Print completions for a shell
///
/// Prints what a shell needs to complete robotgate's commands and options. The Debian package installs these
/// completions for bash, zsh and fish. To use them only in the current session: source <(robotgate completions bash)
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the completion script for a shell.
pub fn run(args: &CompletionsArgs) -> ExitCode {
    // Generate the script in memory, because the generator panics if it cannot write to the output.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "robotgate", &mut text);
    print(text)
}
