//! Recognises the start of a client's TLS handshake, and finds the cause of its failure, which pingora reports only as
//! text. Pure.

use crate::{text::plain, upstream};

/// Returns the cause of a failed handshake: the last part of the error's text.
pub(super) fn cause(error: &pingora::Error) -> String {
    let text = error.to_string();
    if let Some((_, fault)) = text.split_once(CERTIFICATE_FAULT) {
        let fault = match fault.trim() {
            "UnknownIssuer" => "no authority of proxy.tls.client-roots issued it".to_owned(),
            fault => upstream::certificate_fault(fault),
        };
        return plain(&format!("the client's certificate is not valid: {fault}"), MAX_CAUSE).into_owned();
    }
    let cause = text.rsplit(": ").next().unwrap_or(&text);
    plain(cause.trim(), MAX_CAUSE).into_owned()
}

/// The record type of a TLS handshake (RFC 8446 §5.1).
pub(super) const TLS_HANDSHAKE: u8 = 0x16;
/// The text before the cause in rustls's messages about certificates.
const CERTIFICATE_FAULT: &str = "invalid peer certificate: ";
/// Maximum length of a cause, in bytes.
const MAX_CAUSE: usize = 256;
