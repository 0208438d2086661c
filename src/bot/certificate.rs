//! The names in a client's certificate. They are compared with the `certificates` of a bot in the configuration.
//!
//! This module verifies nothing: TLS has verified the certificate and that the client has its key. It does no I/O.

use std::{fmt, time::SystemTime};

use data_encoding::HEXLOWER_PERMISSIVE;
use sha2::{Digest as _, Sha256};
use x509_parser::{extensions::GeneralName, prelude::FromDer as _, prelude::X509Certificate};

/// The names and the expiry of a verified client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// DNS names (RFC 5280 §4.2.1.6).
    dns: Vec<Box<str>>,
    uris: Vec<Box<str>>,
    /// Common names (CN) of the subject.
    common: Vec<Box<str>>,
    sha256: [u8; 32],
    not_after: SystemTime,
}

/// An entry of a bot's `certificates`: which certificates prove that a client is the bot.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum CertificateName {
    /// The one certificate whose DER has this SHA-256.
    Sha256([u8; 32]),
    /// Every certificate with this DNS name, URI or common name.
    Name(Box<str>),
}

/// Why an entry of a bot's `certificates` can match no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCertificateName {
    #[error(
        "is not a name; write a DNS name, a URI or the common name of the client's certificate, without control \
         characters and without spaces around it"
    )]
    Empty,
    #[error(
        "is not the SHA-256 of a certificate; write \"sha256:\" and the 64 hexadecimal digits, with or without \
         colons, that this command prints: openssl x509 -in CERTIFICATE -noout -fingerprint -sha256"
    )]
    Digest,
}

/// The client's certificate cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate or its subjectAltName is malformed; have it issued again")]
pub struct UnreadableCertificate;

// === impl ClientCertificate ===

impl ClientCertificate {
    /// Parses a certificate in DER.
    pub fn from_der(der: &[u8]) -> Result<Self, UnreadableCertificate> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| UnreadableCertificate)?;
        let mut read = Self {
            dns: Vec::new(),
            uris: Vec::new(),
            common: certificate
                .subject()
                .iter_common_name()
                .filter_map(|name| name.as_str().ok().map(Box::from))
                .collect(),
            sha256: Sha256::digest(der).into(),
            not_after: certificate.validity().not_after.to_datetime().into(),
        };
        let names = certificate
            .subject_alternative_name()
            .map_err(|_| UnreadableCertificate)?;
        for name in names.iter().flat_map(|names| &names.value.general_names) {
            match name {
                GeneralName::DNSName(name) => read.dns.push((*name).into()),
                GeneralName::URI(uri) => read.uris.push((*uri).into()),
                _ => {}
            }
        }
        Ok(read)
    }

    /// Returns whether the certificate has not expired. TLS has checked that its validity has begun.
    pub fn holds(&self, now: SystemTime) -> bool {
        now <= self.not_after
    }

    /// Returns whether an entry matches this certificate. The case of DNS names does not matter, and `*.example.com` in
    /// a certificate matches only the entry `*.example.com`.
    pub fn is(&self, name: &CertificateName) -> bool {
        match name {
            CertificateName::Sha256(sha256) => self.sha256 == *sha256,
            CertificateName::Name(name) => {
                self.dns.iter().any(|dns| dns.eq_ignore_ascii_case(name))
                    || self.uris.contains(name)
                    || self.common.contains(name)
            }
        }
    }
}

// === impl CertificateName ===

impl CertificateName {
    /// Parses an entry of a bot's `certificates`.
    pub fn new(text: &str) -> Result<Self, BadCertificateName> {
        if text.trim().is_empty() || text.trim() != text || text.chars().any(char::is_control) {
            return Err(BadCertificateName::Empty);
        }
        let Some(digest) = text.strip_prefix("sha256:") else {
            return Ok(Self::Name(text.into()));
        };
        let digits = digest.replace(':', "");
        let digest = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok();
        let digest = digest.and_then(|digest| digest.try_into().ok());
        digest.map(Self::Sha256).ok_or(BadCertificateName::Digest)
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(digest) => write!(f, "sha256:{}", HEXLOWER_PERMISSIVE.encode(digest)),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Debug for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}
