//! `robotgate explain`: its output for people and for programs, which always agrees with the proxy.

mod agreement;
mod bounds;
mod live;
mod terminal;
mod text;

use std::path::Path;

use crate::support::CliOutput;

async fn explain(args: &[&str]) -> CliOutput {
    explain_input(args, "").await
}

async fn explain_input(args: &[&str], input: &str) -> CliOutput {
    CliOutput::of(&[&["explain"], args].concat(), input).await
}

async fn explain_robots(robots: &str, agent: &str, url: &str) -> CliOutput {
    explain_input(&["--robots", "-", "--agent", agent, url], robots).await
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a folder of ours")
}
