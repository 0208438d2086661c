//! What a TLS handshake of a client begins with, and why it failed, which pingora passes on only as text. Pure.

use crate::{text::plain, upstream};

/// The cause of a handshake's failure: the last part of the text.
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
/// What rustls says before the fault.
const CERTIFICATE_FAULT: &str = "invalid peer certificate: ";
/// Bytes of what a handshake failed for.
const MAX_CAUSE: usize = 256;
