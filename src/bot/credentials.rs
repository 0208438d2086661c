//! The credentials that clients can present: the hashes of the secrets for each name, and how a secret is verified.
//!
//! This module keeps no secret and does no I/O. No `Debug` output contains a hash.
//!
//! The hash is one SHA-256 over a salt and the secret. A slow hash is not needed for the secrets that robotgate
//! generates: they have 256 random bits and cannot be guessed.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

mod line;

pub use line::{BadLine, LineFault, is_name, name_of};

/// All credentials of a credentials file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    by_name: HashMap<Arc<str>, NamedSecrets>,
    most: usize,
}

/// The hashed secrets of a name, and the bots that the name identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedSecrets {
    pub(super) name: Arc<str>,
    /// In the order of the file. Any of the secrets is accepted.
    secrets: Vec<SecretHash>,
    /// The indices of the bots that a client with this credential can be.
    pub(super) bots: Box<[usize]>,
}

/// The salted hash of a secret, as the credentials file contains it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretHash {
    salt: Box<[u8]>,
    hash: [u8; 32],
}

/// A credential whose secret was right.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    pub(super) known: &'a NamedSecrets,
    secret: &'a SecretHash,
}

/// Lets robotgate check later whether a verified credential is still valid. It does not contain the secret, and proves
/// nothing by itself.
#[derive(Clone, PartialEq, Eq)]
pub struct CredentialRecord {
    name: Arc<str>,
    secret: SecretHash,
}

// === impl Credentials ===

impl Credentials {
    /// Returns `None` if the secret is wrong, or if the name is unknown or belongs to no bot.
    pub(super) fn verify(&self, name: &[u8], secret: &[u8]) -> Option<Verified<'_>> {
        let known = str::from_utf8(name)
            .ok()
            .and_then(|name| self.by_name.get(name))
            .filter(|known| !known.bots.is_empty());
        let mut found = None;
        // Compare the same number of hashes for each name, so that the time does not reveal which names exist.
        for index in 0..self.most {
            let candidate = known.and_then(|known| Some((known, known.secrets.get(index)?)));
            let compared = candidate.map_or(&*DUMMY_HASH, |(_, secret)| secret);
            if bool::from(compared.fits(secret)) {
                found = candidate.or(found);
            }
        }
        found.map(|(known, secret)| Verified { known, secret })
    }

    /// Returns the credential if the credentials file still has the same salted hash under the same name, and the name
    /// still belongs to a bot.
    pub(super) fn recheck(&self, credential_record: &CredentialRecord) -> Option<Verified<'_>> {
        let known = self
            .by_name
            .get(&credential_record.name)
            .filter(|known| !known.bots.is_empty())?;
        let secret = known
            .secrets
            .iter()
            .find(|secret| **secret == credential_record.secret)?;
        Some(Verified { known, secret })
    }

    pub(super) fn assign(&mut self, bots_of: impl Fn(&str) -> Box<[usize]>) {
        for known in self.by_name.values_mut() {
            known.bots = bots_of(&known.name);
        }
    }

    /// Returns whether the file has a secret for this name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the names of the credentials that belong to no bot, sorted. A client that presents one is refused.
    pub fn idle(&self) -> Vec<&str> {
        let idle = self.by_name.values().filter(|known| known.bots.is_empty());
        let mut names: Vec<_> = idle.map(|known| &*known.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the names whose secrets differ in `after`, sorted, each with `added`, `removed` or `changed`.
    pub fn changes<'a>(&'a self, after: &'a Self) -> Vec<(&'a str, &'static str)> {
        let secrets = |all: &'a Self, name: &Arc<str>| all.by_name.get(name).map(|known| &known.secrets);
        let names: BTreeSet<&Arc<str>> = self.by_name.keys().chain(after.by_name.keys()).collect();
        let change = |name: &'a Arc<str>| match (secrets(self, name), secrets(after, name)) {
            (None, _) => Some((&**name, "added")),
            (_, None) => Some((&**name, "removed")),
            (before, after) => (before != after).then_some((&**name, "changed")),
        };
        names.into_iter().filter_map(change).collect()
    }

    /// Returns the names, sorted, each with the number of its secrets.
    pub fn names(&self) -> Vec<(&str, usize)> {
        let mut names: Vec<_> = self
            .by_name
            .values()
            .map(|known| (&*known.name, known.secrets.len()))
            .collect();
        names.sort_unstable();
        names
    }

    fn add(&mut self, name: &str, secret: SecretHash) {
        let name: Arc<str> = name.into();
        let known = self.by_name.entry(name.clone()).or_insert_with(|| NamedSecrets {
            name,
            secrets: Vec::new(),
            bots: Box::default(),
        });
        known.secrets.push(secret);
        self.most = self.most.max(known.secrets.len());
    }
}

// === impl SecretHash ===

impl SecretHash {
    /// Hashes a secret. The salt must be random, and must not be used for another secret.
    pub fn new(salt: [u8; SALT], secret: &[u8]) -> Self {
        Self {
            hash: digest(&salt, secret),
            salt: salt.into(),
        }
    }

    fn fits(&self, secret: &[u8]) -> Choice {
        digest(&self.salt, secret).ct_eq(&self.hash)
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(..)")
    }
}

// === impl Verified ===

impl<'a> Verified<'a> {
    pub fn name(&self) -> &'a str {
        &self.known.name
    }

    pub fn credential_record(&self) -> CredentialRecord {
        CredentialRecord {
            name: self.known.name.clone(),
            secret: self.secret.clone(),
        }
    }
}

// === impl CredentialRecord ===

impl fmt::Debug for CredentialRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CredentialRecord({:?})", self.name)
    }
}

fn digest(salt: &[u8], secret: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(secret).finalize().into()
}

/// Length of a generated salt, in bytes.
pub const SALT: usize = 16;

static DUMMY_HASH: std::sync::LazyLock<SecretHash> = std::sync::LazyLock::new(|| SecretHash {
    salt: Box::new([0; SALT]),
    hash: [0; 32],
});
