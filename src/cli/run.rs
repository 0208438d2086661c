//! `robotgate run`: the daemon.

use std::{path::PathBuf, process::ExitCode};

use super::{Overrides, fail, misused};
use crate::{
    audit::LogFormat,
    service::{Service, logging},
};

/// Run the proxy
///
/// Bots connect to 127.0.0.1:3128 (proxy.listen). The page for operators is at http://127.0.0.1:3180/ (admin.listen).
/// The audit log is written to standard output, as readable lines at a terminal and as JSON elsewhere, unless
/// audit.path names a file. The operational log, which says what the proxy itself does, is written to standard error;
/// ROBOTGATE_LOG=debug shows more of it.
///
/// If there is no certificate authority yet, robotgate creates one, which it needs to see inside https.
/// `robotgate env CLIENT` prints the settings that make a client trust it.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct RunArgs {
    /// The configuration file. robotgate reads it again whenever it changes. Without this option, ROBOTGATE_CONFIG
    /// names the file; without a file, every key has its default
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// What the audit log looks like on standard output
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    /// This argument is always an error, whose message says to use `--config`. People try it because `robotgate check`
    /// takes the file without an option.
    #[arg(value_name = "FILE", hide = true)]
    file: Option<PathBuf>,
}

/// Runs the proxy until it is stopped.
pub fn run(args: &RunArgs) -> ExitCode {
    if let Some(file) = &args.file {
        return misused(&format!(
            "name the file with --config: robotgate run --config {}",
            file.display()
        ));
    }
    logging::init();
    let sources = match args.overrides.sources(args.config.as_deref()) {
        Ok(sources) => sources,
        Err(error) => return fail(&error),
    };
    match Service::run(&sources, args.log_format) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

const AFTER_HELP: &str = "\
Signals:
  SIGTERM, SIGINT (Ctrl-C)  stop: accept no new connections, and exit when all open requests and
                            tunnels have ended, at the latest after proxy.shutdown-timeout; after a
                            second signal, end them at once
  SIGHUP                    reload the configuration file, certificates and keys, and reopen the
                            audit log; without a file, or if it has a mistake, only log this
  SIGUSR1                   reopen the audit log

Try it:
  robotgate run
  robotgate run --config robotgate.toml
  curl -i -x http://127.0.0.1:3128 -A ExampleBot/1.0 http://example.com/";
