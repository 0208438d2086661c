//! The local certificate authority. Bots trust its certificate, and it signs a leaf certificate for each host whose TLS
//! is intercepted.
//!
//! This module never overwrites a certificate or key, never prints a key, and never issues a leaf that is valid longer
//! than the authority. Only [`Leaves`] reads a clock.

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
    /// The files were created or completed now, so no client trusts the certificate yet.
    Created,
}

// === impl Authority ===

impl Authority {
    /// Loads the certificate and its key from two files, or creates them if *neither* file exists.
    ///
    /// Creates the key with mode 0600. Several processes that start at the same time get the same pair, and the next
    /// start completes an interrupted creation. Blocks on the file system.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be read, created or used: for example if the certificate is not valid at `now` or may
    /// not sign leaves, if the key does not belong to it, or if one file is missing and no creation was interrupted.
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
            // If a creation was interrupted, the folder of the missing file contains this file under a temporary name.
            // Without the folder, no creation was interrupted.
            Presence::Half { present, missing } if !files::folder_of(missing).is_dir() => {
                return Err(AuthorityError::half(present, missing));
            }
            Presence::Half { .. } => {}
            Presence::Neither => pair.make_directories()?,
        }

        let lock = pair.lock()?;
        // Another process can have created the files in the meantime.
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

    /// Checks whether the certificate and its key could be created at these paths.
    ///
    /// # Errors
    ///
    /// Fails if this process may not create files there.
    pub fn check_folders(certificate: &Path, key: &Path) -> Result<(), AuthorityError> {
        for path in [certificate, key] {
            let folder = files::folder_of(path);
            files::may_make_in(folder).map_err(AuthorityError::write(folder))?;
        }
        Ok(())
    }

    /// Loads the certificate and its key.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::load_or_create`], and with [`AuthorityError::Missing`] if neither file exists.
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

    /// Returns the certificates that clients have to trust, as PEM (RFC 7468).
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the certificate that signs the leaves, which is the first in the file.
    pub fn certificate_der(&self) -> &CertificateDer<'static> {
        self.chain.issuer()
    }

    /// Returns the SHA-256 digest of [`Self::certificate_der`], in the form of `openssl x509 -fingerprint -sha256`.
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

    /// Returns what RFC 5280 §4.2.1 requires but the certificates of the file lack, such as `keyUsage`. If they lack
    /// anything, strict clients refuse the leaves.
    pub fn lacks(&self) -> &[&'static str] {
        &self.chain.lacks
    }

    /// Returns the first moment at which all certificates of the file are valid.
    pub fn not_before(&self) -> SystemTime {
        self.chain.validity.not_before
    }

    /// Returns the last moment at which all certificates of the file are valid.
    pub fn not_after(&self) -> SystemTime {
        self.chain.validity.not_after
    }

    /// Issues a leaf certificate for the host `name`, with a new key. The leaf is valid from an hour before `now` until
    /// [`LEAF_LIFE`] after `now`, but only while the authority is valid too.
    ///
    /// Takes up to several milliseconds of CPU time, so do not call it on asynchronous threads.
    ///
    /// # Errors
    ///
    /// Fails if a certificate cannot contain the name, or if the authority is not valid at `now`.
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

    fn warn(&self, now: SystemTime) {
        let subject = self.subject();
        if !self.lacks().is_empty() {
            tracing::warn!(
                subject,
                lacks = %self.lacks().join(", "),
                "a certificate of the authority lacks what RFC 5280 section 4.2.1 requires, so strict clients, such as \
                 Python from 3.13 on, refuse the certificates that robotgate signs; have it issued again with what it \
                 lacks"
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
                "the authority's certificate expires soon. Before that, renew it, or move it and its key away \
                 so that robotgate creates a new pair. Then send robotgate a SIGHUP, and make clients trust the new \
                 certificate"
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
