//! Certificates as text (RFC 7468).

use data_encoding::BASE64;
use rustls::pki_types::CertificateDer;

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
