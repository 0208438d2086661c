//! `robotgate credential`: manages the credentials with which clients prove which bot they are. The credentials file
//! contains only hashes of the secrets. A secret that the command itself creates is printed once and stored nowhere.

mod secret;
mod store;

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use self::{
    secret::{Secret, SecretError},
    store::{Store, StoreError, with_line, without},
};
use super::{
    Overrides,
    columns::{padded, widest},
    complaint, fail, load, print,
};
use crate::{
    bot::{BadLine, Credentials, is_name},
    config::{Config, ConfigError},
};

/// Create, list and remove the credentials by which clients prove which bot they are
///
/// The configuration names the credentials file (identity.credentials). This file contains only hashes of the secrets.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct CredentialArgs {
    #[command(subcommand)]
    action: Action,
    /// The configuration file, which names the credentials file (identity.credentials)
    #[arg(long, short, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a secret for NAME and print it once; a name can have several secrets
    Add {
        /// One word without a colon, such as the bot's name
        name: String,
        /// Take the secret from standard input. It must have at least 22 characters, and be as hard to guess as a
        /// random one
        #[arg(long)]
        stdin: bool,
    },
    /// Remove the secrets of NAME
    Remove {
        /// The name, as `list` prints it
        name: String,
        /// Keep the newest secret. Use this at the end of a rotation, when all clients have the new secret
        #[arg(long)]
        all_but_last: bool,
    },
    /// Print each name, how many secrets it has, and the bots that it identifies
    List,
}

#[derive(Debug, thiserror::Error)]
enum CredentialError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("no credentials file is configured; name the proxy's configuration with --config FILE")]
    NoConfig,
    #[error(
        "no credentials file is configured in {}; write:\n\n    [identity]\n    credentials = \"credentials\"\n\n\
         (a relative path starts at the configuration's folder). With this key, every [[bot]] needs a credential, \
         unless its entry lists another proof or has credentials = []",
        .0.display()
    )]
    NotConfigured(PathBuf),
    #[error(
        "{0:?} cannot be the name of a credential: write one word like \"acme-prod\", of at most 128 bytes, \
         which has no colon and does not begin with #"
    )]
    Name(String),
    #[error(
        "{} has no credential with the name {name:?}; to list the names: robotgate credential list{option}",
        path.display()
    )]
    NoSuch {
        path: PathBuf,
        name: String,
        option: String,
    },
    #[error(
        "{}\nCorrect or delete every such line, then repeat the command",
        .bad.iter().map(|bad| format!("{}:{bad}", path.display())).collect::<Vec<_>>().join("\n")
    )]
    Lines { path: PathBuf, bad: Vec<BadLine> },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
}

/// Adds, removes or lists credentials, and prints the result.
pub fn run(args: &CredentialArgs) -> ExitCode {
    let output = configured(args).and_then(|(config, path, options)| match &args.action {
        Action::Add { name, stdin } => add(&config, &path, name, *stdin, &options),
        Action::Remove { name, all_but_last } => remove(&path, name, *all_but_last, &options),
        Action::List => list(&config, &path),
    });
    match output {
        Ok(output) => print(output),
        Err(error) => fail(&error),
    }
}

/// Returns the configuration, the path of the credentials file, and the options `--config` and `--set` as text, for
/// commands that the output suggests.
fn configured(args: &CredentialArgs) -> Result<(Config, PathBuf, String), CredentialError> {
    let (config, sources) = load(args.config.as_deref(), &args.overrides)?;
    let path = config.identity.credentials.clone();
    let missing = || match sources.file() {
        Some(file) => CredentialError::NotConfigured(file.to_owned()),
        None => CredentialError::NoConfig,
    };
    let path = path.ok_or_else(missing)?;
    Ok((config, path, sources.options()))
}

