//! Converts the head of a request to HTTP/2, and the head of an HTTP/2 response to a [`ResponseHeader`].

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Version, header,
    uri::{Authority, PathAndQuery, Scheme, Uri},
};
use pingora_http::{RequestHeader, ResponseHeader};

use super::StreamError;
use crate::{
    origin::{self, Target},
    upstream::Fault,
};

/// Builds the head of an HTTP/2 request for `target` with the method and fields of `head`. Omits fields that are only
/// for HTTP/1.1 (RFC 9113 §8.2.2).
///
/// # Errors
/// Fails if an [`http::Uri`] cannot represent the target unchanged; see [`StreamError::needs_http1`].
pub fn request(head: &RequestHeader, target: &Target) -> Result<http::Request<()>, StreamError> {
    let path = PathAndQuery::from_maybe_shared(Bytes::copy_from_slice(&target.path));
    let path = path.ok().filter(|path| path.as_str().as_bytes() == target.path);
    let authority = Authority::from_maybe_shared(Bytes::from(target.origin.host_field()));
    let (Some(path), Ok(authority)) = (path, authority) else {
        return Err(StreamError::target());
    };
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(match target.origin.scheme {
        origin::Scheme::Https => Scheme::HTTPS,
        // A request to an ftp origin never uses HTTP/2.
        origin::Scheme::Http | origin::Scheme::Ftp => Scheme::HTTP,
    });
    parts.authority = Some(authority);
    parts.path_and_query = Some(path);

    let mut request = http::Request::new(());
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| StreamError::target())?;
    *request.method_mut() = head.method.clone();
    *request.version_mut() = Version::HTTP_2;
    let fields = head.headers.iter().filter(|(name, value)| is_allowed(name, value));
    request.headers_mut().reserve(head.headers.len());
    // Removing fields from a copy of the map would change the order of the others.
    for (name, value) in fields {
        request.headers_mut().append(name, value.clone());
    }
    Ok(request)
}

/// Converts the head of a response, and keeps one `Content-Length` field, because h2 has checked that all agree.
/// Refuses a switch of protocols (RFC 9113 §8.6).
pub(super) fn response(response: http::Response<()>) -> Result<ResponseHeader, Fault> {
    if response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        return Err(Fault::HttpProtocol);
    }
    let (mut parts, ()) = response.into_parts();
    if let header::Entry::Occupied(mut lengths) = parts.headers.entry(header::CONTENT_LENGTH)
        && lengths.iter().nth(1).is_some()
    {
        let length = lengths.get().clone();
        lengths.insert(length);
    }
    Ok(parts.into())
}

fn is_allowed(name: &HeaderName, value: &HeaderValue) -> bool {
    !LEFT_OUT.contains(name) && (*name != header::TE || value.as_bytes().eq_ignore_ascii_case(b"trailers"))
}

/// Fields about an HTTP/1.1 connection (RFC 9113 §8.2.2), and `Host`, which `:authority` replaces.
const LEFT_OUT: [HeaderName; 6] = [
    header::HOST,
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

#[cfg(test)]
mod tests;
