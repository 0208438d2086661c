//! A request over HTTP/1.0 or HTTP/1.1 (RFC 9112).

use std::{
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Version, header};
use pingora::{ErrorType, protocols::http::v1::server::HttpSession};
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::io::AsyncWriteExt as _;

use super::ClientFault;
use crate::{
    proxy::{
        context::{LINGER, MAX_LINGER},
        head::Head,
    },
    wire::{Wire, at_once},
};

pub(in crate::proxy) struct Http1 {
    session: HttpSession,
    wire: Wire,
    names_user: bool,
    is_cut: bool,
    bytes_in: u64,
    bytes_out: u64,
}

// === impl Http1 ===

impl Http1 {
    pub(super) async fn new(wire: Wire, head: Head, left: u32) -> pingora::Result<Self> {
        let mut session = HttpSession::new(Box::new(wire.clone()));
        session.set_keepalive_reuses_remaining(Some(left));
        session.set_pipelining_enabled(true);
        session.set_read_timeout(None);
        let names_user = head.names_user;
        session.set_pipelined_prefix(head.bytes);
        if session.read_request().await?.is_none() {
            return pingora::Error::e_explain(ErrorType::InvalidHTTPHeader, "no request is read");
        }
        Ok(Self {
            session,
            wire,
            names_user,
            is_cut: false,
            bytes_in: 0,
            bytes_out: 0,
        })
    }

    pub(super) fn head(&self) -> &RequestHeader {
        self.session.req_header()
    }

    pub(super) fn names_user(&self) -> bool {
        self.names_user
    }

    pub(super) fn asks_to_upgrade(&self) -> bool {
        let head = self.head();
        let protocol = head.headers.get(header::UPGRADE);
        // Only an upgrade to a WebSocket is forwarded. The module `head` has refused upgrades to HTTP/2 and TLS.
        head.version == Version::HTTP_11
            && protocol.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
    }

    pub(super) fn has_content(&mut self) -> bool {
        !self.session.is_body_empty()
    }

    pub(super) fn is_read(&mut self) -> bool {
        self.session.is_body_done()
    }

    pub(super) fn bytes(&self) -> (u64, u64) {
        let unsent = self.wire.unsent() as u64;
        (self.bytes_in, self.bytes_out.saturating_sub(unsent))
    }

    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ClientFault>> {
        let read = ready!(pin!(self.session.read_body_bytes()).poll(cx));
        Poll::Ready(match read {
            Ok(content) => {
                self.bytes_in += content.as_ref().map_or(0, |content| content.len() as u64);
                Ok(content)
            }
            Err(error) => Err(ClientFault::of(error.etype())),
        })
    }

    pub(super) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.wire.poll_closed(cx)
    }

    pub(super) fn has_room(&self) -> bool {
        self.wire.unsent() < MAX_UNSENT
    }

    pub(super) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        self.wire.poll_sent(cx).map_err(|_| ClientFault::Gone)
    }

    pub(super) fn send_head(&mut self, head: ResponseHeader, end: bool) -> Result<(), ClientFault> {
        write_result(at_once(self.session.write_response_header(Box::new(head))))?;
        if end { self.finish() } else { Ok(()) }
    }

    pub(super) fn send(&mut self, content: &[u8]) -> Result<(), ClientFault> {
        if content.is_empty() {
            // An empty chunk would end the content (RFC 9112 §7.1).
            return Ok(());
        }
        write_result(at_once(self.session.write_body(content)))?;
        self.bytes_out += content.len() as u64;
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<(), ClientFault> {
        write_result(at_once(self.session.finish_body()))
    }

    pub(super) fn close_after(&mut self) {
        self.session.set_server_keepalive(None);
    }

    pub(super) async fn cut(&mut self, within: Duration) {
        self.is_cut = true;
        // After a timeout, the unsent bytes are dropped.
        let _ = tokio::time::timeout(within, self.wire.sent()).await;
    }

    pub(super) async fn linger(&mut self) {
        if self.is_read() {
            return;
        }
        let rest = async {
            let mut left = MAX_LINGER;
            while let Ok(Some(content)) = self.session.read_body_bytes().await {
                self.bytes_in += content.len() as u64;
                left = left.saturating_sub(content.len());
                if left == 0 {
                    return;
                }
            }
        };
        // A timeout is no error here: the connection closes afterwards.
        let _ = tokio::time::timeout(LINGER, rest).await;
    }

    pub(super) fn into_next(self) -> Option<Wire> {
        let Self {
            mut session,
            mut wire,
            is_cut,
            ..
        } = self;
        if is_cut || !session.will_keepalive() || !session.is_body_done() {
            // A TLS close_notify would make a response that was cut off look complete.
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

    pub(super) fn into_websocket(self) -> Wire {
        let Self { mut session, wire, .. } = self;
        // The session may have read bytes of the WebSocket together with the head.
        if let Some(Ok(Some(early))) = at_once(session.read_body_bytes()) {
            wire.unread(BytesMut::from(early));
        }
        wire
    }
}

/// `done` is never `None`, because a [`Wire`] takes all bytes immediately.
fn write_result<T>(done: Option<pingora::Result<T>>) -> Result<(), ClientFault> {
    match done {
        Some(Ok(_)) => Ok(()),
        Some(Err(_)) | None => Err(ClientFault::Gone),
    }
}

// === impl ClientFault ===

impl ClientFault {
    fn of(error: &ErrorType) -> Self {
        match error {
            ErrorType::ReadError | ErrorType::WriteError | ErrorType::ConnectionClosed => Self::Gone,
            _ => Self::Malformed,
        }
    }
}

/// While at least this many bytes are unsent, robotgate does not pass on more of the response.
const MAX_UNSENT: usize = 16 * 1024;
