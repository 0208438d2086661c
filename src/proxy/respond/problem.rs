//! The problems of requests, and how each is reported in HTTP: by a status, an error type of RFC 9209 and a sentence.

use http::StatusCode;

use crate::{
    fetch::LookupError,
    origin::TargetError,
    proxy::{head::HeadError, judge::NoDecision, limits::Limit},
    trust,
    upstream::{Fault, ProxyError},
};

#[derive(Debug)]
pub(in crate::proxy) enum Problem<'a> {
    Head(&'a HeadError),
    Target(&'a TargetError),
    InternalSite(&'a InternalSiteError),
    Fault(&'a Fault),
    Loop,
    /// The audit log cannot be written, so no request may be forwarded.
    Audit,
    /// The robots.txt could not be stored, so no decision may be based on it (`evidence.required`).
    Evidence,
    Request,
    Slow,
    /// robotgate could not make a certificate for an intercepted host.
    Leaf,
    Limit(Limit),
    Overloaded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::proxy) enum InternalSiteError {
    #[error("robotgate.internal is this proxy itself; it answers only at http://robotgate.internal/, over plain HTTP")]
    PlainHttp,
    #[error("only GET and HEAD are served here")]
    Method,
    #[error(transparent)]
    Missing(#[from] trust::Missing),
}

// === impl Problem ===

impl Problem<'_> {
    /// Returns the status, the error type (RFC 9209 §2.3), and the title of the problem.
    pub(super) fn kind(&self) -> (StatusCode, ProxyError, &'static str) {
        let status = self.status();
        let title = match self {
            // If a CONNECT fails, most clients show only this phrase, so it says which URL to use.
            Problem::InternalSite(InternalSiteError::PlainHttp) => "Only at http://robotgate.internal/",
            Problem::Loop => "Proxy Loop Detected",
            Problem::Audit => "Audit Log Unavailable",
            Problem::Evidence => "Evidence Unavailable",
            _ => status.canonical_reason().unwrap_or_default(),
        };
        (status, self.error(), title)
    }

    fn status(&self) -> StatusCode {
        match self {
            Problem::Head(HeadError::Timeout) | Problem::Slow => StatusCode::REQUEST_TIMEOUT,
            Problem::Head(HeadError::TooLarge(_) | HeadError::TooManyFields(_)) => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Problem::Target(TargetError::TooLong) | Problem::Head(HeadError::TargetTooLong) => StatusCode::URI_TOO_LONG,
            Problem::Target(TargetError::FtpMethod) | Problem::InternalSite(InternalSiteError::Method) => {
                StatusCode::METHOD_NOT_ALLOWED
            }
            Problem::Head(_) | Problem::Target(_) | Problem::Request => StatusCode::BAD_REQUEST,
            Problem::Fault(fault) => fault.status(),
            Problem::InternalSite(InternalSiteError::PlainHttp | InternalSiteError::Missing(_)) => {
                StatusCode::NOT_FOUND
            }
            Problem::Loop => StatusCode::BAD_GATEWAY,
            Problem::Audit | Problem::Evidence | Problem::Limit(Limit::Connections) | Problem::Overloaded => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Problem::Limit(_) => StatusCode::TOO_MANY_REQUESTS,
            Problem::Leaf => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(in crate::proxy) fn for_log(&self) -> (ProxyError, String) {
        (self.error(), self.detail())
    }

    pub(in crate::proxy) fn error(&self) -> ProxyError {
        match self {
            Problem::Head(_) | Problem::Target(_) | Problem::Request | Problem::Slow | Problem::InternalSite(_) => {
                ProxyError::HttpRequestError
            }
            Problem::Fault(fault) => fault.proxy_error(),
            Problem::Loop => ProxyError::ProxyLoopDetected,
            Problem::Audit | Problem::Evidence | Problem::Leaf => ProxyError::ProxyInternalError,
            Problem::Limit(_) | Problem::Overloaded => ProxyError::HttpRequestDenied,
        }
    }

    pub(super) fn detail(&self) -> String {
        match self {
            Problem::Head(error) => error.to_string(),
            Problem::Target(error) => error.to_string(),
            Problem::Fault(fault) => fault.to_string(),
            Problem::InternalSite(error) => error.to_string(),
            Problem::Loop => {
                "the request's Via field has this proxy's name, so it has already passed through this proxy or another \
                 with the same name; check the proxy settings along the way, or give this proxy another proxy.name"
                    .to_owned()
            }
            Problem::Audit => "the audit log cannot be written, so robotgate forwards nothing".to_owned(),
            Problem::Evidence => LookupError::NotStored.to_string(),
            Problem::Request => "the request is not valid HTTP".to_owned(),
            Problem::Slow => "the request's content did not arrive in time (proxy.body-timeout)".to_owned(),
            Problem::Limit(limit) => limit.sentence().to_owned(),
            Problem::Overloaded => NoDecision::Overloaded.to_string(),
            Problem::Leaf => {
                "robotgate cannot make a certificate for the host; its operational log says why".to_owned()
            }
        }
    }
}

pub(super) fn what_to_do_about(error: ProxyError) -> &'static str {
    explained(error).map_or("", |(_, todo)| todo)
}

/// Returns what an error means and what to do about it, or `None` if clients never get the error.
pub(in crate::proxy) fn explained(error: ProxyError) -> Option<(&'static str, &'static str)> {
    Some(match error {
        ProxyError::DnsTimeout => (
            "No name server answered in time.",
            "The operator should check egress.dns.",
        ),
        ProxyError::DnsError => (
            "The host has no address, its name is wrong, or the name servers failed.",
            "Check the spelling of the URL. If the name servers failed, the operator should check egress.dns.",
        ),
        ProxyError::DestinationIpProhibited => (
            "Bots may not reach this host, address or port. For example, it is in the company's own network.",
            "The response's detail says why. The operator can open some destinations in [egress].",
        ),
        ProxyError::DestinationIpUnroutable => (
            "The site cannot be reached, usually because there is no route to its address.",
            "",
        ),
        ProxyError::ConnectionRefused => ("The site accepts no connections on this port.", ""),
        ProxyError::ConnectionTerminated => ("The site closed the connection before it answered.", "Try again."),
        ProxyError::ConnectionTimeout => ("Connecting to the site took too long.", "Try again later."),
        ProxyError::ConnectionReadTimeout => (
            "The site was silent for too long.",
            "If the site is slow, the operator can raise proxy.read-timeout.",
        ),
        ProxyError::ConnectionWriteTimeout => ("The site did not read the request in time.", ""),
        ProxyError::TlsProtocolError => ("The TLS handshake with the site failed.", ""),
        ProxyError::TlsCertificateError => (
            "The site's certificate is not valid, or robotgate cannot check it, so the request was not sent.",
            "If it is a site of your own, the operator can add its authority to https.extra-roots.",
        ),
        ProxyError::TlsAlertReceived => ("The site refused the TLS handshake.", ""),
        ProxyError::HttpRequestError => (
            "robotgate cannot serve the request: it is not valid HTTP, is ambiguous, is too long, came too slowly, \
             exceeded a limit of the proxy, or asks for something that robotgate does not offer.",
            "Correct the request: the detail says what is wrong. If you opened the proxy's address in a browser, enter this \
             address in the browser's proxy settings instead.",
        ),
        ProxyError::HttpResponseIncomplete => ("The site's response ended early.", "Try again."),
        ProxyError::HttpProtocolError => (
            "The site's response is not valid HTTP, has a header section that is too long, or is a 407, which only a \
             proxy may send. Or the FTP server did not serve the request.",
            "",
        ),
        ProxyError::ProxyInternalError => (
            "robotgate had an internal error, or it cannot write its audit log or its evidence and so forwards \
             nothing.",
            "If the detail gives no reason, the operator finds it in the audit log or the operational log.",
        ),
        ProxyError::ProxyLoopDetected => (
            "The request has already passed through this proxy, or through another with the same name.",
            "Check the proxy settings along the way. Two robotgates in a row need different names (proxy.name).",
        ),
        // Refusals have this error type too. For them, robotgate does not use this text, but explains the reason.
        ProxyError::HttpRequestDenied => (
            "The client, or all clients together, reached a limit of the proxy, or the proxy is too busy.",
            "Send fewer requests at the same time, and try again later. If the detail names a limit, the operator can \
             raise it.",
        ),
        // These are only logged.
        ProxyError::HttpResponseTransferCoding
        | ProxyError::ClientGone
        | ProxyError::Idle
        | ProxyError::Lifetime
        | ProxyError::Aborted => return None,
    })
}
