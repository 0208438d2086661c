//! The client's side of an exchange: its request as it comes, and the response as it goes, over HTTP/1.1 and HTTP/2 alike.

use std::{
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use h2::SendStream;
use http::{HeaderMap, Method, Version, header};
use pingora::{
    ErrorType,
    protocols::http::{v1::server::HttpSession as Session1, v2::server::HttpSession as Session2},
};
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::io::AsyncWriteExt as _;

use super::{head::Head, respond::Answer};
use crate::{
    upstream::Content,
    wire::{Wire, at_once},
};

/// A request, and whoever sent it.
pub(super) enum Client {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

pub(super) struct Http1 {
    session: Session1,
    wire: Wire,
    /// Whether a response was begun that cannot be ended.
    is_cut: bool,
    bytes_in: u64,
    bytes_out: u64,
}

pub(super) struct Http2 {
    session: Session2,
    body: Option<SendStream<Bytes>>,
    /// Content that waits for the client to take it.
    unsent: Bytes,
    /// Whether the end follows what is unsent.
    ends: bool,
    /// Whether the end was sent.
    ended: bool,
    bytes_in: u64,
    bytes_out: u64,
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
        let mut session = Session1::new(Box::new(wire.clone()));
        session.set_keepalive_reuses_remaining(Some(left));
        session.set_pipelining_enabled(true);
        session.set_read_timeout(None);
        session.set_pipelined_prefix(head.bytes);
        if session.read_request().await?.is_none() {
            return pingora::Error::e_explain(ErrorType::InvalidHTTPHeader, "no request is read");
        }
        Ok(Self::Http1(Box::new(Http1 {
            session,
            wire,
            is_cut: false,
            bytes_in: 0,
            bytes_out: 0,
        })))
    }

    pub(super) fn http2(session: Session2) -> Self {
        Self::Http2(Box::new(Http2 {
            session,
            body: None,
            unsent: Bytes::new(),
            ends: false,
            ended: false,
            bytes_in: 0,
            bytes_out: 0,
        }))
    }

    pub(super) fn head(&self) -> &RequestHeader {
        match self {
            Self::Http1(client) => client.session.req_header(),
            Self::Http2(client) => client.session.req_header(),
        }
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Whether the request asks for a WebSocket.
    pub(super) fn asks_to_upgrade(&self) -> bool {
        match self {
            // Any other protocol is not asked for at the origin.
            Self::Http1(client) => {
                let head = client.session.req_header();
                let protocol = head.headers.get(header::UPGRADE);
                head.version == Version::HTTP_11
                    && protocol.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
            }
            Self::Http2(_) => false,
        }
    }

    /// Whether the request has content.
    pub(super) fn has_content(&mut self) -> bool {
        match self {
            Self::Http1(client) => !client.session.is_body_empty(),
            Self::Http2(client) => !client.session.is_body_empty(),
        }
    }

    /// Whether all of the request has been read.
    pub(super) fn is_read(&mut self) -> bool {
        match self {
            Self::Http1(client) => client.session.is_body_done(),
            Self::Http2(client) => client.session.is_body_done(),
        }
    }

    /// Bytes of content that came and that went.
    pub(super) fn bytes(&self) -> (u64, u64) {
        match self {
            Self::Http1(client) => {
                let unsent = client.wire.unsent() as u64;
                (client.bytes_in, client.bytes_out.saturating_sub(unsent))
            }
            Self::Http2(client) => (client.bytes_in, client.bytes_out),
        }
    }

    /// Some content of the request; `None` at its end.
    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ClientFault>> {
        match self {
            Self::Http1(client) => {
                let read = ready!(pin!(client.session.read_body_bytes()).poll(cx));
                Poll::Ready(match read {
                    Ok(content) => {
                        client.bytes_in += content.as_ref().map_or(0, |content| content.len() as u64);
                        Ok(content)
                    }
                    Err(error) => Err(ClientFault::of(error.etype())),
                })
            }
            Self::Http2(client) => match ready!(client.session.poll_read_body_bytes(cx)) {
                Some(Ok(content)) => {
                    client.bytes_in += content.len() as u64;
                    Poll::Ready(Ok(Some(content)))
                }
                Some(Err(_)) => Poll::Ready(Err(ClientFault::Gone)),
                None => Poll::Ready(Ok(None)),
            },
        }
    }

    /// Ready when the client has gone away.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(client) => client.wire.poll_closed(cx),
            Self::Http2(client) => match &mut client.body {
                Some(body) => body.poll_reset(cx).map(drop),
                None => pin!(client.session.idle()).poll(cx).map(drop),
            },
        }
    }

    /// Whether more may be sent before what was sent has gone.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Http1(client) => client.wire.unsent() < MAX_UNSENT,
            Self::Http2(client) => client.unsent.is_empty(),
        }
    }

    /// Ready when all that was sent has gone.
    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        match self {
            Self::Http1(client) => client.wire.poll_sent(cx).map_err(|_| ClientFault::Gone),
            Self::Http2(client) => client.poll_sent(cx),
        }
    }

    /// Sends the head of a response, behind which nothing comes if this is the `end`.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) fn send_head(&mut self, head: ResponseHeader, end: bool) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => {
                let sent = at_once(client.session.write_response_header(Box::new(head)));
                client.settle(sent)?;
                if end { client.finish() } else { Ok(()) }
            }
            Self::Http2(client) => {
                if head.status.is_informational() {
                    return Ok(());
                }
                let sent = client.session.write_response_header(Box::new(head), end);
                sent.map_err(|_| ClientFault::Gone)?;
                client.body = client.session.take_response_body_writer();
                client.ended = end;
                Ok(())
            }
        }
    }

    /// Sends some content. There has to be room for it.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) fn send(&mut self, content: Content<'_>) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => {
                let bytes = content.as_slice();
                if bytes.is_empty() {
                    // As a chunk it would be the last one (RFC 9112 §7.1).
                    return Ok(());
                }
                let sent = at_once(client.session.write_body(bytes));
                client.settle(sent)?;
                client.bytes_out += bytes.len() as u64;
                Ok(())
            }
            Self::Http2(client) => {
                client.unsent = content.into_bytes();
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
                client.ends = true;
                Ok(())
            }
        }
    }

    /// Ends the response with trailers, which HTTP/2 alone can carry here.
    pub(super) fn finish_with(&mut self, trailers: HeaderMap) -> Result<(), ClientFault> {
        match self {
            Self::Http1(client) => client.finish(),
            Self::Http2(client) => {
                let body = client.body.as_mut().ok_or(ClientFault::Gone)?;
                client.ended = true;
                body.send_trailers(trailers).map_err(|_| ClientFault::Gone)
            }
        }
    }

    /// Sends an answer of robotgate's own, for which the client may take `within`.
    ///
    /// # Errors
    /// It is gone, or has not taken it.
    pub(super) async fn answer(&mut self, answer: Answer, within: Duration) -> Result<(), ClientFault> {
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
            client.session.set_server_keepalive(None);
        }
    }

    /// Has the connection cut, because the response cannot be ended as it was begun. What there is of it is sent still, for
    /// which the client may take `within`.
    pub(super) async fn cut(&mut self, within: Duration) {
        match self {
            Self::Http1(client) => {
                client.is_cut = true;
                // Who takes nothing has gone.
                let _ = tokio::time::timeout(within, client.wire.sent()).await;
            }
            // Dropped without an end, the stream is reset.
            Self::Http2(_) => {}
        }
    }

    /// Reads on for a while after an answer that came before the request's end: many clients send to the end before they
    /// look, and a closed connection would take the answer from them.
    pub(super) async fn linger(&mut self) {
        let Self::Http1(client) = self else { return };
        if client.session.is_body_done() {
            return;
        }
        let rest = async {
            let mut left = MAX_LINGER;
            while let Ok(Some(content)) = client.session.read_body_bytes().await {
                client.bytes_in += content.len() as u64;
                left = left.saturating_sub(content.len());
                if left == 0 {
                    return;
                }
            }
        };
        // Past it, the client has had its time.
        let _ = tokio::time::timeout(LINGER, rest).await;
    }

    /// The connection, where the next request may follow on it; else it is closed.
    pub(super) fn into_next(self) -> Option<Wire> {
        let Self::Http1(client) = self else { return None };
        let Http1 {
            mut session,
            mut wire,
            is_cut,
            ..
        } = *client;
        if is_cut || !session.will_keepalive() || !session.is_body_done() {
            // The end of a response that was cut must not look like one that is meant, as that of TLS would.
            if !is_cut {
                at_once(wire.shutdown());
            }
            return None;
        }
        let (stream, unread) = at_once(session.reuse())?.ok()??.into_parts();
        drop(stream);
        wire.unread(unread.unwrap_or_default());
        Some(wire)
    }

    /// The connection, once it is a WebSocket's.
    pub(super) fn into_websocket(self) -> Option<Wire> {
        let Self::Http1(client) = self else { return None };
        let Http1 { mut session, wire, .. } = *client;
        // What came with the head is read at once, and there is no more of it.
        if let Some(Ok(Some(early))) = at_once(session.read_body_bytes()) {
            wire.unread(BytesMut::from(early));
        }
        Some(wire)
    }
}

