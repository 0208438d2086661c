//! What can go wrong between robotgate and an origin, and the error type of RFC 9209 §2.3 for each fault.

use std::{io, net::SocketAddr};

use http::StatusCode;
use pingora::{Error, ErrorSource, ErrorType};

use super::{ProxyError, certificate};
use crate::{
    egress::{EgressError, ResolveError},
    text::plain_message,
};

/// Why an origin could not be reached, or its response could not be used. The messages appear in headers and logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Egress(#[from] EgressError),
    #[error("the server refused the connection")]
    ConnectionRefused,
    #[error("connecting to the server took too long")]
    ConnectionTimeout,
    #[error("the server cannot be reached")]
    Unroutable,
    #[error("the server closed or reset the connection")]
    ConnectionTerminated,
    #[error("the server's certificate is not valid: {0}")]
    TlsCertificate(String),
    /// pingora would replace the underscore, and check the certificate for another name.
    #[error(
        "robotgate cannot check the certificate of a host with an underscore before the first dot; the operator can \
         list the host in [[https.tunnel]] and in the bot's exempt-hosts"
    )]
    Underscore,
    #[error("the server refused the TLS handshake: {0}")]
    TlsAlert(String),
    #[error("the TLS handshake with the server failed: {0}")]
    TlsProtocol(String),
    #[error("the server was silent for too long")]
    ReadTimeout,
    #[error("the server did not read the request in time")]
    WriteTimeout,
    #[error("the server's response ended early")]
    ResponseIncomplete,
    #[error("the server's response is not valid HTTP, or its head has more bytes or fields than robotgate accepts")]
    HttpProtocol,
    #[error("the server's response is not valid HTTP: its chunks are malformed")]
    TransferCoding,
    /// robotgate does not forward a 407 (RFC 9110 §15.5.8): the client would think that robotgate asks for credentials.
    #[error("the server answered 407, which only a proxy may do")]
    ProxyAuthentication,
    #[error("the FTP server did not serve the request: {0}")]
    Ftp(String),
    /// A data connection to this address could reach another machine or another service.
    #[error(
        "the FTP server asked for a data connection to {0}; robotgate opens one only to the server's own IP address, \
         only to ports from 1024 up, and never to robotgate itself"
    )]
    DataAddress(SocketAddr),
    #[error("internal error in robotgate: {0}")]
    Internal(String),
}

// === impl Fault ===

impl Fault {
    /// Converts an error from pingora.
    pub fn from_pingora(error: &Error) -> Self {
        match error.etype() {
            ErrorType::ConnectTimedout | ErrorType::TLSHandshakeTimedout => Self::ConnectionTimeout,
            ErrorType::ConnectRefused => Self::ConnectionRefused,
            ErrorType::ConnectNoRoute | ErrorType::ConnectError | ErrorType::SocketError => Self::Unroutable,
            ErrorType::TLSHandshakeFailure | ErrorType::InvalidCert => Self::from_tls(error),
            ErrorType::ReadTimedout => Self::ReadTimeout,
            ErrorType::WriteTimedout => Self::WriteTimeout,
            ErrorType::ReadError | ErrorType::WriteError => Self::ConnectionTerminated,
            ErrorType::ConnectionClosed => Self::ResponseIncomplete,
            ErrorType::InvalidHTTPHeader
            | ErrorType::H1Error
            | ErrorType::H2Error
            | ErrorType::H2Downgrade
            | ErrorType::InvalidH2
                if *error.esource() == ErrorSource::Upstream =>
            {
                Self::HttpProtocol
            }
            // These errors are about the chunks of a response. Callers pass no errors about the chunks of a request.
            ErrorType::Custom("InvalidChunk" | "InvalidTrailerEnd") => Self::TransferCoding,
            ErrorType::Custom("PrematureBodyEnd") => Self::ResponseIncomplete,
            _ if error.to_string().contains(TOO_MANY_FILES) => Self::too_many_files(),
            _ if is_without_ipv6(&error.to_string()) => Self::Unroutable,
            _ => Self::Internal(error.to_string()),
        }
    }

