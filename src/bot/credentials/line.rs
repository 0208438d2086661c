//! The text of a credentials file: `NAME:sha256$SALT$HASH` a line, and `#` comments.
//!
//! It never quotes a line: one that cannot be read may hold a secret.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;

use super::{Credentials, SecretHash};
use crate::text::is_plain;

/// A line that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// From 1.
    pub line: usize,
    pub fault: LineFault,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFault {
    /// There is no `NAME:`, or the name is none.
    Name,
    /// What stands behind the name is of no known kind.
    Kind,
    /// The salt or the hash is cut or spoilt.
    Spoilt,
}

// === impl Credentials ===

impl Credentials {
    /// Reads a file's text.
    ///
    /// # Errors
    /// All lines that cannot be used.
    pub fn parse(text: &str) -> Result<Self, Vec<BadLine>> {
        let mut credentials = Self::default();
        let mut bad = Vec::new();
        for (at, text) in text.lines().enumerate() {
            match entry(text) {
                Ok(Some((name, secret))) => credentials.add(name, secret),
                Ok(None) => {}
                Err(fault) => bad.push(BadLine { line: at + 1, fault }),
            }
        }
        if bad.is_empty() { Ok(credentials) } else { Err(bad) }
    }
}

// === impl SecretHash ===

impl SecretHash {
    /// The line of the file for this secret of `name`, without a line end.
    pub fn line(&self, name: &str) -> String {
        let (salt, hash) = (BASE64URL_NOPAD.encode(&self.salt), BASE64URL_NOPAD.encode(&self.hash));
        format!("{name}:{KIND}{salt}${hash}")
    }
}

// === impl BadLine ===

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; a line is NAME:sha256$SALT$HASH, as \"robotgate credential add NAME\" writes it",
            self.line,
            match self.fault {
                LineFault::Name => "no name that a credential can have begins this line",
                LineFault::Kind => "no hash that is known here follows the name",
                LineFault::Spoilt => "the salt or the hash is not whole",
            }
        )
    }
}

/// Whether a credential can have this name: not empty, and without a colon, a `#` in front, white space, or what does
/// not print or turns the direction of text.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c != ':' && !c.is_whitespace() && is_plain(c);
    (1..=MAX_NAME).contains(&text.len()) && !text.starts_with('#') && text.chars().all(fits)
}

/// The name of a line's credential; `None` for a comment or a line of another kind.
pub fn name_of(line: &str) -> Option<&str> {
    entry(line).ok().flatten().map(|(name, _)| name)
}

fn entry(line: &str) -> Result<Option<(&str, SecretHash)>, LineFault> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, rest) = line.split_once(':').ok_or(LineFault::Name)?;
    if !is_name(name) {
        return Err(LineFault::Name);
    }
    let (salt, hash) = rest
        .strip_prefix(KIND)
        .and_then(|rest| rest.split_once('$'))
        .ok_or(LineFault::Kind)?;
    let decoded = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| LineFault::Spoilt);
    let salt = decoded(salt)?;
    let hash = decoded(hash)?.try_into().map_err(|_| LineFault::Spoilt)?;
    if !(MIN_SALT..=MAX_SALT).contains(&salt.len()) {
        return Err(LineFault::Spoilt);
    }
    let salt = salt.into();
    Ok(Some((name, SecretHash { salt, hash })))
}

const KIND: &str = "sha256$";
/// Bytes of a name.
const MAX_NAME: usize = 128;
/// Bytes of a salt.
const MIN_SALT: usize = 8;
const MAX_SALT: usize = 64;
