//! `robotgate run`: the daemon.

use std::{path::PathBuf, process::ExitCode};

use super::{fail, misused};
use crate::{
    audit::LogFormat,
    service::{Service, logging},
};

/// Run the proxy
///
/// Bots connect to 127.0.0.1:3128 unless the configuration says otherwise (proxy.listen); a page that
/// shows what they do is at http://127.0.0.1:3180/ (admin.listen). Each decision is written to standard
/// output, as a readable line at a terminal and as JSON elsewhere (audit.path names a file instead, which has
/// JSON), and what the proxy itself does to standard error; ROBOTGATE_LOG=debug makes that tell more.
///
/// At the first start it makes the certificate authority by which it sees inside https; `robotgate env`
/// says how clients come to trust it.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct RunArgs {
    /// The configuration file, which is read again whenever it changes, and on SIGHUP; left out, every
    /// setting has its default
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What the decisions on standard output look like
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    /// As `robotgate check` has it; here it is told how to name one.
    #[arg(value_name = "FILE", hide = true)]
    file: Option<PathBuf>,
}

/// Runs until it is told to stop.
pub fn run(args: &RunArgs) -> ExitCode {
    if let Some(file) = &args.file {
        return misused(&format!(
            "the file is named by --config; type: robotgate run --config {}",
            file.display()
        ));
    }
    logging::init();
    match Service::run(args.config.as_deref(), args.log_format) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

const AFTER_HELP: &str = "\
Ctrl-C or SIGTERM: takes no new connections, and stops when what runs has ended (or after
proxy.shutdown-timeout); a second one stops at once. SIGUSR1 opens the audit log anew.

Try it:
  robotgate run
  robotgate run --config robotgate.toml
  curl -i -x http://127.0.0.1:3128 -A ExampleBot/1.0 http://example.com/";