    /// Converts an error that pingora reported while it read a response's content.
    pub fn of_body(error: Box<Error>) -> Self {
        match Self::from_pingora(&error.into_up()) {
            Self::ConnectionTerminated | Self::HttpProtocol | Self::Internal(_) => Self::ResponseIncomplete,
            fault => fault,
        }
    }

    /// Converts an error from connecting over TCP.
    pub fn from_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::TimedOut => Self::ConnectionTimeout,
            _ if error.to_string().contains(TOO_MANY_FILES) => Self::too_many_files(),
            _ => Self::Unroutable,
        }
    }

    fn too_many_files() -> Self {
        Self::Internal(
            "it has too many files open; the operator can raise ulimit -n, LimitNOFILE or fs.file-max".to_owned(),
        )
    }

    /// Parses the text of rustls' error, because pingora provides only the text.
    fn from_tls(error: &Error) -> Self {
        let text = error.to_string();
        let after = |mark: &str| {
            let start = text.find(mark)? + mark.len();
            let detail = &text[start..];
            // pingora appends `, SNI: ` and the server name.
            let end = detail.rfind(", SNI: ").unwrap_or(detail.len());
            Some(detail[..end].trim())
        };
        let bounded = |detail: &str| plain_message(detail, MAX_DETAIL).into_owned();
        if let Some(detail) = after("invalid peer certificate: ") {
            return Self::TlsCertificate(bounded(&certificate::in_words(detail)));
        }
        if let Some(detail) = after("received fatal alert: ") {
            return Self::TlsAlert(bounded(detail));
        }
        if text.contains("InvalidContentType") {
            return Self::TlsProtocol("it does not speak TLS on this port".to_owned());
        }
        if text.contains("tls handshake eof") {
            return Self::TlsProtocol("it closed the connection".to_owned());
        }
        let cause = after("cause: ").or_else(|| after("TLS connect() failed: "));
        Self::TlsProtocol(bounded(cause.unwrap_or(&text)))
    }

    /// Returns the error type of the fault for the `Proxy-Status` field (RFC 9209 §2.3).
    pub fn proxy_error(&self) -> ProxyError {
        match self {
            Self::Egress(EgressError::Resolve(ResolveError::Timeout)) => ProxyError::DnsTimeout,
            Self::Egress(EgressError::Resolve(_)) => ProxyError::DnsError,
            Self::Egress(EgressError::Prohibited(_)) | Self::DataAddress(_) => ProxyError::DestinationIpProhibited,
            Self::ConnectionRefused => ProxyError::ConnectionRefused,
            Self::ConnectionTimeout => ProxyError::ConnectionTimeout,
            Self::Unroutable => ProxyError::DestinationIpUnroutable,
            Self::ConnectionTerminated => ProxyError::ConnectionTerminated,
            Self::TlsCertificate(_) | Self::Underscore => ProxyError::TlsCertificateError,
            Self::TlsAlert(_) => ProxyError::TlsAlertReceived,
            Self::TlsProtocol(_) => ProxyError::TlsProtocolError,
            Self::ReadTimeout => ProxyError::ConnectionReadTimeout,
            Self::WriteTimeout => ProxyError::ConnectionWriteTimeout,
            Self::ResponseIncomplete => ProxyError::HttpResponseIncomplete,
            // RFC 9209 has no error type for FTP, so an FTP fault counts as invalid HTTP.
            Self::HttpProtocol | Self::ProxyAuthentication | Self::Ftp(_) => ProxyError::HttpProtocolError,
            Self::TransferCoding => ProxyError::HttpResponseTransferCoding,
            Self::Internal(_) => ProxyError::ProxyInternalError,
        }
    }

    /// Returns the status of the response that reports the fault to the client, as RFC 9209 §2.3 recommends it.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Egress(EgressError::Resolve(ResolveError::Timeout))
            | Self::ConnectionTimeout
            | Self::ReadTimeout
            | Self::WriteTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Returns whether pingora could not connect to an IPv6 address, probably because IPv6 is off on this machine, as in many
