//! Files of root certificates: `https.extra-roots`, trusted beside the system's, and `proxy.tls.client-roots`.
//!
//! It reads files and judges whether they hold certificates that can be trusted; it trusts none by itself.

use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, Error, RootCertStore};
use toml::Spanned;

use crate::config::check::Checker;
use crate::{pem, regular_file};

/// The certificates of all files, in order.
pub(in crate::config) fn read(
    written: Option<Spanned<Vec<Spanned<String>>>>,
    checker: &mut Checker<'_>,
) -> Vec<CertificateDer<'static>> {
    let mut roots = Vec::new();
    for item in written.map(Spanned::into_inner).unwrap_or_default() {
        let Some(path) = checker.path(&item) else { continue };
        let bytes = match regular_file::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                checker.complain(item.span(), format!("cannot read {}: {error}", path.display()));
                continue;
            }
        };
        match certificates(&bytes) {
            Ok(certificates) => roots.extend(certificates),
            Err(why) => checker.complain(item.span(), format!("{} {why}", path.display())),
        }
    }
    roots
}

/// The certificates of one file; the error follows the file's name.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = pem::certificates(pem).map_err(|error| format!("cannot be read: {error}"))?;
    if certificates.is_empty() {
        return Err("holds no certificate; write a PEM file with \"-----BEGIN CERTIFICATE-----\" in it".to_owned());
    }
    for (line, certificate) in &certificates {
        // A store of its own: only to learn whether rustls can use it.
        RootCertStore::empty()
            .add(certificate.clone())
            .map_err(|error| match error {
                Error::InvalidCertificate(CertificateError::BadEncoding) => {
                    format!("cannot be used: the certificate at line {line} is damaged")
                }
                error => format!("holds a certificate at line {line} that cannot be used: {error}"),
            })?;
    }
    Ok(certificates.into_iter().map(|(_, certificate)| certificate).collect())
}
