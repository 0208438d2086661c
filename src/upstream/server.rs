//! Sends a request to an origin and receives the response, over HTTP/1.1, HTTP/2 or FTP.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Version};
use pingora::protocols::Stream;
use pingora_http::{RequestHeader, ResponseHeader};

use super::{
    Fault, Ftp, Http1,
    http2::{self, SharedConnection, StreamError},
};
use crate::{origin::Target, wire::Wire};

/// A request to an origin, and its response.
pub enum Server {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
    Ftp(Box<Ftp>),
}

/// A request and its response on a shared HTTP/2 connection.
pub struct Http2 {
    connection: SharedConnection,
    stream: Option<http2::Stream>,
    again: Repeat,
    has_answered: bool,
}

/// Whether and how to repeat a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The origin might have processed the request.
    Never,
    /// The origin has certainly not processed the request, or the request is idempotent and the origin closed an
    /// existing connection instead of responding.
    Always,
    /// The origin demands HTTP/1.1, or HTTP/2 cannot transmit the target. The request was not processed.
    OverHttp1,
}

/// Content of a response.
pub enum Content<'a> {
    Slice(&'a [u8]),
    Shared(Bytes),
}

// === impl Server ===

impl Server {
    pub fn http1(stream: Stream) -> Self {
        Self::Http1(Box::new(Http1::new(stream)))
    }

    pub fn http2(connection: SharedConnection) -> Self {
        Self::Http2(Box::new(Http2 {
            connection,
            stream: None,
            again: Repeat::Never,
            has_answered: false,
        }))
    }

    /// Returns the version of HTTP that carries the request. A request over FTP counts as HTTP/1.1.
    pub fn version(&self) -> Version {
        match self {
            Self::Http1(_) | Self::Ftp(_) => Version::HTTP_11,
            Self::Http2(_) => Version::HTTP_2,
        }
    }

    /// Sends the head of the request for `target`. Set `end` if the request has no content.
    ///
    /// # Errors
    /// Fails if the head cannot be sent.
    pub fn send_head(&mut self, head: RequestHeader, target: &Target, end: bool) -> Result<(), Fault> {
        match self {
            Self::Http1(server) => server.send_head(Box::new(head)),
            Self::Http2(server) => {
                let request = http2::request(&head, target);
                let sent = request.and_then(|request| server.connection.send(request, end));
                server.stream = Some(sent.map_err(|error| server.failed(error))?);
                Ok(())
            }
            Self::Ftp(server) => server.send_head(&head, target),
        }
    }

    /// Returns whether more content can be sent now.
    pub fn has_room(&self) -> bool {
        match self {
            Self::Http1(server) => server.has_room(),
            Self::Http2(server) => server.stream.as_ref().is_some_and(http2::Stream::has_room),
            Self::Ftp(_) => true,
        }
    }

