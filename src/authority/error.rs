//! Why an authority cannot be used, and why it issues no leaf certificate. No message contains a part of a key.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::name::NameError;
use crate::{
    files::{Exposure, Unreadable},
    pem,
    text::Second,
};

/// Why there is no authority that can sign leaf certificates.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AuthorityError {
    #[error(
        "found no certificate authority: neither {} nor {} exists; start the proxy once to create them, or put your own \
         certificate and key there", certificate.display(), key.display()
    )]
    Missing { certificate: PathBuf, key: PathBuf },

    #[error(
        "{} exists but {} does not: correct the path, or restore the missing file from a backup. Or move the existing \
         file away, and robotgate creates a new pair at its next start or SIGHUP; then make clients trust the new \
         certificate",
        present.display(), missing.display()
    )]
    Half { present: PathBuf, missing: PathBuf },

    #[error("{} cannot contain both the certificate and the key of a new authority: configure two files", .0.display())]
    SamePath(PathBuf),

    #[error("cannot read {}: {}", path.display(), Unreadable(source))]
    Read { path: PathBuf, source: io::Error },

    #[error("cannot write {}: {source}; correct this, or configure paths in another folder", path.display())]
    Write { path: PathBuf, source: io::Error },

    #[error("another process keeps the folder {} locked: stop that process, then try again", .0.display())]
    Locked(PathBuf),

    #[error("{0}; if another user could have copied this key, replace the certificate and the key")]
    Exposed(Exposure),

    #[error("{} is not a certificate in PEM form: {detail}", path.display())]
    Certificate { path: PathBuf, detail: String },

    #[error("{} contains {what}", path.display())]
    NoKey { path: PathBuf, what: &'static str },

    #[error(
        "robotgate cannot use the key {} ({detail}): use ECDSA P-256 or P-384, RSA of 2048 to 4096 bits, or Ed25519", path.display()
    )]
    Key { path: PathBuf, detail: String },

    #[error(
        "the key {} does not belong to the certificate {}: use a certificate and a key that were created together; \
         if the certificate file has several certificates, put the one for this key first",
        key.display(), certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },

    /// The certificate may not sign other certificates (RFC 5280 §4.2.1.3, §4.2.1.9, §4.2.1.12).
    #[error(
        "the certificate `{subject}` in {} cannot sign certificates for hosts: {detail}; have it issued again as the \
         certificate of an authority", path.display()
    )]
    NotAuthority {
        path: PathBuf,
        subject: String,
        detail: &'static str,
    },

    #[error(
        "in {}, `{subject}` is not followed by its issuer: put the authority's certificate first, each certificate's \
         issuer after it, and no other certificates", path.display()
    )]
    Chain { path: PathBuf, subject: String },

    #[error(
        "the certificate `{subject}` in {} expired at {not_after}: put a renewed certificate there, or move the \
         certificate and the key away, and robotgate creates a new pair at its next start or SIGHUP; then make clients \
         trust the new certificate", path.display()
    )]
    Expired {
        path: PathBuf,
        subject: String,
        not_after: Second,
    },

    #[error(
        "the certificate `{subject}` in {} is only valid from {not_before}, and the clock says {now}: set the clock",
        path.display()
    )]
    NotYetValid {
        path: PathBuf,
        subject: String,
        not_before: Second,
        now: Second,
    },

    #[error("the clock says {0}, which cannot be right: set it, then try again")]
    Clock(Second),

    #[error("cannot create an authority: {0}")]
    Make(String),
}

/// Why no leaf certificate could be issued for a name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MintError {
    #[error("cannot create a certificate for the host `{}`: {reason}; correct the host in the client's URL",
        name.escape_debug())]
    Name { name: String, reason: NameError },

    #[error(
        "the authority's certificate expired at {not_after}: renew it, or move it and its key away so that \
         robotgate creates a new pair. Then send robotgate a SIGHUP, and make clients trust the new certificate"
    )]
    Expired { not_after: Second },

    #[error("the authority's certificate is only valid from {not_before}, and the clock says {now}: set the clock")]
    NotYetValid { not_before: Second, now: Second },

    #[error("the system provides no random numbers: check that /dev/urandom and the getrandom call are available")]
    Random,

    #[error(
        "cannot build a certificate: {0}; please report this and attach the authority's certificate, but never its key"
    )]
    LayOut(#[from] rcgen::Error),

    #[error(
        "cannot encode a certificate; please report this and attach the authority's certificate, but never its key"
    )]
    Encoding,

    #[error(
        "the authority's key cannot sign: {0}; replace the key and its certificate, send robotgate a SIGHUP, and make \
         clients trust the new certificate"
    )]
    Sign(rustls::Error),

    #[error(
        "robotgate cannot use the certificate that it has just issued for this host: {0}; please report this and \
         attach the authority's certificate, but never its key"
    )]
    Server(rustls::Error),

    #[error("creating the certificate was interrupted, probably because the proxy is stopping")]
    Interrupted,
}

// === impl AuthorityError ===

impl AuthorityError {
    /// Returns the names of the configuration keys that the error is about.
    pub fn keys(&self) -> &'static str {
        match self {
            Self::Certificate { .. }
            | Self::NotAuthority { .. }
            | Self::Chain { .. }
            | Self::Expired { .. }
            | Self::NotYetValid { .. } => "https.ca-certificate",
            Self::Exposed(_) | Self::NoKey { .. } | Self::Key { .. } => "https.ca-key",
            _ => "https.ca-certificate and https.ca-key",
        }
    }

    pub(super) fn half(present: &Path, missing: &Path) -> Self {
        Self::Half {
            present: present.to_owned(),
            missing: missing.to_owned(),
        }
    }

    pub(super) fn no_key(path: &Path, contents: &[u8]) -> Self {
        Self::NoKey {
            path: path.to_owned(),
            what: pem::in_place_of_key(contents),
        }
    }

    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
