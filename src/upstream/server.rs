//! The origin's side of an exchange: the request as it goes and the response as it comes, whatever version of HTTP carries
//! them.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use pingora::protocols::Stream;
use pingora_http::{RequestHeader, ResponseHeader};

use super::{Fault, Http1};
use crate::wire::Wire;

/// A request to an origin, and its response.
pub enum Server {
    Http1(Box<Http1>),
}

/// Some content of a response.
pub enum Content<'a> {
    Slice(&'a [u8]),
    Shared(Bytes),
}

// === impl Server ===

impl Server {
    pub fn http1(stream: Stream) -> Self {
        Self::Http1(Box::new(Http1::new(stream)))
    }

    /// Sends the head of the request.
    ///
    /// # Errors
    /// It cannot be sent.
    pub fn send_head(&mut self, head: Box<RequestHeader>) -> Result<(), Fault> {
        match self {
            Self::Http1(server) => server.send_head(head),
        }
    }

    /// Whether more content may be sent before what was sent has gone.
    pub fn has_room(&self) -> bool {
        match self {
            Self::Http1(server) => server.has_room(),
        }
    }

    /// Ready when all that was sent has gone.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        match self {
            Self::Http1(server) => server.poll_sent(cx),
        }
    }

    /// Sends some content of the request.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, content: Bytes) -> Result<(), Fault> {
        match self {
            Self::Http1(server) => server.send(&content),
        }
    }

    /// Ends the content of the request.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn finish(&mut self) -> Result<(), Fault> {
        match self {
            Self::Http1(server) => server.finish(),
        }
    }

    /// The head of the next response; informational ones come before the final one.
    ///
    /// # Errors
    /// It is malformed, or does not come.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHeader, Fault>> {
        match self {
            Self::Http1(server) => server.poll_head(cx),
        }
    }

    /// Some content of the response; `None` at its end.
    ///
    /// # Errors
    /// It is malformed or breaks off.
    pub fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Content<'_>>, Fault>> {
        match self {
            Self::Http1(server) => server.poll_content(cx).map_ok(|content| content.map(Content::Slice)),
        }
    }

    /// The trailers, after the content; HTTP/1.1's are dropped.
    ///
    /// # Errors
    /// They are malformed or do not come.
    pub fn poll_trailers(&mut self, _cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, Fault>> {
        match self {
            Self::Http1(_) => Poll::Ready(Ok(None)),
        }
    }

    /// Whether the response has ended.
    pub fn is_ended(&mut self) -> bool {
        match self {
            Self::Http1(server) => server.is_ended(),
        }
    }

    /// The connection, where another request can follow on it.
    pub fn into_kept(self) -> Option<Stream> {
        match self {
            Self::Http1(server) => server.into_kept(),
        }
    }

    /// The connection of a WebSocket, after the head of the `101`.
    ///
    /// # Errors
    /// HTTP/2 has no such head.
    pub fn into_websocket(self) -> Result<Wire, Fault> {
        match self {
            Self::Http1(server) => Ok(server.into_websocket()),
        }
    }

    /// Whether nothing has been said in answer to the request.
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Http1(server) => !server.has_answered(),
        }
    }
}

// === impl Content ===

impl Content<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Slice(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Slice(bytes) => Bytes::copy_from_slice(bytes),
            Self::Shared(bytes) => bytes,
        }
    }
}