    /// Becomes ready once all queued bytes have been sent. Over HTTP/2, becomes ready once the origin's window has room
    /// for them, or the origin accepts no more content.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        match self {
            Self::Http1(server) => server.poll_sent(cx),
            Self::Http2(server) => server.stream()?.poll_room(cx).map(Ok),
            Self::Ftp(_) => Poll::Ready(Ok(())),
        }
    }

    /// Sends content of the request.
    ///
    /// # Errors
    /// Fails if the origin accepts no more content.
    pub fn send(&mut self, content: Bytes) -> Result<(), Fault> {
        match self {
            Self::Http1(server) => server.send(&content),
            Self::Http2(server) => {
                let stream = server.stream()?;
                if !stream.wants_content() {
                    return Err(Fault::ConnectionTerminated);
                }
                stream.push(content, false);
                Ok(())
            }
            Self::Ftp(_) => Err(Fault::ConnectionTerminated),
        }
    }

    /// Ends the content of the request.
    ///
    /// # Errors
    /// Over HTTP/1.1, fails if the connection is broken or the content is shorter than the head says. Over HTTP/2,
    /// fails only if the head was not sent.
    pub fn finish(&mut self) -> Result<(), Fault> {
        match self {
            Self::Http1(server) => server.finish(),
            Self::Http2(server) => {
                server.stream()?.push(Bytes::new(), true);
                Ok(())
            }
            Self::Ftp(_) => Ok(()),
        }
    }

    /// Reads the next head of a response. Informational responses precede the final one.
    ///
    /// # Errors
    /// Fails if the head is malformed or missing.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHeader, Fault>> {
        match self {
            Self::Http1(server) => server.poll_head(cx),
            Self::Http2(server) => {
                let stream = server.stream()?;
                let head = match ready!(stream.poll_informational(cx)) {
                    Some(head) => head,
                    None => ready!(stream.poll_head(cx)),
                };
                server.has_answered |= head.is_ok();
                Poll::Ready(head.map_err(|error| server.failed(error)))
            }
            Self::Ftp(server) => server.poll_head(cx),
        }
    }

    /// Returns the number of bytes received since this request got the connection, or [`Ftp::progress`] over FTP.
    /// Always 0 for HTTP/2, because other requests can use the connection too.
    pub fn bytes_read(&self) -> u64 {
        match self {
            Self::Http1(server) => server.bytes_read(),
            Self::Ftp(server) => server.progress(),
            Self::Http2(_) => 0,
        }
    }

    /// Returns [`Ftp::progress`], which grows even before there is a response. Always 0 for HTTP.
    pub fn ftp_progress(&self) -> u64 {
        match self {
            Self::Ftp(server) => server.progress(),
            Self::Http1(_) | Self::Http2(_) => 0,
        }
    }

    /// Reads content of the response, or `None` at its end.
    ///
    /// # Errors
    /// Fails if the content is malformed or incomplete.
    pub fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Content<'_>>, Fault>> {
        match self {
            Self::Http1(server) => server.poll_content(cx).map_ok(|content| content.map(Content::Slice)),
            Self::Http2(server) => {
                let content = server.stream()?.poll_content(cx);
                content
                    .map_ok(|content| content.map(Content::Shared))
                    .map_err(Fault::from)
            }
            Self::Ftp(server) => server.poll_content(cx).map_ok(|content| content.map(Content::Shared)),
        }
    }

    /// Reads the trailers after the content. `None` over HTTP/1.1, whose trailers robotgate ignores, and over FTP.
    pub fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, Fault>> {
        match self {
            Self::Http1(_) | Self::Ftp(_) => Poll::Ready(Ok(None)),
            Self::Http2(server) => server.stream()?.poll_trailers(cx).map_err(Fault::from),
        }
    }

    /// Returns whether the response has ended.
    pub fn is_ended(&mut self) -> bool {
        match self {
            Self::Http1(server) => server.is_ended(),
            Self::Http2(server) => server.stream.as_ref().is_some_and(http2::Stream::has_ended),
            Self::Ftp(server) => server.is_ended(),
        }
    }

    /// Returns the connection if it is HTTP/1.1 and another request can use it.
    pub fn into_kept(self) -> Option<Stream> {
        match self {
            Self::Http1(server) => server.into_kept(),
            // A shared connection is already available to other requests. An FTP session is for one request.
            Self::Http2(_) | Self::Ftp(_) => None,
        }
    }

    /// Returns the connection, which the caller uses as a WebSocket. Call this after the head of the `101` response was
    /// read.
    ///
    /// # Errors
    /// Fails if the connection is HTTP/2 or FTP, which have no `101`.
    pub fn into_websocket(self) -> Result<Wire, Fault> {
        match self {
            Self::Http1(server) => Ok(server.into_websocket()),
            Self::Http2(_) | Self::Ftp(_) => Err(Fault::HttpProtocol),
        }
    }

    /// Returns whether and how to repeat a request that failed with `fault`. Set `may_repeat` if the request is
    /// idempotent and used a connection that already existed.
    pub fn again(&self, fault: &Fault, may_repeat: bool) -> Repeat {
        let (again, is_unanswered) = match self {
            Self::Http1(server) => (Repeat::Never, server.bytes_read() == 0),
            // If the HTTP/2 connection is still open, the origin has received this request and reset its stream, so it
            // may have processed the request.
            Self::Http2(server) => (server.again, !server.has_answered && server.connection.is_closed()),
            Self::Ftp(_) => (Repeat::Never, false),
        };
        // The origin most likely closed the connection before it received the request.
        let is_closed = matches!(fault, Fault::ConnectionTerminated | Fault::ResponseIncomplete);
        match again {
            Repeat::Never if may_repeat && is_closed && is_unanswered => Repeat::Always,
            again => again,
        }
    }
}

// === impl Http2 ===

impl Http2 {
    fn stream(&mut self) -> Result<&mut http2::Stream, Fault> {
        let stream = self.stream.as_mut();
        stream.ok_or_else(|| Fault::Internal("it has not sent the head of the request".to_owned()))
    }

    fn failed(&mut self, error: StreamError) -> Fault {
        self.again = match () {
            () if error.needs_http1() => Repeat::OverHttp1,
            () if error.is_unprocessed() => Repeat::Always,
            () => Repeat::Never,
        };
        error.into()
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
