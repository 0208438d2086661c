//! Error responses of the admin API: problem details (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::proxy::NoDecision;

#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error(
        "there is nothing at this path; /api/v1/openapi.json lists the paths, and says which work only on the socket"
    )]
    NotFound,
    #[error("nothing is known about {0}")]
    Unknown(String),
    #[error("this path does not support the method; the Allow field names the methods that it supports")]
    Method,
    #[error("{0}")]
    Bad(String),
    #[error("the content is longer than 1 MiB; send less in one request")]
    TooLarge,
    #[error("the content has to be JSON: send Content-Type: application/json")]
    MediaType,
    #[error("the request's content did not arrive in time; check its Content-Length")]
    Slow,
    #[error("present the token of admin.token-file: Authorization: Bearer ...")]
    NoToken,
    #[error("this is not the token of admin.token-file")]
    WrongToken,
    #[error(
        "without admin.token-file, this listener answers only if the Host is an IP address or localhost, to keep web \
         pages out (DNS rebinding)"
    )]
    Host,
    #[error(
        "without admin.token-file, robotgate answers only at loopback addresses such as 127.0.0.1; ask there, or set \
         admin.token-file"
    )]
    Remote,
    #[error(
        "without admin.token-file, robotgate refuses requests from web pages of other origins; if you followed a link, \
         type its URL instead"
    )]
    CrossSite,
    #[error("{0}")]
    Unavailable(&'static str),
    #[error(transparent)]
    NoDecision(#[from] NoDecision),
    #[error("the saved robots.txt files cannot be read at the moment; see the operational log")]
    Disk,
    #[error(
        "the proxy has forgotten the site in memory, but not yet on the disk. If it restarts now, forget the site \
         again. If writing fails, the operational log says why"
    )]
    Unwritten,
    #[error("robotgate did not answer within 60 s; try again later")]
    Overdue,
}

/// The JSON object of an error response (RFC 9457 §3.1).
#[derive(Serialize)]
struct Object {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
}

// === impl Problem ===

impl Problem {
    fn kind(&self) -> (StatusCode, &'static str) {
        match self {
            Problem::NotFound | Problem::Unknown(_) => (StatusCode::NOT_FOUND, "Not Found"),
            Problem::Method => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"),
            Problem::Bad(_) => (StatusCode::BAD_REQUEST, "Bad Request"),
            Problem::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Content Too Large"),
            Problem::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type"),
            Problem::Slow => (StatusCode::REQUEST_TIMEOUT, "Request Timeout"),
            Problem::NoToken | Problem::WrongToken => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Problem::Host => (StatusCode::MISDIRECTED_REQUEST, "Misdirected Request"),
            Problem::CrossSite | Problem::Remote => (StatusCode::FORBIDDEN, "Forbidden"),
            Problem::Unavailable(_)
            | Problem::NoDecision(_)
            | Problem::Disk
            | Problem::Unwritten
            | Problem::Overdue => (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, title) = self.kind();
        let object = Object {
            r#type: "about:blank",
            title,
            status: status.as_u16(),
            detail: self.to_string(),
        };
        let mut response = (status, axum::Json(object)).into_response();
        let fields = response.headers_mut();
        fields.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        match self {
            // The challenges of RFC 6750 §3.
            Problem::NoToken => drop(fields.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE))),
            Problem::WrongToken => drop(fields.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(FAILED))),
            // The server did not read all content. Close the connection, so that the rest is not read as a request.
            Problem::TooLarge | Problem::Slow => {
                fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

const CHALLENGE: &str = r#"Bearer realm="robotgate""#;
const FAILED: &str = r#"Bearer realm="robotgate", error="invalid_token""#;
