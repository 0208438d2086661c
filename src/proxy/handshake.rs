//! The first byte of a client's TLS handshake, and the cause of a failed handshake. Pure functions, without I/O.

use crate::{text::plain, upstream};

/// Returns why a TLS handshake failed, which pingora's error says only at the end of its text.
pub(super) fn cause(error: &pingora::Error) -> String {
    let text = error.to_string();
    if let Some((_, fault)) = text.split_once(CERTIFICATE_FAULT) {
        let fault = match fault.trim() {
            "UnknownIssuer" => "no authority of proxy.tls.client-roots issued it".to_owned(),
            fault if fault.contains("CaUsedAsEndEntity") => {
                "it is the certificate of an authority, as self-signed ones often are".to_owned()
            }
            fault => upstream::certificate_fault(fault),
        };
        return plain(&format!("the client's certificate is not valid: {fault}"), MAX_CAUSE).into_owned();
    }
    let cause = text.rsplit(": ").next().unwrap_or(&text);
    plain(cause.trim(), MAX_CAUSE).into_owned()
}

/// The record type of a TLS handshake (RFC 8446 §5.1).
pub(super) const TLS_HANDSHAKE: u8 = 0x16;
/// In rustls's errors, this text is followed by the reason why a certificate is not valid.
const CERTIFICATE_FAULT: &str = "invalid peer certificate: ";
const MAX_CAUSE: usize = 256;

#[cfg(test)]
mod tests {
    use pingora::{Error, ErrorType};

    use super::*;

    #[test]
    fn a_bad_client_certificate_is_described_for_a_client() {
        for (fault, cause_text) in [
            (
                "UnknownIssuer",
                "the client's certificate is not valid: no authority of proxy.tls.client-roots issued it",
            ),
            (
                "Other(OtherError(CaUsedAsEndEntity))",
                "the client's certificate is not valid: it is the certificate of an authority, as self-signed ones often \
                 are",
            ),
            ("Expired", "the client's certificate is not valid: it has expired"),
        ] {
            let text = format!("the handshake failed: invalid peer certificate: {fault}");
            let error = Error::explain(ErrorType::TLSHandshakeFailure, text);
            assert_eq!(cause(&error), cause_text, "{fault}");
        }
    }
}
