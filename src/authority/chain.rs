//! Parses the authority's certificate file, and checks whether its certificates may sign leaf certificates. This module
//! never reads a private key. It verifies no signatures, because clients do.

use std::{path::Path, time::SystemTime};

use rustls::pki_types::CertificateDer;
use x509_parser::{certificate::X509Certificate, extensions::ParsedExtension, prelude::FromDer, x509::X509Version};

use super::error::AuthorityError;
use crate::{pem, text::Second};

pub(super) struct Chain {
    /// In the order of the file, the signer of the leaf certificates first. Never empty.
    pub(super) certificates: Vec<CertificateDer<'static>>,
    /// Sent after the leaf certificate in a handshake.
    pub(super) sent: Vec<CertificateDer<'static>>,
    pub(super) subject: String,
    /// The signer's subject as a DER `Name`, byte for byte as in its certificate.
    pub(super) subject_der: Vec<u8>,
    /// The signer's DER `SubjectPublicKeyInfo`.
    pub(super) public_key_der: Vec<u8>,
    /// The signer's subject key identifier (RFC 5280 §4.2.1.2).
    pub(super) key_id: Option<Vec<u8>>,
    /// What strict clients require but the certificates lack, such as `keyUsage`.
    pub(super) lacks: Vec<&'static str>,
    pub(super) validity: Validity,
}

/// When a certificate is valid. Both ends are included (RFC 5280 §4.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before: SystemTime,
    pub(super) not_after: SystemTime,
}

// === impl Chain ===

