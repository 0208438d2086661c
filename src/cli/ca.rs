//! `robotgate ca`: the certificate of the local authority, for clients to trust.

use std::{path::PathBuf, process::ExitCode, time::SystemTime};

use super::{fail, load, print};
use crate::{authority::Authority, trust};

/// Show or export the certificate that clients of https have to trust
///
/// The proxy makes it, with its key, when it first starts. `robotgate env` says how each client comes to
/// trust it.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CaArgs {
    #[command(subcommand)]
    action: Action,
    /// The configuration file that names the authority's files
    #[arg(long, short, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show whose certificate it is, how long it holds and where it is
    Show,
    /// Print the certificate (PEM) on standard output
    Export,
}

/// Shows or prints the certificate. Never makes one: `run` does.
pub fn run(args: &CaArgs) -> ExitCode {
    let https = match load(args.config.as_deref()) {
        Ok(config) => config.https,
        Err(error) => return fail(&error),
    };
    let authority = match Authority::load(&https.ca_certificate, &https.ca_key, SystemTime::now()) {
        Ok(authority) => authority,
        Err(error) => return fail(&error),
    };
    let text = match args.action {
        Action::Export => authority.certificate_pem().to_owned(),
        Action::Show => format!(
            "{}Certificate: {}\nKey:         {}\n",
            trust::facts(&(&authority).into(), ""),
            https.ca_certificate.display(),
            https.ca_key.display(),
        ),
    };
    print(text)
}

const AFTER_HELP: &str = "\
Try it:
  robotgate ca show
  robotgate ca export > robotgate-ca.pem";
