//! The one list of the ways in which an exchange fails, as the `Proxy-Status` field, the audit log and the metrics name
//! them.

/// An error type of RFC 9209 §2.3, or one of robotgate's own, where that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyError {
    DnsTimeout,
    DnsError,
    DestinationIpProhibited,
    DestinationIpUnroutable,
    ConnectionRefused,
    ConnectionTerminated,
    ConnectionTimeout,
    ConnectionReadTimeout,
    ConnectionWriteTimeout,
    TlsProtocolError,
    TlsCertificateError,
    TlsAlertReceived,
    HttpRequestError,
    HttpRequestDenied,
    HttpResponseIncomplete,
    HttpResponseTransferCoding,
    HttpProtocolError,
    ProxyInternalError,
    ProxyLoopDetected,
    /// The client went away before the end.
    ClientGone,
    /// Nothing passed through a tunnel or a WebSocket for too long.
    Idle,
    /// A tunnel or a WebSocket lasted as long as it may.
    Lifetime,
    /// robotgate stopped before the end.
    Aborted,
}

// === impl ProxyError ===

impl ProxyError {
    /// All of them, in order.
    pub const ALL: [ProxyError; 23] = [
        ProxyError::DnsTimeout,
        ProxyError::DnsError,
        ProxyError::DestinationIpProhibited,
        ProxyError::DestinationIpUnroutable,
        ProxyError::ConnectionRefused,
        ProxyError::ConnectionTerminated,
        ProxyError::ConnectionTimeout,
        ProxyError::ConnectionReadTimeout,
        ProxyError::ConnectionWriteTimeout,
        ProxyError::TlsProtocolError,
        ProxyError::TlsCertificateError,
        ProxyError::TlsAlertReceived,
        ProxyError::HttpRequestError,
        ProxyError::HttpRequestDenied,
        ProxyError::HttpResponseIncomplete,
        ProxyError::HttpResponseTransferCoding,
        ProxyError::HttpProtocolError,
        ProxyError::ProxyInternalError,
        ProxyError::ProxyLoopDetected,
        ProxyError::ClientGone,
        ProxyError::Idle,
        ProxyError::Lifetime,
        ProxyError::Aborted,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DnsTimeout => "dns_timeout",
            Self::DnsError => "dns_error",
            Self::DestinationIpProhibited => "destination_ip_prohibited",
            Self::DestinationIpUnroutable => "destination_ip_unroutable",
            Self::ConnectionRefused => "connection_refused",
            Self::ConnectionTerminated => "connection_terminated",
            Self::ConnectionTimeout => "connection_timeout",
            Self::ConnectionReadTimeout => "connection_read_timeout",
            Self::ConnectionWriteTimeout => "connection_write_timeout",
            Self::TlsProtocolError => "tls_protocol_error",
            Self::TlsCertificateError => "tls_certificate_error",
            Self::TlsAlertReceived => "tls_alert_received",
            Self::HttpRequestError => "http_request_error",
            Self::HttpRequestDenied => "http_request_denied",
            Self::HttpResponseIncomplete => "http_response_incomplete",
            Self::HttpResponseTransferCoding => "http_response_transfer_coding",
            Self::HttpProtocolError => "http_protocol_error",
            Self::ProxyInternalError => "proxy_internal_error",
            Self::ProxyLoopDetected => "proxy_loop_detected",
            Self::ClientGone => "client_gone",
            Self::Idle => "idle",
            Self::Lifetime => "lifetime",
            Self::Aborted => "aborted",
        }
    }
}
