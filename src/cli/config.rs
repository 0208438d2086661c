//! `robotgate config`: prints the configuration in force, the schema of configurations, or a configuration for a
//! container.

use std::{io, path::PathBuf, process::ExitCode};

use super::{Overrides, fail, load, print};
use crate::{
    config::{Config, ConfigError},
    copy::Sha256,
    evidence::{EvidenceReader, FileError},
};

/// Print the configuration in force, the schema of configurations, or a configuration for a container
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Show(ShowArgs),
    /// Print a JSON Schema of configuration files, for editors
    Schema,
    /// Print a configuration to start from in a container
    #[command(long_flag = "container")]
    Container,
}

/// Print every key that has a value, as TOML, and where the value comes from
///
/// A comment after each key says where the value comes from: the default, a line of the file, an environment variable
/// or --set. The output contains no secret, because the configuration only names the files that contain secrets.
#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The configuration file. Without this option, ROBOTGATE_CONFIG names the file
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// Instead, print an earlier configuration from the store of evidence (evidence.path), by its SHA-256. This is the
    /// field config_sha256 of a decision in the audit log
    #[arg(long, value_name = "SHA256")]
    stored: Option<Sha256>,
}

#[derive(Debug, thiserror::Error)]
enum ShowError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(
        "this configuration has no store of evidence, so the proxy keeps no old configurations; evidence.enabled = \
         true adds one"
    )]
    NoEvidence,
    #[error("the store of evidence {} cannot be read: {error}{}", path.display(), advice_for_store(error))]
    Evidence { path: PathBuf, error: FileError },
    #[error(
        "the store of evidence {} does not have the configuration {sha256}. If the proxy that logged this \
         config_sha256 has another store, name that store with --set evidence.path=FILE. robotgate removes a \
         configuration that has not been used for a long time (evidence.keep, evidence.max-bytes)", path.display()
    )]
    Unknown { path: PathBuf, sha256: Sha256 },
}

/// Runs the subcommand. `show` fails if the configuration is invalid.
pub fn run(args: &ConfigArgs) -> ExitCode {
    match &args.action {
        Action::Show(show) => match show.text() {
            Ok(text) => print(text),
            Err(error) => fail(&error),
        },
        Action::Schema => print(format!("{:#}\n", Config::schema())),
        Action::Container => print(CONTAINER),
    }
}

// === impl ShowArgs ===

impl ShowArgs {
    fn text(&self) -> Result<Vec<u8>, ShowError> {
        let Some(sha256) = self.stored else {
            let sources = self.overrides.sources(self.config.as_deref())?;
            return Ok(Config::show(&sources)?.into());
        };
        let config = load(self.config.as_deref(), &self.overrides)?.0;
        let path = config.evidence.ok_or(ShowError::NoEvidence)?.path;
        let unreadable = |error| ShowError::Evidence {
            path: path.clone(),
            error,
        };
        let mut found = EvidenceReader::open(&path)
            .and_then(|reader| reader.read(&[sha256]))
            .map_err(unreadable)?;
        // The store contains robots.txt files too, so check that the text is a configuration.
        let is_config =
            |text: &Vec<u8>| std::str::from_utf8(text).is_ok_and(|text| text.parse::<toml::Table>().is_ok());
        found
            .remove(&sha256)
            .filter(is_config)
            .ok_or(ShowError::Unknown { path, sha256 })
    }
}

/// Returns what people can do if a store of evidence cannot be read: a text to append to the message.
pub(super) fn advice_for_store(error: &FileError) -> &'static str {
    match error {
        FileError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            "; name the proxy's configuration with --config, or its store with --set evidence.path=FILE"
        }
        error => error.advice_for_reader(),
    }
}

const CONTAINER: &str = include_str!("../../conf/container.toml");

const AFTER_HELP: &str = "\
Try it:
  robotgate config show --config robotgate.toml
  robotgate config show --config robotgate.toml --stored SHA256
  robotgate config schema > robotgate.schema.json
  robotgate config container > robotgate.toml";
