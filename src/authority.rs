//! The local certificate authority. Bots trust its certificate, and it signs a leaf certificate for each host whose
//! TLS is intercepted.
//!
//! - [`Authority`] holds the certificate and its key. It loads the two from files or creates them, and signs leaf
//!   certificates.
//! - [`Leaves`] keeps a TLS server configuration with a leaf certificate for each host name.
//!
//! This module never overwrites or deletes an existing certificate or key. It never issues a leaf for a wildcard, or
//! one that is valid longer than the authority. It never prints a private key. It never reads the clock: the time is a
//! parameter, or comes from the clock that the caller gives to [`Leaves`]. It does not decide whether to intercept a
//! host, and does not check the certificates of origins.

use std::{
    fmt,
    path::Path,
    time::{Duration, SystemTime},
};

use data_encoding::HEXUPPER;
use rustls::{
    crypto::SecureRandom,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use sha2::{Digest, Sha256};

use self::{
    chain::{Chain, Validity},
    issuer::Issuer,
    pair::{Contents, Pair, Presence},
};
pub use self::{
    error::{AuthorityError, MintError},
    leaf::LEAF_LIFE,
    leaves::Leaves,
    name::NameError,
};
use crate::{files, origin::Host, pem, text::Second, trust};

mod chain;
mod create;
mod error;
mod issuer;
mod leaf;
mod leaves;
mod name;
mod pair;

/// A certificate authority: a certificate that clients trust, and the key that signs leaves in its name.
pub struct Authority {
    chain: Chain,
    certificate_pem: String,
    issuer: Issuer,
    random: &'static dyn SecureRandom,
}

/// Whether the certificate and its key were loaded or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Both files existed.
    Loaded,
    /// The files were created now, so no client trusts the certificate yet. Or this process completed a creation that
    /// was interrupted.
    Created,
}

// === impl Authority ===

impl Authority {
    /// Loads the certificate and its key from two files, or creates them if *neither* file exists.
    ///
    /// Creates missing directories with mode 0700, the key with 0600 and the certificate with 0644. If several
    /// processes start at the same time, all get the same pair. If a process is killed while it creates the files, the
    /// next start completes them. Blocks on the file system, so call it only at the start.
    ///
    /// # Errors
    ///
    /// Fails if only one of the files exists, the two do not belong together, the certificate may not sign others (see
    /// [`AuthorityError`]), or a file cannot be read or written. Never overwrites an existing file.
    pub fn load_or_create(
        certificate: &Path,
        key: &Path,
        now: SystemTime,
    ) -> Result<(Self, Provenance), AuthorityError> {
        let pair = Pair::new(certificate, key);
        match pair.presence()? {
            Presence::Both => {
                let authority = Self::from_contents(&pair.read()?, now)?;
                pair.tidy();
                return Ok((authority, Provenance::Loaded));
            }
            // One file is missing, and so is its directory. If its creation had been interrupted, the directory would
            // exist and contain the file under a temporary name. So there is nothing to complete.
            Presence::Half { present, missing } if !files::folder_of(missing).is_dir() => {
                return Err(AuthorityError::half(present, missing));
            }
            Presence::Half { .. } => {}
            Presence::Neither => pair.make_directories()?,
        }

        let lock = pair.lock()?;
        // Look again: while this process waited for the lock, another one can have created the files.
        let origin = match pair.presence()? {
            Presence::Both => Provenance::Loaded,
            Presence::Half { present, missing } => {
                let half = || AuthorityError::half(present, missing);
                let rest = pair.read_unfinished(missing).ok_or_else(half)?;
                Self::from_contents(&rest, now).map_err(|_| half())?;
                pair.finish(missing)?;
                Provenance::Created
            }
            Presence::Neither => {
                let random = rustls::crypto::ring::default_provider().secure_random;
                pair.create(&create::new_pair(random, now)?)?;
                Provenance::Created
            }
        };
        drop(lock);

        let authority = Self::from_contents(&pair.read()?, now)?;
        Ok((authority, origin))
    }

    /// Checks whether the certificate and its key could be created at these paths. Creates nothing.
    ///
    /// # Errors
    ///
    /// Fails if this user cannot write there.
    pub fn check_folders(certificate: &Path, key: &Path) -> Result<(), AuthorityError> {
        for path in [certificate, key] {
            let folder = files::folder_of(path);
            files::may_make_in(folder).map_err(AuthorityError::write(folder))?;
        }
        Ok(())
    }

    /// Loads the certificate and its key. Creates nothing.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Self::load_or_create`], and with [`AuthorityError::Missing`] if neither file
    /// exists.
    pub fn load(certificate: &Path, key: &Path, now: SystemTime) -> Result<Self, AuthorityError> {
        let pair = Pair::new(certificate, key);
        match pair.settled_presence()? {
            Presence::Both => Self::from_contents(&pair.read()?, now),
            Presence::Half { present, missing } => Err(AuthorityError::half(present, missing)),
            Presence::Neither => Err(AuthorityError::Missing {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
            }),
        }
    }

