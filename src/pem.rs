//! Reads and writes certificates as PEM (RFC 7468).

use ::pem::{EncodeConfig, LineEnding, Pem, encode_config};
use rustls::{
    CertificateError, RootCertStore,
    pki_types::{
        CertificateDer,
        pem::{Error, PemObject as _},
    },
};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PemError {
    #[error("line {0} is not base64")]
    Line(usize),
    #[error("the base64 of the block at line {0} is damaged")]
    Base64(usize),
    #[error("the block at line {0} does not end with a matching -----END line")]
    NoEnd(usize),
    #[error("line {0} is not a whole -----BEGIN line")]
    Begin(usize),
    #[error("the PEM block at line {0} is malformed")]
    Other(usize),
}

/// Returns the certificates in a PEM file, each with the number of its first line. Skips other PEM blocks, even if their
/// content is damaged.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<(usize, CertificateDer<'static>)>, PemError> {
    let begins_line = |at: &usize| *at == 0 || pem[at - 1] == b'\n';
    let begins: Vec<usize> = memchr::memmem::find_iter(pem, "-----BEGIN")
        .filter(begins_line)
        .collect();
    let ends = begins.iter().skip(1).copied().chain([pem.len()]);
    let mut found = Vec::with_capacity(begins.len());
    for (begin, end) in std::iter::zip(&begins, ends) {
        let line = 1 + memchr::memchr_iter(b'\n', &pem[..*begin]).count();
        let text = &pem[*begin..end];
        if is_other_block(text) {
            continue;
        }
        let block = CertificateDer::pem_slice_iter(text).next();
        if let Some(certificate) = block.transpose().map_err(|error| explain(&error, text, line))? {
            found.push((line, certificate));
        }
    }
    Ok(found)
}

/// Returns whether the text begins with a block that is not a certificate and has the END line for its BEGIN line. A
/// mistyped label does not fit the END line, and is an error.
fn is_other_block(text: &[u8]) -> bool {
    let line = text
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii_end();
    let label = line
        .strip_prefix(b"-----BEGIN ")
        .and_then(|rest| rest.strip_suffix(b"-----"));
    label.is_some_and(|label| {
        let end = [b"-----END ", label, b"-----"].concat();
        let is_one_line = memchr::memmem::find(label, b"-----").is_some();
        label != b"CERTIFICATE" && !is_one_line && memchr::memmem::find(text, &end).is_some()
    })
}

/// Says what a file contains instead of a readable private key, and what to do.
pub(crate) fn in_place_of_key(pem: &[u8]) -> &'static str {
    match memchr::memmem::find(pem, b"ENCRYPTED") {
        Some(_) => {
            "an encrypted private key, which robotgate cannot read: `openssl pkey -in old.pem -out new.pem` decrypts it"
        }
        None => "no readable private key in PEM form: put the certificate's key into the file",
    }
}

fn explain(error: &Error, text: &[u8], line: usize) -> PemError {
    match error {
        Error::Base64Decode(_) => {
            let is_base64 =
                |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte) || byte.is_ascii_whitespace();
            let content = text.split(|byte| *byte == b'\n').enumerate().skip(1);
            let mut content = content.take_while(|(_, text)| !text.starts_with(b"-----"));
            let bad = content.find(|(_, text)| !text.iter().all(is_base64));
            bad.map_or(PemError::Base64(line), |(at, _)| PemError::Line(line + at))
        }
        Error::MissingSectionEnd { .. } => PemError::NoEnd(line),
        Error::IllegalSectionStart { .. } => PemError::Begin(line),
        _ => PemError::Other(line),
    }
}

/// Returns the certificates of a PEM file for use as root certificates. The caller puts the file's name before the
/// error.
pub(crate) fn roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = certificates(pem).map_err(|error| format!("cannot be read: {error}"))?;
    if certificates.is_empty() {
        return Err("contains no certificate; write a PEM file with \"-----BEGIN CERTIFICATE-----\" in it".to_owned());
    }
    for (line, certificate) in &certificates {
        // Only rustls can tell whether it accepts a certificate.
        RootCertStore::empty()
            .add(certificate.clone())
            .map_err(|error| match error {
                rustls::Error::InvalidCertificate(CertificateError::BadEncoding) => {
                    format!("cannot be used: the certificate at line {line} is damaged")
                }
                error => format!("contains a certificate at line {line} that cannot be used: {error}"),
            })?;
    }
    Ok(certificates.into_iter().map(|(_, certificate)| certificate).collect())
}

pub(crate) fn certificate(der: &CertificateDer<'_>) -> String {
    let lf = EncodeConfig::new().set_line_ending(LineEnding::LF);
    encode_config(&Pem::new("CERTIFICATE", der.as_ref()), lf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_begins_only_at_the_beginning_of_a_line() {
        let block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let text = format!("# copy it from -----BEGIN on\n{block}");
        let found = certificates(text.as_bytes()).expect("the comment is ignored");
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn only_certificates_are_decoded() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n???\n-----END RSA PRIVATE KEY-----\n";
        let certificate = "-----BEGIN CERTIFICATE-----\r\nAAAA\r\n-----END CERTIFICATE-----\r\n";
        let found = certificates(format!("{key}{certificate}").as_bytes()).expect("the key is skipped");
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [6]);
        for (damaged, error) in [
            (certificate.replace("E-----\r\nA", "E\r\nA"), PemError::Begin(1)),
            (
                certificate.replace("BEGIN CERTIFICATE", "BEGIN CERTIFICAT"),
                PemError::NoEnd(1),
            ),
            (certificate.replace("\r\n", ""), PemError::NoEnd(1)),
        ] {
            assert_eq!(certificates(damaged.as_bytes()), Err(error), "{damaged}");
        }
        let old_mac = certificate.replace("\r\n", "\r");
        assert_eq!(certificates(old_mac.as_bytes()).map(|found| found.len()), Ok(1));
    }
}