fn add(config: &Config, path: &Path, name: &str, stdin: bool, option: &str) -> Result<String, CredentialError> {
    if !is_name(name) {
        return Err(CredentialError::Name(name.to_owned()));
    }
    let secret = match stdin {
        true => Secret::given(&read_stdin()?)?,
        false => Secret::random()?,
    };
    let store = Store::lock(path)?;
    let before = store.read()?;
    let text = before.as_ref().map_or("", |before| &before.text);
    // robotgate rejects the whole file if one line is invalid, so add nothing to such a file.
    let known = parsed(path, text)?;
    store.write(&with_line(text, &secret.hash()?.line(name)), before.as_ref())?;

    let secrets = known
        .names()
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(0, |(_, count)| *count);
    let bots = bots_of(config, name);
    if bots.is_empty() {
        eprintln!(
            "robotgate: warning: no bot accepts the credential {name:?}, so clients that present it are refused; write \
             credentials = [\"{name}\"] into a [[bot]]"
        );
    }
    let mut output = format!("{name} has a new secret; its hash is in {}.\n", path.display());
    if secrets > 0 {
        let older = if secrets == 1 {
            "Its older secret"
        } else {
            "Its older secrets"
        };
        output += &format!(
            "{older} can still be used. To remove all but the new one: robotgate credential remove {name} \
             --all-but-last{option}\n"
        );
    }
    if before.is_none() && rustix::process::geteuid().is_root() {
        output += &format!(
            "The file is new. If robotgate runs as another user, let its group read it: chgrp robotgate {}\n",
            path.display()
        );
    }
    let proxy = &config.proxy;
    output += &match &secret {
        Secret::Random(text) => format!(
            "This is the only time that the secret is shown. Set this as the client's proxy:\n\n    {}\n",
            secret::url(name, text, proxy)
        ),
        Secret::Given(_) => format!(
            "Set this as the client's proxy, with the secret percent-encoded:\n\n    {}\n",
            secret::url(name, "SECRET", proxy)
        ),
    };
    if let (Some(_), Some(plain)) = (&proxy.tls, proxy.listen.first()) {
        output += &format!(
            "\nDo not use the listener without TLS ({plain}): the client would send the secret in clear text.\n"
        );
    }
    output += NEXT;
    Ok(output)
}

fn remove(path: &Path, name: &str, all_but_last: bool, option: &str) -> Result<String, CredentialError> {
    let store = Store::lock(path)?;
    let before = store.read()?;
    let (text, removed) = without(before.as_ref().map_or("", |before| &before.text), name, all_but_last);
    match removed {
        None => Err(CredentialError::NoSuch {
            path: path.to_owned(),
            name: name.to_owned(),
            option: option.to_owned(),
        }),
        Some(0) => Ok(format!("{name} has only one secret; nothing was removed.\n")),
        Some(removed) => {
            store.write(&text, before.as_ref())?;
            let plural = if removed == 1 { "" } else { "s" };
            Ok(format!("{removed} secret{plural} of {name} removed.\n{NEXT}"))
        }
    }
}

fn list(config: &Config, path: &Path) -> Result<String, CredentialError> {
    let before = store::read(path)?;
    let known = parsed(path, before.as_ref().map_or("", |before| &before.text))?;
    let names = known.names();
    if names.is_empty() {
        complaint::say(&format_args!("{} has no credentials", path.display()));
    }
    let width = widest(names.iter().map(|(name, _)| *name));
    let rows = names.into_iter().map(|(name, secrets)| {
        let plural = if secrets == 1 { " " } else { "s" };
        let bots = match bots_of(config, name) {
            bots if bots.is_empty() => "no bot".to_owned(),
            bots => bots.join(", "),
        };
        let name = padded(name, width);
        format!("{name}  {secrets} secret{plural}  {bots}\n")
    });
    Ok(rows.collect())
}

fn parsed(path: &Path, text: &str) -> Result<Credentials, CredentialError> {
    Credentials::parse(text).map_err(|bad| CredentialError::Lines {
        path: path.to_owned(),
        bad,
    })
}

fn bots_of<'c>(config: &'c Config, name: &str) -> Vec<&'c str> {
    let takes = |credentials: &[Box<str>]| credentials.iter().any(|credential| **credential == *name);
    let bots = config.bots.iter().filter(|bot| takes(&bot.accepted_proofs.credentials));
    bots.map(|bot| &*bot.name).collect()
}

fn read_stdin() -> Result<String, CredentialError> {
    let mut text = String::new();
    let mut input = io::stdin().take(MAX_INPUT);
    input.read_to_string(&mut text).map_err(CredentialError::Input)?;
    Ok(text)
}

/// Maximum number of bytes to read from standard input. Any valid secret is shorter.
const MAX_INPUT: u64 = 4096;

const NEXT: &str = "\nA running robotgate reads the credentials file again within a second, and logs \"configuration reloaded\".\n\
                    If it does not: systemctl reload robotgate, or send SIGHUP to its process.\n";

const AFTER_HELP: &str = "\
Try it:
  robotgate credential add AcmeBot --config /etc/robotgate/robotgate.toml
  robotgate credential list --config /etc/robotgate/robotgate.toml";
