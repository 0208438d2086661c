//! Certificates as text (RFC 7468).

use data_encoding::BASE64;
use rustls::pki_types::{
    CertificateDer,
    pem::{Error, PemObject as _},
};

/// The certificates in a PEM file, each with the line at which its block begins, from 1. Blocks of other kinds are passed
/// over.
///
/// # Errors
/// A block cannot be read: its line, and why.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<(usize, CertificateDer<'static>)>, (usize, Error)> {
    let begins: Vec<usize> = memchr::memmem::find_iter(pem, "-----BEGIN").collect();
    let ends = begins.iter().skip(1).copied().chain([pem.len()]);
    let mut found = Vec::with_capacity(begins.len());
    for (begin, end) in std::iter::zip(&begins, ends) {
        let line = 1 + memchr::memchr_iter(b'\n', &pem[..*begin]).count();
        let block = CertificateDer::pem_slice_iter(&pem[*begin..end]).next();
        if let Some(certificate) = block.transpose().map_err(|error| (line, error))? {
            found.push((line, certificate));
        }
    }
    Ok(found)
}

/// One certificate as PEM.
pub(crate) fn certificate(der: &CertificateDer<'_>) -> String {
    let base64 = BASE64.encode(der);
    let mut pem = String::with_capacity(base64.len() + base64.len() / COLUMNS + 64);
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        // Base64 is ASCII, so every index is between two characters.
        let (line, tail) = rest.split_at(rest.len().min(COLUMNS));
        pem.push_str(line);
        pem.push('\n');
        rest = tail;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

/// RFC 7468 §2: writers wrap lines at exactly 64 characters.
const COLUMNS: usize = 64;
