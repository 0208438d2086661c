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

pub(super) enum Client {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientFault {
    Gone,
    /// The client did not read the response in time.
    Full,
    Malformed,
}

// === impl Client ===

impl Client {
    /// Creates the client for a request whose head was read from `wire`. `left` is how many more requests the
    /// connection may serve.
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

    pub(super) fn names_user(&self) -> bool {
        match self {
            Self::Http1(client) => client.names_user(),
            Self::Http2(_) => false,
        }
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    pub(super) fn asks_to_upgrade(&self) -> bool {
        match self {
            Self::Http1(client) => client.asks_to_upgrade(),
            Self::Http2(_) => false,
        }
    }

    /// Returns whether the client waits for `100 Continue` before it sends content (RFC 9110 §10.1.1).
    pub(super) fn waits_to_send(&mut self) -> bool {
        let expects = self.head().headers.get(header::EXPECT);
        let waits = expects.is_some_and(|expects| expects.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        waits && self.head().version == Version::HTTP_11 && self.has_content()
    }

    pub(super) fn has_content(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.has_content(),
            Self::Http2(client) => client.has_content(),
        }
    }

    pub(super) fn is_read(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.is_read(),
            Self::Http2(client) => client.is_read(),
        }
    }

    pub(super) fn bytes(&self) -> (u64, u64) {
        match self {
            Self::Http1(client) => client.bytes(),
            Self::Http2(client) => client.bytes(),
        }
    }

    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ClientFault>> {
        match self {
            Self::Http1(client) => client.poll_content(cx),
            Self::Http2(client) => client.poll_content(cx),
        }
    }

    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(client) => client.poll_gone(cx),
            Self::Http2(client) => client.poll_gone(cx),
        }
    }

    /// Returns whether the HTTP/2 connection as a whole broke, rather than only this request.
    pub(super) fn has_lost_connection(&mut self) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(client) => client.has_lost_connection(),
        }
    }

    /// Returns whether [`send`](Self::send) may be called: whether few bytes (HTTP/1.1) or none (HTTP/2) wait to be
    /// sent.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Http1(client) => client.has_room(),
            Self::Http2(client) => client.has_room(),
        }
    }

    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        match self {
            Self::Http1(client) => client.poll_sent(cx),
            Self::Http2(client) => client.poll_sent(cx),
        }
    }

    /// Sends the head of a response. With `end`, the response has nothing after the head.
    pub(super) fn send_head(&mut self, head: ResponseHeader, end: bool) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.send_head(head, end),
            Self::Http2(client) => client.send_head(head, end),
        }
    }

    pub(super) fn send(&mut self, content: Content<'_>) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.send(content.as_slice()),
            Self::Http2(client) => {
                client.send(content.into_bytes());
                Ok(())
            }
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.finish(),
            Self::Http2(client) => {
                client.finish();
                Ok(())
            }
        }
    }

    /// Ends the response with trailers, which clients of HTTP/1.1 do not get.
    pub(super) fn finish_with(&mut self, trailers: HeaderMap) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.finish(),
            Self::Http2(client) => client.finish_with(trailers),
        }
    }

    /// Sends a response that robotgate created. Fails if robotgate cannot send all of it in the time `within`.
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
        // This starts a timer only for the few responses that cannot be sent at once.
        let sent = std::future::poll_fn(|cx| self.poll_sent(cx));
        tokio::time::timeout(within, sent)
            .await
            .unwrap_or(Err(ClientFault::Full))
    }

    /// Makes an HTTP/1.1 connection close after the response. Call this before the head is sent.
    pub(super) fn close_after(&mut self) {
        if let Self::Http1(client) = self {
            client.close_after();
        }
    }

    /// Cuts off a response that cannot be completed. Over HTTP/1.1, first waits up to `within` until the buffered bytes
    /// are sent.
    pub(super) async fn cut(&mut self, within: Duration) {
        match self {
            Self::Http1(client) => client.cut(within).await,
            // The library resets a stream that is dropped before its response ends.
            Self::Http2(_) => {}
        }
    }

    /// Over HTTP/1.1, reads the rest of the request for a few seconds. Many clients send the whole request before they
    /// read, and would lose the response if the connection closed.
    pub(super) async fn linger(&mut self) {
        if let Self::Http1(client) = self {
            client.linger().await;
        }
    }

    /// Returns an HTTP/1.1 connection if the next request may follow on it, and otherwise closes it.
    pub(super) fn into_next(self) -> Option<Wire> {
        match self {
            Self::Http1(client) => client.into_next(),
            Self::Http2(_) => None,
        }
    }

    pub(super) fn into_websocket(self) -> Option<Wire> {
        match self {
            Self::Http1(client) => Some(client.into_websocket()),
            Self::Http2(_) => None,
        }
    }
}