impl Chain {
    pub(super) fn parse(path: &Path, contents: &[u8], now: SystemTime) -> Result<Self, AuthorityError> {
        let failed = |detail: String| AuthorityError::Certificate {
            path: path.to_owned(),
            detail,
        };
        let unreadable = |detail: String| {
            failed(format!(
                "{detail}; copy the whole certificate into the file, from its BEGIN line to its END line"
            ))
        };
        let certificates = pem::certificates(contents).map_err(|error| unreadable(error.to_string()))?;
        let (lines, certificates): (Vec<_>, Vec<_>) = certificates.into_iter().unzip();
        let parsed = std::iter::zip(lines, &certificates)
            .map(|(line, der)| match X509Certificate::from_der(der) {
                Ok(([], certificate)) => Ok(certificate),
                Ok(_) => Err(unreadable(format!(
                    "the block at line {line} has more data after the certificate"
                ))),
                Err(_) => Err(unreadable(format!("the certificate at line {line} is damaged"))),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let Some(issuer) = parsed.first() else {
            let detail = "it has no CERTIFICATE block; if it is in DER form, `openssl x509 -inform DER -in old.cer \
                          -out new.pem` converts it";
            return Err(failed(detail.into()));
        };

        for certificate in &parsed {
            check_authority(certificate).map_err(|detail| AuthorityError::NotAuthority {
                path: path.to_owned(),
                subject: certificate.subject().to_string(),
                detail,
            })?;
            check_time(path, certificate, now)?;
        }
        for pair in parsed.windows(2) {
            if pair[0].issuer().as_raw() != pair[1].subject().as_raw() {
                return Err(AuthorityError::Chain {
                    path: path.to_owned(),
                    subject: pair[0].subject().to_string(),
                });
            }
        }

        // A client already has its root certificates, so they are not sent (RFC 8446 §4.4.2).
        let sent = parsed
            .iter()
            .zip(&certificates)
            .filter(|(certificate, _)| !is_root(certificate))
            .map(|(_, der)| der.clone())
            .collect();
        let validity = parsed
            .iter()
            .map(validity_of)
            .fold(validity_of(issuer), |all, each| Validity {
                not_before: all.not_before.max(each.not_before),
                not_after: all.not_after.min(each.not_after),
            });

        let mut lacks: Vec<_> = parsed.iter().flat_map(lacks_of).collect();
        lacks.sort_unstable();
        lacks.dedup();

        Ok(Self {
            sent,
            subject: issuer.subject().to_string(),
            subject_der: issuer.subject().as_raw().to_vec(),
            public_key_der: issuer.public_key().raw.to_vec(),
            key_id: key_id_of(issuer),
            lacks,
            validity,
            certificates,
        })
    }

    pub(super) fn issuer(&self) -> &CertificateDer<'static> {
        // `parse` refuses a file without certificates.
        &self.certificates[0]
    }
}

fn check_authority(certificate: &X509Certificate<'_>) -> Result<(), &'static str> {
    if certificate.version() != X509Version::V3 {
        return Err("it is not an X.509 certificate of version 3 (RFC 5280 section 4.1.2.1)");
    }
    match certificate.basic_constraints() {
        Ok(Some(constraints)) if constraints.value.ca => {}
        Ok(_) => return Err("it is not marked as the certificate of an authority (basicConstraints CA:TRUE)"),
        Err(_) => return Err("its basicConstraints cannot be read"),
    }
    match certificate.key_usage() {
        Ok(None) => {}
        Ok(Some(usage)) if usage.value.key_cert_sign() => {}
        Ok(Some(_)) => return Err("its keyUsage lacks keyCertSign"),
        Err(_) => return Err("its keyUsage cannot be read"),
    }
    // RFC 5280 §4.2.1.12 expects `extendedKeyUsage` in leaf certificates. If an authority's certificate has it, many
    // clients require `serverAuth` in it.
    match certificate.extended_key_usage() {
        Ok(None) => Ok(()),
        Ok(Some(usage)) if usage.value.any || usage.value.server_auth => Ok(()),
        Ok(Some(_)) => Err("its extendedKeyUsage lacks serverAuth"),
        Err(_) => Err("its extendedKeyUsage cannot be read"),
    }
}

fn lacks_of(certificate: &X509Certificate<'_>) -> impl Iterator<Item = &'static str> {
    let has = |found: fn(&ParsedExtension<'_>) -> bool| {
        certificate
            .iter_extensions()
            .any(|extension| found(extension.parsed_extension()))
    };
    let constraints = certificate.basic_constraints().ok().flatten();
    [
        // Required by RFC 5280 §4.2.1.9.
        (
            constraints.is_some_and(|constraints| constraints.critical),
            "the critical mark of basicConstraints",
        ),
        // Required by RFC 5280 §4.2.1.3.
        (has(|it| matches!(it, ParsedExtension::KeyUsage(_))), "keyUsage"),
        // Required by RFC 5280 §4.2.1.2.
        (key_id_of(certificate).is_some(), "subjectKeyIdentifier"),
        // Required by RFC 5280 §4.2.1.1, except in root certificates.
        (
            is_root(certificate) || has(|it| matches!(it, ParsedExtension::AuthorityKeyIdentifier(_))),
            "authorityKeyIdentifier",
        ),
    ]
    .into_iter()
    .filter_map(|(has, what)| (!has).then_some(what))
}

fn is_root(certificate: &X509Certificate<'_>) -> bool {
    certificate.subject().as_raw() == certificate.issuer().as_raw()
}

fn check_time(path: &Path, certificate: &X509Certificate<'_>, now: SystemTime) -> Result<(), AuthorityError> {
    let Validity { not_before, not_after } = validity_of(certificate);
    if now > not_after {
        return Err(AuthorityError::Expired {
            path: path.to_owned(),
            subject: certificate.subject().to_string(),
            not_after: Second(not_after),
        });
    }
    if now < not_before {
        return Err(AuthorityError::NotYetValid {
            path: path.to_owned(),
            subject: certificate.subject().to_string(),
            not_before: Second(not_before),
            now: Second(now),
        });
    }
    Ok(())
}

fn validity_of(certificate: &X509Certificate<'_>) -> Validity {
    Validity {
        not_before: certificate.validity().not_before.to_datetime().into(),
        not_after: certificate.validity().not_after.to_datetime().into(),
    }
}

fn key_id_of(certificate: &X509Certificate<'_>) -> Option<Vec<u8>> {
    certificate
        .iter_extensions()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        })
}