/// containers. For an IPv4 address, the same error of the system means that all local ports are in use. That is rarely
/// the case for an IPv6 address, because most sites have an IPv4 address too, which is tried first.
fn is_without_ipv6(text: &str) -> bool {
    text.contains("Fail to connect to [") && text.contains("Cannot assign requested address")
}

/// The beginning of the system's text for the errors EMFILE and ENFILE.
const TOO_MANY_FILES: &str = "Too many open files";
/// Maximum length in bytes of the detail of a TLS fault. It is short because the cache keeps faults.
const MAX_DETAIL: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_handshake_says_if_the_certificate_is_the_cause() {
        for (context, fault) in [
            (
                "TLS connect() failed: invalid peer certificate: Expired, SNI: a.example",
                Fault::TlsCertificate("it has expired".into()),
            ),
            (
                "TLS connect() failed: received corrupt message of type InvalidContentType, SNI: a.example",
                Fault::TlsProtocol("it does not speak TLS on this port".into()),
            ),
            (
                "TLS connect() failed: received fatal alert: HandshakeFailure, SNI: a.example",
                Fault::TlsAlert("HandshakeFailure".into()),
            ),
            (
                "TLS connect() failed: tls handshake eof, SNI: a.example",
                Fault::TlsProtocol("it closed the connection".into()),
            ),
        ] {
            let error = Error::explain(ErrorType::TLSHandshakeFailure, context);
            assert_eq!(Fault::from_pingora(&error), fault, "{context}");
        }
    }

    #[test]
    fn a_long_detail_is_shortened() {
        let context = format!("invalid peer certificate: {}", "a.example, ".repeat(10_000));
        let error = Error::explain(ErrorType::TLSHandshakeFailure, context);
        let text = Fault::from_pingora(&error).to_string();
        assert!(
            text.starts_with("the server's certificate is not valid: a.example"),
            "{text}"
        );
        assert!(text.len() < 2 * MAX_DETAIL, "{} bytes", text.len());
    }

    #[test]
    fn too_many_open_files_is_an_internal_fault() {
        // EMFILE and ENFILE, wrapped as pingora's connector does it.
        for code in [24, 23] {
            let cause = std::io::Error::from_raw_os_error(code);
            let error = Error::because(ErrorType::InternalError, "Fail to connect to 192.0.2.1:80", cause);
            assert_eq!(
                Fault::from_pingora(&error),
                Fault::Internal(
                    "it has too many files open; the operator can raise ulimit -n, LimitNOFILE or fs.file-max"
                        .to_owned()
                ),
                "{code}"
            );
        }
    }

    #[test]
    fn an_ipv6_address_cannot_be_reached_without_ipv6() {
        // EADDRNOTAVAIL, wrapped as pingora's connector does it.
        let fault = |address: &str| {
            let context = format!("Fail to connect to {address}");
            let cause = std::io::Error::from_raw_os_error(99);
            let cause = Error::because(ErrorType::BindError, context, cause);
            let context = format!("Fail to connect to addr: {address}, scheme: HTTP, sni: a.example");
            Fault::from_pingora(&Error::because(ErrorType::InternalError, context, cause))
        };
        assert_eq!(fault("[2001:db8::1]:80"), Fault::Unroutable);
        assert!(matches!(fault("192.0.2.1:80"), Fault::Internal(_)));
    }

    #[test]
    fn a_timeout_is_a_504_and_other_faults_are_a_502() {
        for (fault, status, kind) in [
            (Fault::ConnectionRefused, 502, "connection_refused"),
            (Fault::ConnectionTimeout, 504, "connection_timeout"),
            (Fault::ReadTimeout, 504, "connection_read_timeout"),
            (EgressError::from(ResolveError::Timeout).into(), 504, "dns_timeout"),
            (EgressError::from(ResolveError::NotFound).into(), 502, "dns_error"),
            (Fault::ResponseIncomplete, 502, "http_response_incomplete"),
            (Fault::TransferCoding, 502, "http_response_transfer_coding"),
        ] {
            assert_eq!(fault.status().as_u16(), status, "{fault:?}");
            assert_eq!(fault.proxy_error().as_str(), kind, "{fault:?}");
        }
    }
}
