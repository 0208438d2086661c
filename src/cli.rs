//! The subcommands, one file each, and what they share. They read arguments, call the other modules and print. They
//! decide nothing themselves.

pub mod ca;
pub mod cache;
pub mod check;
mod complaint;
pub mod completions;
pub mod config;
pub mod credential;
pub mod env;
pub mod eval;
pub mod explain;
pub mod health;
pub mod lint;
pub mod live;
mod logs;
pub mod man;
mod overrides;
mod progress;
pub mod replay;
pub mod report;
pub mod run;
pub mod seal;
mod source;
pub mod what_if;

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use clap::{Parser, Subcommand};

use self::overrides::Overrides;
use crate::{
    colour, columns,
    config::{Config, ConfigError, Sources},
};

/// A forward proxy that checks every request of your bots against the site's robots.txt
#[derive(Debug, Parser)]
#[command(name = "robotgate", version = crate::VERSION, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Env(env::EnvArgs),
    Explain(explain::ExplainArgs),
    Check(check::CheckArgs),
    Health(health::HealthArgs),
    Config(config::ConfigArgs),
    Cache(cache::CacheArgs),
    Replay(replay::ReplayArgs),
    Report(report::ReportArgs),
    Seal(seal::SealArgs),
    WhatIf(what_if::WhatIfArgs),
    Ca(ca::CaArgs),
    Credential(credential::CredentialArgs),
    Lint(lint::LintArgs),
    Eval(eval::EvalArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Man(man::ManArgs),
}

// === impl Cli ===

impl Cli {
    /// Runs the subcommand. The exit status is 0 for success, 1 if the command fails or its answer is negative, and 2
    /// for a usage error.
    pub fn execute(self) -> ExitCode {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Health(args) => health::run(&args),
            Command::Config(args) => config::run(&args),
            Command::Eval(args) => eval::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Lint(args) => lint::run(&args),
            Command::Cache(args) => cache::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Report(args) => report::run(&args),
            Command::WhatIf(args) => what_if::run(&args),
            Command::Seal(args) => seal::run(&args),
            Command::Credential(args) => credential::run(&args),
            Command::Ca(args) => ca::run(&args),
            Command::Env(args) => env::run(&args),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        }
    }
}

/// Loads the configuration, but not the files with secrets, because the user of a command often may not read them.
/// Also returns the configuration's sources, for messages that suggest a command.
fn load(file: Option<&Path>, overrides: &Overrides) -> Result<(Config, Sources), ConfigError> {
    let sources = overrides.sources(file)?;
    Ok((Config::load_without_credentials(&sources)?, sources))
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    complaint::say(error);
    ExitCode::FAILURE
}

/// Writes to standard output. A broken pipe is not an error, because a program such as `head` can stop reading early.
fn print(text: impl AsRef<[u8]>) -> ExitCode {
    match io::stdout().write_all(text.as_ref()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(&format_args!("cannot write to standard output: {error}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The `bool` says whether the exit status is 0.
fn finish(outcome: Result<(String, bool), impl std::fmt::Display>) -> ExitCode {
    match outcome {
        Ok((text, is_good)) => match print(text) {
            ExitCode::SUCCESS if !is_good => ExitCode::FAILURE,
            code => code,
        },
        Err(error) => fail(&error),
    }
}

/// Reports a usage error that clap does not detect.
fn misused(message: &str) -> ExitCode {
    complaint::say(&message);
    ExitCode::from(2)
}

const AFTER_HELP: &str = "\
Try it:
  robotgate run                         # in one terminal, and in another:
  curl -i -x http://127.0.0.1:3128 -A ExampleBot/1.0 http://example.com/
  robotgate env curl                    # shows how to set up curl, https included

robotgate COMMAND --help shows the options of a command.";