    /// Returns all certificates of the file as PEM (RFC 7468), in the file's order. Clients have to trust these. Other
    /// contents of the file are left out.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the certificate that signs the leaves, which is the first in the file.
    pub fn certificate_der(&self) -> &CertificateDer<'static> {
        self.chain.issuer()
    }

    /// Returns the SHA-256 digest of [`Self::certificate_der`], as upper-case hexadecimal digits with colons between
    /// the bytes. `openssl x509 -fingerprint -sha256` and browsers show it in the same way.
    pub fn fingerprint(&self) -> String {
        Sha256::digest(self.certificate_der())
            .iter()
            .map(|octet| HEXUPPER.encode(&[*octet]))
            .collect::<Vec<_>>()
            .join(":")
    }

    /// Returns the certificate's subject in readable form.
    pub fn subject(&self) -> &str {
        &self.chain.subject
    }

    /// Returns the extensions that RFC 5280 §4.2.1 requires but the certificates of the file lack. Most clients do not
    /// check them, but strict ones refuse the leaf certificates. Empty for a certificate that robotgate created.
    pub fn lacks(&self) -> &[&'static str] {
        &self.chain.lacks
    }

    /// Returns the first moment at which all certificates of the file are valid.
    pub fn not_before(&self) -> SystemTime {
        self.chain.validity.not_before
    }

    /// Returns the last moment at which all certificates of the file are valid. No leaf certificate is valid longer.
    pub fn not_after(&self) -> SystemTime {
        self.chain.validity.not_after
    }

    /// Issues a leaf certificate for the host `name`, with a new key. It is valid from an hour before `now` until
    /// [`LEAF_LIFE`] after it, but only while the authority is valid too.
    ///
    /// This takes CPU time: about a tenth of a millisecond if the authority has a P-256 key, and several milliseconds
    /// if it has a large RSA key. Do not call it on asynchronous threads.
    ///
    /// # Errors
    ///
    /// Fails if a certificate cannot contain the name, or the authority is not valid at `now`.
    pub fn mint(&self, name: &Host, now: SystemTime) -> Result<CertifiedKey, MintError> {
        self.mint_valid(name, self.leaf_validity(now)?)
    }

    fn leaf_validity(&self, now: SystemTime) -> Result<Validity, MintError> {
        Validity::of_leaf(self.chain.validity, now)
    }

    fn mint_valid(&self, name: &Host, validity: Validity) -> Result<CertifiedKey, MintError> {
        let (leaf, key) = leaf::mint(&self.issuer, self.random, name, validity)?;
        let certificates = std::iter::once(leaf).chain(self.chain.sent.iter().cloned()).collect();
        Ok(CertifiedKey::new(certificates, key))
    }

    fn from_contents(contents: &Contents<'_>, now: SystemTime) -> Result<Self, AuthorityError> {
        let chain = Chain::parse(contents.certificate_path, &contents.certificate, now)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|_| AuthorityError::no_key(contents.key_path, &contents.key))?;
        let issuer = Issuer::new(&chain, &key, contents)?;
        let authority = Self {
            certificate_pem: chain.certificates.iter().map(pem::certificate).collect(),
            chain,
            issuer,
            random: rustls::crypto::ring::default_provider().secure_random,
        };
        authority.warn(now);
        Ok(authority)
    }

    /// Logs what may soon go wrong with the certificate, such as its expiry, or what strict clients object to.
    fn warn(&self, now: SystemTime) {
        let subject = self.subject();
        if !self.lacks().is_empty() {
            tracing::warn!(
                subject,
                lacks = %self.lacks().join(", "),
                "the authority's certificate lacks extensions that RFC 5280 section 4.2.1 requires, so strict \
                 clients, such as Python from 3.13 on, refuse the certificates that it signs; have it issued again \
                 with these extensions"
            );
        }
        if self.issuer.is_ed25519() {
            tracing::warn!(
                subject,
                "the authority signs with Ed25519, and browsers refuse such certificates; if browsers use this \
                 proxy, use ECDSA P-256"
            );
        }
        if self.not_after().duration_since(now).is_ok_and(|left| left < SOON) {
            tracing::warn!(
                subject,
                not_after = %Second(self.not_after()),
                "the authority's certificate expires soon; before that, replace it and its key, and make clients \
                 trust the new one"
            );
        }
    }
}

impl From<&Authority> for trust::Certificate {
    fn from(authority: &Authority) -> Self {
        Self {
            subject: authority.subject().to_owned(),
            fingerprint: authority.fingerprint(),
            not_before: authority.not_before(),
            not_after: authority.not_after(),
            pem: authority.certificate_pem().to_owned(),
            der: authority.certificate_der().to_vec(),
        }
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("subject", &self.subject())
            .finish_non_exhaustive()
    }
}

/// Warnings begin this long before the authority's certificate expires.
const SOON: Duration = Duration::from_secs(30 * 24 * 60 * 60);
