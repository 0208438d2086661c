//! Changes the heads of messages as a proxy has to (RFC 9110 §7.6), and checks whether a response may be forwarded.
//! Pure functions. The path and query of a request are those of its [`Target`], unchanged.

use http::{HeaderMap, HeaderName, StatusCode, Version, header};
use pingora::Result;
use pingora_http::{RequestHeader, ResponseHeader};

use super::{
    fields::{self, PROXY_STATUS, ROBOTS_DECISION},
    websocket,
};
use crate::{origin::Target, upstream::Fault};

#[derive(Debug, Clone, Copy)]
pub(super) struct RequestForm {
    pub(super) version: Version,
    pub(super) has_content: bool,
    /// Whether the request asks for a WebSocket.
    pub(super) upgrades: bool,
}

/// Changes a request into the form for the origin. `via` is the name of the proxy to add to the Via field.
pub(super) fn to_origin(
    request: &mut RequestHeader,
    received: RequestForm,
    target: &Target,
    via: Option<&str>,
) -> Result<()> {
    let RequestForm {
        version,
        has_content,
        upgrades,
    } = received;
    for name in fields::hop_by_hop(&request.headers, &NOT_TO_ORIGINS) {
        // Keep TE in HTTP/2, where it only says that the client accepts trailers.
        if name != header::TE || request.version != Version::HTTP_2 {
            request.remove_header(&name);
        }
    }
    if request.version == Version::HTTP_2 {
        // Over HTTP/2, robotgate does not wait for the origin's `100 Continue`.
        request.remove_header(&header::EXPECT);
    }
    if upgrades {
        request.insert_header(header::CONNECTION, "Upgrade")?;
        request.insert_header(header::UPGRADE, "websocket")?;
    }
    if let Some(name) = via
        && let Some(via) = fields::with_via(&request.headers, version, name)
    {
        request.insert_header(fields::VIA, via)?;
    }
    if version == Version::HTTP_2
        && let Some(cookie) = fields::joined_cookie(&request.headers)
    {
        request.insert_header(header::COOKIE, cookie)?;
    }
    if has_content && request.version != Version::HTTP_2 {
        // An origin that ignores the content could read it as the next request, which robotgate would not have decided.
        // With this field, pingora does not keep the connection.
        request.insert_header(header::CONNECTION, "close")?;
        if !request.headers.contains_key(header::CONTENT_LENGTH) {
            request.insert_header(header::TRANSFER_ENCODING, "chunked")?;
        }
    }
    let host = target.origin.host_field();
    if request.headers.get(header::HOST).is_none_or(|there| there != &host) {
        request.insert_header(header::HOST, host)?;
    }
    if let Some(length) = fields::only_length(&request.headers) {
        request.insert_header(header::CONTENT_LENGTH, length)?;
    }
    if request.raw_path() != target.path {
        request.set_raw_path(&target.path)?;
    }
    Ok(())
}

/// Refuses a 407 (RFC 9110 §15.5.8), a 101 (§15.2.2) that does not open the WebSocket that the request asked for, and
/// any response for which it is unclear where the content ends. `upgrade` has the fields of a request for a WebSocket.
pub(super) fn check_answer(upgrade: Option<&HeaderMap>, response: &ResponseHeader) -> Result<(), Fault> {
    match response.status {
        StatusCode::SWITCHING_PROTOCOLS => match upgrade {
            Some(request) if websocket::is_accepted(request, &response.headers) => Ok(()),
            _ => Err(Fault::HttpProtocol),
        },
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(Fault::ProxyAuthentication),
        _ if fields::is_framed_plainly(&response.headers, response.version) => Ok(()),
        _ => Err(Fault::HttpProtocol),
    }
}

/// Removes the hop-by-hop fields of an origin's response, and adds the proxy's `name` to Via.
pub(super) fn from_origin(response: &mut ResponseHeader, name: &str) -> Result<()> {
    if let Some(length) = fields::only_length(&response.headers) {
        response.insert_header(header::CONTENT_LENGTH, length)?;
    }
    for name in fields::hop_by_hop(&response.headers, &[]) {
        response.remove_header(&name);
    }
    if let Some(via) = fields::with_via(&response.headers, response.version, name) {
        response.insert_header(fields::VIA, via)?;
    }
    Ok(())
}

/// Changes a response into the form for a client whose request had the HTTP version `received`. Sets or removes
/// `Robots-Decision`, and removes the members of `Proxy-Status` that name the proxy `name`.
pub(super) fn to_client(
    response: &mut ResponseHeader,
    received: Version,
    name: &str,
    decision: Option<String>,
) -> Result<()> {
    // A response has the version of its sender (RFC 9110 §6.2), which is robotgate.
    response.set_version(Version::HTTP_11);
    let is_bare = response.status.is_informational()
        || matches!(response.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if is_bare {
        // A 1xx or 204 must not have a Transfer-Encoding (RFC 9112 §6.1), and a 304 does not need one.
        response.remove_header(&header::TRANSFER_ENCODING);
    }
    if response.status.is_informational() {
        response.remove_header(&header::CONTENT_LENGTH);
    }
    if received == Version::HTTP_10 {
        response.remove_header(&header::TRANSFER_ENCODING);
    }
    // A 204 must not have a Content-Length (RFC 9110 §8.6). A 304 may, but over HTTP/2 the field makes Go's client wait
    // for content and fail.
    if response.status == StatusCode::NO_CONTENT
        || (response.status == StatusCode::NOT_MODIFIED && received == Version::HTTP_2)
    {
        response.remove_header(&header::CONTENT_LENGTH);
    }
    response.remove_header(ROBOTS_DECISION);
    if response.headers.contains_key(PROXY_STATUS) {
        match fields::without_member(&response.headers, PROXY_STATUS, name) {
            Some(others) => response.insert_header(PROXY_STATUS, others)?,
            None => drop(response.remove_header(PROXY_STATUS)),
        }
    }
    if let Some(field) = decision {
        response.insert_header(ROBOTS_DECISION, field)?;
    }
    Ok(())
}

static NOT_TO_ORIGINS: [HeaderName; 3] = [header::CONNECTION, header::TRANSFER_ENCODING, header::TRAILER];

/// Removes the two fields by which robotgate tells clients about decisions and errors.
pub(super) fn trailers(trailers: &mut HeaderMap) {
    trailers.remove(ROBOTS_DECISION);
    trailers.remove(PROXY_STATUS);
}
