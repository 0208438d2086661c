//! `robotgate ca`: shows and exports the certificate of the local certificate authority.

use std::{path::PathBuf, process::ExitCode, time::SystemTime};

use super::{Overrides, fail, load, print};
use crate::{
    authority::{Authority, AuthorityError},
    config::HttpsMode,
    trust,
};

/// Show or export the certificate of robotgate's certificate authority, which clients have to trust for HTTPS
///
/// The proxy creates the certificate and its key at the first start. `robotgate env CLIENT` prints the settings that
/// make a client trust it.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CaArgs {
    #[command(subcommand)]
    action: Action,
    /// The configuration file, in which https.ca-certificate and https.ca-key name the certificate and its key
    #[arg(long, short, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the certificate's subject, fingerprint and dates, and the paths of the certificate and its key
    Show,
    /// Print the certificate (PEM) on standard output
    Export,
}

/// Shows or prints the certificate, but never creates one.
pub fn run(args: &CaArgs) -> ExitCode {
    let (https, sources) = match load(args.config.as_deref(), &args.overrides) {
        Ok((config, sources)) => (config.https, sources),
        Err(error) => return fail(&error),
    };
    let authority = match Authority::load(&https.ca_certificate, &https.ca_key, SystemTime::now()) {
        Ok(authority) => authority,
        Err(AuthorityError::Missing { .. }) if https.mode != HttpsMode::Intercept => {
            return fail(
                &"https.mode is not \"intercept\", so robotgate needs no certificate authority, and clients need no \
                  certificate",
            );
        }
        Err(error @ AuthorityError::Missing { .. }) => {
            let elsewhere = match sources.file() {
                Some(_) => {
                    "runs as a service and https.ca-certificate is not set, set STATE_DIRECTORY to the service's state folder, such \
                     as /var/lib/robotgate"
                }
                None => "runs with a configuration file, name it with --config",
            };
            return fail(&format_args!("{error}. If the proxy {elsewhere}"));
        }
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
