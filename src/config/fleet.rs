//! `[fleet]`: the server through which several robotgates share copies of robots.txt and one pace.
//!
//! This module connects to nothing, and never shows a secret.

use std::path::{Path, PathBuf};

use super::checker::Reads;
use super::table::Table;
use crate::fleet::{FleetSettings, OnLoss, Secret};
use crate::{files, pem};

/// The `[fleet]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    pub settings: FleetSettings,
    /// How fast bots may send requests while robotgate cannot use the fleet's server.
    pub on_loss: OnLoss,
    /// Number of robotgates in the fleet, by which [`OnLoss::Share`] multiplies the time between requests.
    pub size: u32,
    /// The files with the user name, the password and the key of the fleet.
    pub secret_files: Vec<PathBuf>,
}

// === impl Fleet ===

impl Fleet {
    /// Returns `None` if `url` is missing or invalid. `is_paced` says whether there is a `[pace]` section.
    pub(super) fn read(table: &Table<'_>, is_paced: bool) -> Option<Self> {
        let mut secret_files = Vec::new();
        let address = table.parsed("url", str::parse);
        let [username, password, key] = ["username-file", "password-file", "key-file"].map(|name| {
            let path_text = table.text(name)?;
            let path = table.checker.path(&path_text)?;
            secret_files.push(path.clone());
            match table.checker.reads {
                Reads::All => table.checker.taken(path_text.span(), secret(&path, name == "key-file")),
                Reads::NoSecrets | Reads::Nothing => None,
            }
        });
        let ca = table.text("ca-file").and_then(|path_text| {
            let path = table.checker.path(&path_text)?;
            match table.checker.reads {
                Reads::Nothing => Some(Secret::new(b"")),
                Reads::All | Reads::NoSecrets => table.checker.taken(path_text.span(), certificates(&path)),
            }
        });
        let prefix = table.parsed("key-prefix", key_prefix);
        table.has_default("key-prefix", PREFIX);
        let on_loss = table.choice_or("on-loss", OnLoss::default());
        // robotgate uses `size` only with `[pace]` and `on-loss = "share"`, and then `size` is required. So the default
        // has no effect.
        let size = table.number_in([" robotgates", ""], "size", 1..=10_000).unwrap_or(1);
        let is_size_missing = table.span_of("size").is_none() && table.span_of("url").is_some();
        if is_paced && on_loss == OnLoss::Share && is_size_missing {
            let message = "this key is missing; while the robotgates cannot reach the fleet's server, each keeps to its \
                           share of [pace]: write how many robotgates there are, like size = 3, or set on-loss to \
                           \"local\" or \"refuse\"";
            table.missing("size", message.to_owned());
        }
        if let (None, Some(span)) = (table.span_of("url"), table.span())
            && (!secret_files.is_empty() || ca.is_some() || table.span_of("size").is_some())
        {
            table.checker.complain(
                span,
                "url is missing; write the URL of the fleet's server, like url = \"redis://10.0.0.5\", or remove [fleet]",
            );
        }
        if let (Some(span), Some(false)) = (
            table.span_of("ca-file"),
            address.as_ref().map(crate::fleet::Address::is_tls),
        ) {
            table.checker.complain(
                span,
                "ca-file has no effect, because url does not use TLS; remove ca-file, or use a url with rediss://",
            );
        }
        if let (Some(span), None) = (table.span_of("username-file"), table.span_of("password-file")) {
            table
                .checker
                .complain(span, "a user needs a password; name its file in password-file");
        }
        Some(Self {
            settings: FleetSettings {
                address: address?,
                username,
                password,
                ca,
                key,
                prefix: prefix.unwrap_or_else(|| PREFIX.to_owned()),
                call_timeout: FleetSettings::CALL_TIMEOUT,
            },
            on_loss,
            size,
            secret_files,
        })
    }
}

/// Reads a secret from the first line of a file that other users cannot access. No error contains the secret.
fn secret(path: &Path, is_key: bool) -> Result<Secret, String> {
    let bytes = files::read_secret(path).map_err(|error| error.to_string())?;
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    match line.len() {
        0 => Err(format!(
            "the first line of {} is empty; write the secret into it",
            path.display()
        )),
        1..MIN_KEY if is_key => Err(format!(
            "the first line of {0} has fewer than {MIN_KEY} bytes, which can be guessed; make one key for all \
             robotgates with \"(umask 77; openssl rand -hex 32 > {0})\"",
            path.display()
        )),
        _ => Ok(Secret::new(line)),
    }
}

fn certificates(path: &Path) -> Result<Secret, String> {
    let bytes = files::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    pem::roots(&bytes).map_err(|why| format!("{} {why}", path.display()))?;
    Ok(Secret::new(&bytes))
}

fn key_prefix(text: &str) -> Result<String, String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    match text.bytes().all(is_fit) && (1..=MAX_PREFIX).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} cannot begin the keys on the server; write 1 to {MAX_PREFIX} ASCII letters, digits or any of \
             - _ . :"
        )),
    }
}

const PREFIX: &str = "robotgate";
const MAX_PREFIX: usize = 64;
/// Minimum length of the fleet's key, in bytes. A shorter key could be guessed.
const MIN_KEY: usize = 16;
