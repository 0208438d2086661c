//! `robotgate explain`: what it tells people and programs, and that it never tells anything else
//! than the proxy does.

mod agreement;
mod bounds;
mod live;
mod terminal;
mod text;

use std::path::Path;

use crate::support::CliOutput;

/// Runs the program without a terminal.
async fn explain(args: &[&str]) -> CliOutput {
    explain_input(args, "").await
}

/// As [`explain`], with a text on standard input.
async fn explain_input(args: &[&str], input: &str) -> CliOutput {
    CliOutput::of(&[&["explain"], args].concat(), input).await
}

/// The explanation of a URL by the rules in `robots`.
async fn of_file(robots: &str, agent: &str, url: &str) -> CliOutput {
    explain_input(&["--robots", "-", "--agent", agent, url], robots).await
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a folder of ours")
}
