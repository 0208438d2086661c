//! `robotgate check`: checks a configuration without using it.

use std::{fmt::Display, path::PathBuf, process::ExitCode, time::SystemTime};

use super::{Overrides, complaint, fail, misused};
use crate::{config::Sources, expect, proxy, text::count};

/// Check a configuration file and run its [[expect]] cases
///
/// Checks the file as a start or a reload would, and shows mistakes with their lines and a correction. Changes
/// nothing and listens nowhere. Run it as the user that robotgate runs as, because it also tests whether the files
/// that the configuration names can be read.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, override_usage = "robotgate check [--set KEY=VALUE] [FILE]")]
pub struct CheckArgs {
    /// The configuration file. Without this argument, ROBOTGATE_CONFIG names the file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The configuration file, for people who write --config here because the other commands need it
    #[arg(long, short, value_name = "FILE", hide = true, conflicts_with = "file")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
}

/// If the configuration can be used, says so and prints warnings. Otherwise, prints what is wrong.
pub fn run(args: &CheckArgs) -> ExitCode {
    let file = args.file.as_deref().or(args.config.as_deref());
    let sources = match args.overrides.sources(file) {
        Ok(sources) if sources == Sources::default() => {
            return misused("name the configuration file: robotgate check <FILE>");
        }
        Ok(sources) => sources,
        Err(error) => return fail(&error),
    };
    let config = match expect::load(&sources) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let doubts = match proxy::check(&config) {
        Ok(doubts) => doubts,
        Err(error) => return fail(&error),
    };
    if let Some(error) = &doubts.disk {
        warn(&format_args!(
            "cache.path: {error}. If the proxy runs as the same user as this command ({}), it would start without the \
             saved robots.txt files, and would refuse a reload",
            rustix::process::geteuid()
        ));
    }
    if !doubts.taken.is_empty() {
        let taken = doubts.taken.iter().map(|(address, key)| format!("{address} ({key})"));
        warn(&format_args!(
            "something already listens on {}; if that is neither robotgate itself nor its systemd socket, a start or a \
             reload with this configuration will fail",
            Vec::from_iter(taken).join(", ")
        ));
    }
    for warning in config.warnings(sources.file(), SystemTime::now()) {
        warn(&warning);
    }
    let options = sources.options();
    for name in config.bots.idle_credentials() {
        warn(&format_args!(
            "the credential {name:?} identifies no bot, so clients that present it are refused; add it to the \
             credentials of a [[bot]], or run: robotgate credential remove {name}{options}"
        ));
    }
    for (bot, name) in config.bots.missing_credentials() {
        warn(&format_args!(
            "the bot {bot:?}: its credential {name:?} is not in the credentials file, so clients with its User-Agent are \
             refused unless they have another proof; run: robotgate credential add {name}{options}; or write \
             credentials = [] in its [[bot]]: without identity.required, clients then need no credential for this bot"
        ));
    }
    for (bot, agent) in config.bots_looked_up_by_name() {
        warn(&format_args!(
            "the bot {bot:?}: robotgate looks for the group of {bot:?} in a robots.txt, not of {agent:?}; write \
             robots-agents = [{agent:?}] in its [[bot]], or [{bot:?}] if that is meant"
        ));
    }
    let cases = match config.expect.len() {
        0 => "no [[expect]] cases".to_owned(),
        number => format!("{} met", count(number, "expectation")),
    };
    println!(
        "{} is fine: {}, {cases}",
        sources.name(),
        count(config.bots.len(), "bot")
    );
    ExitCode::SUCCESS
}

fn warn(warning: &dyn Display) {
    complaint::say(&format_args!("warning: {warning}"));
}

const AFTER_HELP: &str = "\
Exit status: 0 if the file can be used, 1 if it cannot, 2 for a usage error.

Try it:
  robotgate check robotgate.toml";
