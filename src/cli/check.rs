//! `robotgate check`: whether a configuration can be used, without using it.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use super::{complaint, fail, misused};
use crate::{expect, proxy};

/// Check a configuration file and the cases in it
///
/// Names the mistakes in the file with their lines and what to write instead, and runs the [[expect]] cases. It says
/// what a start or a reload of the proxy would, changes nothing, and listens nowhere.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CheckArgs {
    /// The configuration file
    #[arg(value_name = "FILE", required_unless_present = "config")]
    file: Option<PathBuf>,
    /// As other commands have it; here it is told how to do without.
    #[arg(long, short, value_name = "FILE", hide = true)]
    config: Option<PathBuf>,
}

/// Says all that is wrong with the file, or that it is fine.
pub fn run(args: &CheckArgs) -> ExitCode {
    let file = match (&args.file, &args.config) {
        (Some(file), None) => file,
        (_, config) => {
            let file = config.as_deref().unwrap_or(Path::new("FILE")).display();
            return misused(&format!(
                "the file is named without --config; type: robotgate check {file}"
            ));
        }
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
            "cache.path: {error}; a start goes on without what is known of each site, and a reload is \
             refused"
        ));
    }
    for (address, key) in doubts.taken {
        warn(&format_args!(
            "something listens on {address} ({key}) now; that is as it should be if it is the robotgate \
             that this file is for, which then keeps it"
        ));
    }
    for warning in config.warnings(file, SystemTime::now()) {
        warn(&warning);
    }
    for name in config.bots.idle_credentials() {
        warn(&format_args!(
            "the credential {name:?} stands for no bot, so who presents it is refused; name it in the \
             credentials of a [[bot]], or run: robotgate credential remove {name} --config {}",
            file.display()
        ));
    }
    for (bot, name) in config.bots.missing_credentials() {
        warn(&format_args!(
            "the bot {bot:?} is to be known by the credential {name:?}, which is not in the file, so \
             who says that it is that bot is refused; run: robotgate credential add {name} --config {}; or write \
             credentials = [] in its [[bot]], where its User-Agent alone is to be believed",
            file.display()
        ));
    }
    println!(
        "{} is fine: {}, {} met",
        file.display(),
        count(config.bots.len(), "bot"),
        count(config.expect.len(), "expectation"),
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
Exit status: 0 when the file can be used, 1 when not, 2 for a usage error.

Try it:
  robotgate check robotgate.toml";
