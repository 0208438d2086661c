//! Why the head of a request is refused.

use std::fmt;

use crate::{
    origin::{Host, HostPortError, SCHEMES, TargetError},
    proxy::limits::Limit,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::proxy) enum HeadError {
    /// The connection ended, or the client did not begin a request in time. The client needs no response.
    #[error("the connection ended")]
    Gone,
    #[error("the request did not arrive in time (proxy.header-timeout)")]
    Timeout,
    #[error("the request line and the fields together are longer than {} (proxy.max-header-bytes)", Size(*.0))]
    TooLarge(usize),
    #[error("the request's header section has more than {0} fields (proxy.max-header-fields)")]
    TooManyFields(usize),
    #[error("the client sent TLS where HTTP was expected")]
    Tls,
    #[error("robotgate does not accept the request: {0}")]
    Syntax(&'static str),
    #[error("{}", TargetError::TooLong)]
    TargetTooLong,
    #[error("the request target has the character '{}': write %{:02X} instead", .0, u32::from(*.0))]
    TargetCharacter(char),
    #[error("the request target is not valid: {0}")]
    TargetHost(HostPortError),
    #[error("the request target's host has to be ASCII without percent-encoding: write it as {0}")]
    TargetHostEscaped(Host),
    #[error("this proxy fetches only {SCHEMES} URLs, and ws and wss URLs for a WebSocket")]
    TargetScheme,
    #[error("the Host field is not valid: {0}")]
    Host(HostPortError),
    #[error("the Host field has to be ASCII without percent-encoding: write its host as {0}")]
    HostEscaped(Host),
    #[error("the target of the CONNECT is not valid: {0}")]
    ConnectTarget(HostPortError),
    #[error("a CONNECT has to name a host and a port, as in \"CONNECT example.com:443\"")]
    ConnectPort,
    #[error("the Host field and the request target name different hosts or ports")]
    HostDiffers,
    #[error("a CONNECT inside a CONNECT is not supported")]
    NestedConnect,
}

struct Size(usize);

// === impl HeadError ===

impl HeadError {
    pub(in crate::proxy) fn limit(&self) -> Option<Limit> {
        match self {
            Self::Timeout => Some(Limit::HeaderTimeout),
            Self::TooLarge(_) => Some(Limit::HeaderBytes),
            Self::TooManyFields(_) => Some(Limit::HeaderFields),
            _ => None,
        }
    }
}

impl From<httparse::Error> for HeadError {
    fn from(error: httparse::Error) -> Self {
        match error {
            httparse::Error::HeaderName => Self::Syntax("a header line does not begin with a valid name and a colon"),
            httparse::Error::HeaderValue => Self::Syntax("a field value has a control character"),
            httparse::Error::NewLine => Self::Syntax("a line does not end in CRLF"),
            httparse::Error::Token => Self::Syntax("the request line lacks a part or has an invalid character"),
            httparse::Error::Version => Self::Syntax("its version is neither HTTP/1.0 nor HTTP/1.1"),
            _ => Self::Syntax("its first line is not a request line"),
        }
    }
}

// === impl Size ===

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes.is_multiple_of(1024) => write!(f, "{} KiB", bytes / 1024),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}
