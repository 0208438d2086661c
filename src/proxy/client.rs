//! The client's side of an exchange: receives the request and sends the response, over HTTP/1.1 or HTTP/2.

mod http1;
mod http2;

use std::{
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Version, header};
use pingora::protocols::http::v2::server::HttpSession as Session2;
use pingora_http::{RequestHeader, ResponseHeader};

use self::{http1::Http1, http2::Http2};
use super::{head::Head, respond::OwnResponse};
use crate::{upstream::Content, wire::Wire};

/// A request, and the connection to its client.
pub(super) enum Client {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

/// Why the client's side of an exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientFault {
    /// The client closed the connection or cancelled the request.
    Gone,
    /// The client did not read the response in time.
    Full,
    /// The content of the request is malformed.
    Malformed,
}

// === impl Client ===

impl Client {
    /// Creates the client for a request whose head was read from `wire`. After this request, the connection may serve
    /// `left` more.
    ///
    /// # Errors
    /// Fails if pingora cannot parse the head. This is not expected, because robotgate has already checked the head,
    /// more strictly than pingora does.
    pub(super) async fn http1(wire: Wire, head: Head, left: u32) -> pingora::Result<Self> {
        Ok(Self::Http1(Box::new(Http1::new(wire, head, left).await?)))
    }

    pub(super) fn http2(session: Session2) -> Self {
        Self::Http2(Box::new(Http2::new(session)))
    }

    pub(super) fn head(&self) -> &RequestHeader {
        match self {
            Self::Http1(client) => client.head(),
            Self::Http2(client) => client.head(),
        }
    }

    /// Returns whether the URL of the request named a user of an FTP site, other than the anonymous one.
    pub(super) fn names_user(&self) -> bool {
        match self {
            Self::Http1(client) => client.names_user(),
            Self::Http2(_) => false,
        }
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Returns whether the request asks for a WebSocket.
    pub(super) fn asks_to_upgrade(&self) -> bool {
        match self {
            Self::Http1(client) => client.asks_to_upgrade(),
            Self::Http2(_) => false,
        }
    }

    /// Returns whether the client waits for `100 Continue` before it sends content (RFC 9110 §10.1.1). This is always
    /// false for HTTP/2.
    pub(super) fn waits_to_send(&mut self) -> bool {
        let expects = self.head().headers.get(header::EXPECT);
        let waits = expects.is_some_and(|expects| expects.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        waits && self.head().version == Version::HTTP_11 && self.has_content()
    }

    /// Returns whether the request has content.
    pub(super) fn has_content(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.has_content(),
            Self::Http2(client) => client.has_content(),
        }
    }

    /// Returns whether all of the request has been read.
    pub(super) fn is_read(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.is_read(),
            Self::Http2(client) => client.is_read(),
        }
    }

    /// Returns the number of bytes of content received from the client, and of content sent to it.
    pub(super) fn bytes(&self) -> (u64, u64) {
        match self {
            Self::Http1(client) => client.bytes(),
            Self::Http2(client) => client.bytes(),
        }
    }

    /// Returns the next part of the request's content, or `None` if there is no more.
    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ClientFault>> {
        match self {
            Self::Http1(client) => client.poll_content(cx),
            Self::Http2(client) => client.poll_content(cx),
        }
    }

