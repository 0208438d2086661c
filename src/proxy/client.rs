//! The client's side of an exchange: its request as it comes, and the response as it goes, over HTTP/1.1 and HTTP/2 alike.

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

/// A request, and whoever sent it.
pub(super) enum Client {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

/// What is wrong with the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientFault {
    /// It closed the connection, or took the request back.
    Gone,
    /// It did not take the response in time.
    Full,
    /// The content of its request is malformed.
    Malformed,
}

// === impl Client ===

impl Client {
    /// The request whose head was read off `wire`. The connection may serve as many requests after it as `left` says.
    ///
    /// # Errors
    /// pingora does not read the head as a request, though its checks are the looser ones.
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

    pub(super) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Whether the request asks for a WebSocket.
    pub(super) fn asks_to_upgrade(&self) -> bool {
        match self {
            Self::Http1(client) => client.asks_to_upgrade(),
            Self::Http2(_) => false,
        }
    }

    /// Whether the client waits to be told to send the content of its request (RFC 9110 §10.1.1). One of HTTP/2 cannot be told.
    pub(super) fn waits_to_send(&mut self) -> bool {
        let expects = self.head().headers.get(header::EXPECT);
        let waits = expects.is_some_and(|expects| expects.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        waits && self.head().version == Version::HTTP_11 && self.has_content()
    }

    /// Whether the request has content.
    pub(super) fn has_content(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.has_content(),
            Self::Http2(client) => client.has_content(),
        }
    }

    /// Whether all of the request has been read.
    pub(super) fn is_read(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.is_read(),
            Self::Http2(client) => client.is_read(),
        }
    }

    /// Bytes of content that came and that went.
    pub(super) fn bytes(&self) -> (u64, u64) {
        match self {
            Self::Http1(client) => client.bytes(),
            Self::Http2(client) => client.bytes(),
        }
    }

    /// Some content of the request; `None` at its end.
    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ClientFault>> {
        match self {
            Self::Http1(client) => client.poll_content(cx),
            Self::Http2(client) => client.poll_content(cx),
        }
    }

    /// Ready when the client has gone away.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(client) => client.poll_gone(cx),
            Self::Http2(client) => client.poll_gone(cx),
        }
    }

    /// Of a client that is gone over HTTP/2: whether the whole connection has ended, and not the one stream.
    pub(super) fn has_lost_connection(&mut self) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(client) => client.has_lost_connection(),
        }
    }

    /// Whether more may be sent before what was sent has gone.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Http1(client) => client.has_room(),
            Self::Http2(client) => client.has_room(),
        }
    }

    /// Ready when all that was sent has gone.
    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        match self {
            Self::Http1(client) => client.poll_sent(cx),
            Self::Http2(client) => client.poll_sent(cx),
        }
    }

    /// Sends the head of a response, behind which nothing comes if this is the `end`.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) fn send_head(&mut self, head: ResponseHeader, end: bool) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.send_head(head, end),
            Self::Http2(client) => client.send_head(head, end),
        }
    }

    /// Sends some content. There has to be room for it.
    ///
    /// # Errors
    /// The client is gone.
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
    /// The client is gone.
    pub(super) fn finish(&mut self) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.finish(),
            Self::Http2(client) => {
                client.finish();
                Ok(())
            }
        }
    }

    /// Ends the response with trailers, which HTTP/2 alone can carry here.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) fn finish_with(&mut self, trailers: HeaderMap) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.finish(),
            Self::Http2(client) => client.finish_with(trailers),
        }
    }

    /// Sends an answer of robotgate's own, for which the client may take `within`.
    ///
    /// # Errors
    /// It is gone, or has not taken it.
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
        // Most of the time it goes at once, and no timer is needed.
        let sent = std::future::poll_fn(|cx| self.poll_sent(cx));
        tokio::time::timeout(within, sent)
            .await
            .unwrap_or(Err(ClientFault::Full))
    }

    /// Has the connection closed after the response, of which no head was sent yet.
    pub(super) fn close_after(&mut self) {
        if let Self::Http1(client) = self {
            client.close_after();
        }
    }

    /// Has the connection cut, because the response cannot be ended as it was begun. Over HTTP/1.1, what there is of it is
    /// sent first, for which the client may take `within`.
    pub(super) async fn cut(&mut self, within: Duration) {
        match self {
            Self::Http1(client) => client.cut(within).await,
            // Dropped without an end, the stream is reset.
            Self::Http2(_) => {}
        }
    }

    /// Reads on for a while after an answer that came before the request's end: many clients send to the end before they
    /// look, and a closed connection would take the answer from them.
    pub(super) async fn linger(&mut self) {
        if let Self::Http1(client) = self {
            client.linger().await;
        }
    }

    /// The connection, where the next request may follow on it; else it is closed.
    pub(super) fn into_next(self) -> Option<Wire> {
        match self {
            Self::Http1(client) => client.into_next(),
            Self::Http2(_) => None,
        }
    }

    /// The connection, once it is a WebSocket's.
    pub(super) fn into_websocket(self) -> Option<Wire> {
        match self {
            Self::Http1(client) => Some(client.into_websocket()),
            Self::Http2(_) => None,
        }
    }
}
