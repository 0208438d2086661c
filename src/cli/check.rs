//! `robotgate check`: checks a configuration without using it.

use std::{fmt::Display, path::PathBuf, process::ExitCode, time::SystemTime};

use super::{complaint, fail, misused};
use crate::{expect, proxy};

/// Check a configuration file and run its [[expect]] cases
///
/// Checks the file as a start or a reload would, and shows each mistake with its line and a correction. Changes
/// nothing and listens nowhere. Run it as the user that robotgate runs as, because it also tests whether the files
/// that the configuration names can be read.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, override_usage = "robotgate check <FILE>")]
pub struct CheckArgs {
    /// The configuration file
    #[arg(value_name = "FILE", required_unless_present = "config")]
    file: Option<PathBuf>,
    /// The same, as other commands take it
    #[arg(long, short, value_name = "FILE", hide = true, conflicts_with = "file")]
    config: Option<PathBuf>,
}

/// Prints all mistakes in the file, or that it is valid.
pub fn run(args: &CheckArgs) -> ExitCode {
    // clap requires one of the two arguments, so this is not reached.
    let Some(file) = args.file.as_ref().or(args.config.as_ref()) else {
        return misused("name the configuration file");
    };
    let config = match expect::load(file) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let doubts = match proxy::check(&config) {
        Ok(doubts) => doubts,
        Err(error) => return fail(&error),
    };
    if let Some(error) = &doubts.disk {
        warn(&format_args!(
            "cache.path: {error}; robotgate would start without the saved robots.txt files, and would refuse a reload"
        ));
    }
    for (address, key) in doubts.taken {
        warn(&format_args!(
            "something already listens on {address} ({key}); this is expected if robotgate is running with this \
             configuration"
        ));
    }
    for warning in config.warnings(file, SystemTime::now()) {
        warn(&warning);
    }
    for name in config.bots.idle_credentials() {
        warn(&format_args!(
            "the credential {name:?} identifies no bot, so clients that present it are refused; add it to the \
             credentials of a [[bot]], or run: robotgate credential remove {name} --config {}",
            file.display()
        ));
    }
    for (bot, name, others) in config.bots.missing_credentials() {
        let add = format!("robotgate credential add {name} --config {}", file.display());
        if !others.is_empty() {
            warn(&format_args!(
                "the bot {bot:?}: no credential named {name:?} is in the credentials file; write credentials = [] in \
                 its [[bot]] if {others} alone proves it, or run: {add}"
            ));
            continue;
        }
        warn(&format_args!(
            "the bot {bot:?} has to prove itself with the credential {name:?}, which is not in the credentials file, so \
             clients with its User-Agent are refused; run: {add}; or, to believe its User-Agent alone, write \
             credentials = [] in its [[bot]]"
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
        file.display(),
        count(config.bots.len(), "bot")
    );
    ExitCode::SUCCESS
}

fn warn(warning: &dyn Display) {
    complaint::say(&format_args!("warning: {warning}"));
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

const AFTER_HELP: &str = "\
Exit status: 0 if the file can be used, 1 if it cannot, 2 for a usage error.

Try it:
  robotgate check robotgate.toml";