    /// Ready when the client has closed the connection or cancelled the request.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(client) => client.poll_gone(cx),
            Self::Http2(client) => client.poll_gone(cx),
        }
    }

    /// Returns whether the client's HTTP/2 connection as a whole broke. Returns false if the client only cancelled this
    /// request, and always over HTTP/1.1. Call this after [`poll_gone`](Self::poll_gone) was ready.
    pub(super) fn has_lost_connection(&mut self) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(client) => client.has_lost_connection(),
        }
    }

    /// Returns whether [`send`](Self::send) may be called. Over HTTP/1.1, it may if only few bytes of the response wait
    /// to be sent. Over HTTP/2, it may if none wait.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Http1(client) => client.has_room(),
            Self::Http2(client) => client.has_room(),
        }
    }

    /// Ready when no bytes of the response wait to be sent any more.
    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        match self {
            Self::Http1(client) => client.poll_sent(cx),
            Self::Http2(client) => client.poll_sent(cx),
        }
    }

    /// Sends the head of a response. With `end`, the response has nothing after the head.
    ///
    /// # Errors
    /// Fails if the client has left.
    pub(super) fn send_head(&mut self, head: ResponseHeader, end: bool) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.send_head(head, end),
            Self::Http2(client) => client.send_head(head, end),
        }
    }

    /// Sends a part of the response's content. Call it only if [`has_room`](Self::has_room) returns true.
    ///
    /// # Errors
    /// Fails if the client has left.
    pub(super) fn send(&mut self, content: Content<'_>) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.send(content.as_slice()),
            Self::Http2(client) => {
                client.send(content.into_bytes());
                Ok(())
            }
        }
    }

    /// Ends the response.
    ///
    /// # Errors
    /// Fails if the client has left.
    pub(super) fn finish(&mut self) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.finish(),
            Self::Http2(client) => {
                client.finish();
                Ok(())
            }
        }
    }

    /// Ends the response with trailers. Clients of HTTP/1.1 do not get the trailers.
    ///
    /// # Errors
    /// Fails if the client has left.
    pub(super) fn finish_with(&mut self, trailers: HeaderMap) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.finish(),
            Self::Http2(client) => client.finish_with(trailers),
        }
    }

    /// Sends a response that robotgate created. The client must read all of it in the time `within`.
    ///
    /// # Errors
    /// Fails if the client has left or has not read the response in time.
    pub(super) async fn answer(&mut self, answer: OwnResponse, within: Duration) -> Result<(), ClientFault> {
        if !answer.keeps_connection {
            self.close_after();
        }
        let head_only = self.head().method == Method::HEAD;
        let content = if head_only { Bytes::new() } else { answer.body };
        self.send_head(answer.head, content.is_empty())?;
        if !content.is_empty() {
            self.send(Content::Shared(content))?;
            self.finish()?;
        }
        // `timeout` tries to send before it starts a timer. Most responses are sent at once, so they need no timer.
        let sent = std::future::poll_fn(|cx| self.poll_sent(cx));
        tokio::time::timeout(within, sent)
            .await
            .unwrap_or(Err(ClientFault::Full))
    }

    /// Over HTTP/1.1, makes the connection close after the response. Call this before the head is sent. Does nothing
    /// over HTTP/2, where other requests may still use the connection.
    pub(super) fn close_after(&mut self) {
        if let Self::Http1(client) = self {
            client.close_after();
        }
    }

    /// Cuts off a response that cannot be completed. Over HTTP/1.1, sends the part of the response that robotgate has,
    /// for `within` at most, and makes [`into_next`](Self::into_next) close the connection. Over HTTP/2, only the
    /// stream of this request ends.
    pub(super) async fn cut(&mut self, within: Duration) {
        match self {
            Self::Http1(client) => client.cut(within).await,
            // The library resets an HTTP/2 stream that is dropped before its response ends.
            Self::Http2(_) => {}
        }
    }

    /// Over HTTP/1.1, reads the rest of the request for a few seconds. Call this after a response that was sent before
    /// the end of the request. Many clients send the whole request before they read, and would lose the response if the
    /// connection closed.
    pub(super) async fn linger(&mut self) {
        if let Self::Http1(client) = self {
            client.linger().await;
        }
    }

    /// Over HTTP/1.1, returns the connection if the next request may follow on it, and otherwise closes it. Returns
    /// `None` for HTTP/2.
    pub(super) fn into_next(self) -> Option<Wire> {
        match self {
            Self::Http1(client) => client.into_next(),
            Self::Http2(_) => None,
        }
    }

    /// Returns the connection to the client, to pass the bytes of a WebSocket. Returns `None` for HTTP/2.
    pub(super) fn into_websocket(self) -> Option<Wire> {
        match self {
            Self::Http1(client) => Some(client.into_websocket()),
            Self::Http2(_) => None,
        }
    }
}