// === impl Http1 ===

impl Http1 {
    fn finish(&mut self) -> Result<(), ClientFault> {
        let finished = at_once(self.session.finish_body());
        self.settle(finished)
    }

    fn settle<T>(&mut self, done: Option<pingora::Result<T>>) -> Result<(), ClientFault> {
        match done {
            Some(Ok(_)) => Ok(()),
            Some(Err(_)) | None => Err(ClientFault::Gone),
        }
    }
}

// === impl Http2 ===

impl Http2 {
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(()));
        };
        while !self.unsent.is_empty() {
            body.reserve_capacity(self.unsent.len());
            let Some(Ok(room)) = ready!(body.poll_capacity(cx)) else {
                return Poll::Ready(Err(ClientFault::Gone));
            };
            if room == 0 {
                continue;
            }
            let part = self.unsent.split_to(room.min(self.unsent.len()));
            let end = self.ends && self.unsent.is_empty();
            self.bytes_out += part.len() as u64;
            self.ended |= end;
            body.send_data(part, end).map_err(|_| ClientFault::Gone)?;
        }
        if self.ends && !self.ended {
            self.ended = true;
            body.send_data(Bytes::new(), true).map_err(|_| ClientFault::Gone)?;
        }
        Poll::Ready(Ok(()))
    }
}

// === impl ClientFault ===

impl ClientFault {
    fn of(error: &ErrorType) -> Self {
        match error {
            ErrorType::ReadError | ErrorType::WriteError | ErrorType::ConnectionClosed | ErrorType::H2Error => {
                Self::Gone
            }
            _ => Self::Malformed,
        }
    }
}

/// How long, and for how many bytes, content is read that nobody wants.
const LINGER: Duration = Duration::from_secs(2);
const MAX_LINGER: usize = 64 * 1024 * 1024;
/// Bytes that may wait to be sent while more is sent.
const MAX_UNSENT: usize = 16 * 1024;
