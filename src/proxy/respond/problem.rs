//! What can go wrong with a request, and what each is in HTTP: a status, an error type of RFC 9209
//! and a sentence.

use http::StatusCode;

use crate::{
    origin::TargetError,
    proxy::{head::HeadError, judge::NoDecision, limits::Limit, own::OwnError},
    upstream::{Fault, ProxyError},
};

/// An error that a client is told of.
#[derive(Debug)]
pub(in crate::proxy) enum Problem<'a> {
    Head(&'a HeadError),
    Target(&'a TargetError),
    /// It is for robotgate itself, which has nothing there.
    Own(&'a OwnError),
    Fault(&'a Fault),
    /// The request has come by here before.
    Loop,
    /// The audit log takes nothing, so nothing may be forwarded.
    Audit,
    /// The client sent something that pingora took for an error.
    Request,
    /// The client was silent for too long in the middle of its request.
    Slow,
    /// A leaf certificate could not be made.
    Leaf,
    /// More than a client, or all of them, may have.
    Limit(Limit),
    /// Too much waits to be decided on.
    Overloaded,
}

// === impl Problem ===

impl Problem<'_> {
    /// The status, the error type of RFC 9209 §2.3, and the title.
    pub(super) fn kind(&self) -> (StatusCode, ProxyError, &'static str) {
        match self {
            Problem::Head(HeadError::Timeout) | Problem::Slow => (
                StatusCode::REQUEST_TIMEOUT,
                ProxyError::HttpRequestError,
                "Request Timeout",
            ),
            Problem::Head(HeadError::TooLarge(_) | HeadError::TooManyFields(_)) => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                ProxyError::HttpRequestError,
                "Request Header Fields Too Large",
            ),
            Problem::Target(TargetError::TooLong) => {
                (StatusCode::URI_TOO_LONG, ProxyError::HttpRequestError, "URI Too Long")
            }
            Problem::Head(_) | Problem::Target(_) | Problem::Request => {
                (StatusCode::BAD_REQUEST, ProxyError::HttpRequestError, "Bad Request")
            }
            Problem::Fault(fault) => {
                let title = match fault.status() {
                    StatusCode::GATEWAY_TIMEOUT => "Gateway Timeout",
                    StatusCode::INTERNAL_SERVER_ERROR => "Internal Server Error",
                    _ => "Bad Gateway",
                };
                (fault.status(), fault.proxy_error(), title)
            }
            Problem::Own(OwnError::Method) => (
                StatusCode::METHOD_NOT_ALLOWED,
                ProxyError::HttpRequestError,
                "Method Not Allowed",
            ),
            // The phrase is all that clients show of an answer to a CONNECT.
            Problem::Own(OwnError::PlainHttp) => (
                StatusCode::NOT_FOUND,
                ProxyError::HttpRequestError,
                "Only at http://robotgate.internal/",
            ),
            Problem::Own(OwnError::Missing(_)) => (StatusCode::NOT_FOUND, ProxyError::HttpRequestError, "Not Found"),
            Problem::Loop => (
                StatusCode::BAD_GATEWAY,
                ProxyError::ProxyLoopDetected,
                "Proxy Loop Detected",
            ),
            Problem::Audit => (
                StatusCode::SERVICE_UNAVAILABLE,
                ProxyError::ProxyInternalError,
                "Audit Log Unavailable",
            ),
            Problem::Limit(Limit::Connections) | Problem::Overloaded => (
                StatusCode::SERVICE_UNAVAILABLE,
                ProxyError::HttpRequestDenied,
                "Service Unavailable",
            ),
            Problem::Limit(_) => (
                StatusCode::TOO_MANY_REQUESTS,
                ProxyError::HttpRequestDenied,
                "Too Many Requests",
            ),
            Problem::Leaf => (
                StatusCode::INTERNAL_SERVER_ERROR,
                ProxyError::ProxyInternalError,
                "Internal Server Error",
            ),
        }
    }

    /// The error type and what it is about, as the log names them.
    pub(in crate::proxy) fn for_log(&self) -> (ProxyError, String) {
        (self.error(), self.detail())
    }

    pub(in crate::proxy) fn error(&self) -> ProxyError {
        self.kind().1
    }

    pub(super) fn detail(&self) -> String {
        match self {
            Problem::Head(error) => error.to_string(),
            Problem::Target(error) => error.to_string(),
            Problem::Fault(fault) => fault.to_string(),
            Problem::Own(error) => error.to_string(),
            Problem::Loop => "the request has come through this proxy before (its Via field says \
                              so); check the proxy settings along the way, or give this proxy \
                              another proxy.name"
                .to_owned(),
            Problem::Audit => "the audit log cannot be written, and without it nothing is \
                               forwarded"
                .to_owned(),
            Problem::Request => "the request is not valid HTTP".to_owned(),
            Problem::Slow => "the request did not come in time".to_owned(),
            Problem::Limit(limit) => limit.sentence().to_owned(),
            Problem::Overloaded => NoDecision::Overloaded.to_string(),
            Problem::Leaf => "no certificate can be made for the host".to_owned(),
        }
    }
}
