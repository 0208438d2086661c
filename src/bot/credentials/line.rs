//! The text of a credentials file: lines of `NAME:sha256$SALT$HASH`, and `#` comments.
//!
//! No error quotes a line, because an invalid line can contain a secret.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;

use super::{Credentials, SecretHash};
use crate::text::is_plain;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Line number, from 1.
    pub line: usize,
    pub fault: LineFault,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFault {
    Name,
    Kind,
    Spoilt,
}

// === impl Credentials ===

impl Credentials {
    /// Parses the text of a credentials file.
    ///
    /// # Errors
    /// Fails if any line is invalid. The error lists all invalid lines.
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
    /// Returns the line for the credential `name` in a credentials file, without a line end.
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
            "{}: {}; a line has the form NAME:sha256$SALT$HASH, and \"robotgate credential add NAME\" writes it",
            self.line,
            match self.fault {
                LineFault::Name => "the line does not begin with a name that a credential can have",
                LineFault::Kind => "the name is not followed by a kind of hash that robotgate knows, a salt and a hash",
                LineFault::Spoilt => "the salt or the hash is invalid",
            }
        )
    }
}

/// Returns whether `text` can be the name of a credential: at most 128 bytes, without a colon, white space or
/// unprintable characters, and without a `#` at the start.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c != ':' && !c.is_whitespace() && is_plain(c);
    (1..=MAX_NAME).contains(&text.len()) && !text.starts_with('#') && text.chars().all(fits)
}

/// Returns the name of the credential on a line, or `None` for a comment or an invalid line.
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
/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 128;
/// Smallest and largest length of a salt, in bytes.
const MIN_SALT: usize = 8;
const MAX_SALT: usize = 64;
