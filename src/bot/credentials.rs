//! The credentials that clients may present: for each name the hashes of its secrets, and whether one fits.
//!
//! Pure: the text of the file comes from elsewhere. It keeps no secret, takes as long over an unknown name as over a
//! known one, and prints no hash.
//!
//! The hash is one SHA-256 over a salt and the secret. Secrets are 256 random bits, so that nobody finds one by trying,
//! however fast a try is; a slow hash would only make each request pay.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

mod line;

pub use line::{BadLine, LineFault, is_name, name_of};

/// All credentials of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    by_name: HashMap<Arc<str>, Known>,
    /// The most secrets that a name has.
    most: usize,
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) name: Arc<str>,
    /// In the file's order; any of them fits.
    secrets: Vec<SecretHash>,
    /// The bots that it stands for, by their places in the configuration.
    pub(super) bots: Box<[usize]>,
}

/// A secret as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretHash {
    salt: Box<[u8]>,
    hash: [u8; 32],
}

/// A credential that holds.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    pub(super) known: &'a Known,
    secret: &'a SecretHash,
}

/// What is left of a credential that held once, to ask later whether it still does: not the secret, and no proof by
/// itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Voucher {
    name: Arc<str>,
    secret: SecretHash,
}

// === impl Credentials ===

impl Credentials {
    /// Whether the name has this secret. A name that stands for no bot is as unknown as one that is not there.
    pub(super) fn verify(&self, name: &[u8], secret: &[u8]) -> Option<Verified<'_>> {
        let known = str::from_utf8(name)
            .ok()
            .and_then(|name| self.by_name.get(name))
            .filter(|known| !known.bots.is_empty());
        let mut found = None;
        // As often for each name, so that the time tells nothing.
        for index in 0..self.most {
            let candidate = known.and_then(|known| Some((known, known.secrets.get(index)?)));
            let compared = candidate.map_or(&*NOBODYS, |(_, secret)| secret);
            if bool::from(compared.fits(secret)) {
                found = candidate.or(found);
            }
        }
        found.map(|(known, secret)| Verified { known, secret })
    }

    /// Whether a credential that held once still does: the same secret is on file under the same name.
    pub(super) fn recheck(&self, voucher: &Voucher) -> Option<Verified<'_>> {
        let known = self.by_name.get(&voucher.name).filter(|known| !known.bots.is_empty())?;
        let secret = known.secrets.iter().find(|secret| **secret == voucher.secret)?;
        Some(Verified { known, secret })
    }

    /// Says for each name which bots it stands for.
    pub(super) fn assign(&mut self, bots_of: impl Fn(&str) -> Box<[usize]>) {
        for known in self.by_name.values_mut() {
            known.bots = bots_of(&known.name);
        }
    }

    /// Whether there is such a name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The names that stand for no bot, sorted. Who presents one is refused.
    pub fn idle(&self) -> Vec<&str> {
        let idle = self.by_name.values().filter(|known| known.bots.is_empty());
        let mut names: Vec<_> = idle.map(|known| &*known.name).collect();
        names.sort_unstable();
        names
    }

    /// The names whose secrets are not those of `after`, sorted, and what became of each.
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

    /// The names, sorted, and how many secrets each has.
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
        let known = self.by_name.entry(name.clone()).or_insert_with(|| Known {
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
    /// The hash of a secret. The salt is random, and of no other secret.
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
    /// The credential's name.
    pub fn name(&self) -> &'a str {
        &self.known.name
    }

    /// What to ask later by.
    pub fn voucher(&self) -> Voucher {
        Voucher {
            name: self.known.name.clone(),
            secret: self.secret.clone(),
        }
    }
}

// === impl Voucher ===

impl fmt::Debug for Voucher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Voucher({:?})", self.name)
    }
}

fn digest(salt: &[u8], secret: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(secret).finalize().into()
}

/// Bytes of the salts that are made here.
pub const SALT: usize = 16;

static NOBODYS: std::sync::LazyLock<SecretHash> = std::sync::LazyLock::new(|| SecretHash {
    salt: Box::new([0; SALT]),
    hash: [0; 32],
});
