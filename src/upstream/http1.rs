//! One request and its response on an HTTP/1.1 connection to an origin (RFC 9112).

use std::{
    pin::pin,
    task::{Context, Poll, ready},
};

use http::{HeaderValue, header};
use pingora::protocols::{Stream, http::v1::client::HttpSession};
use pingora_http::{RequestHeader, ResponseHeader};

use super::Fault;
use crate::wire::{Awaited, Wire, at_once};

/// See the module's text.
pub struct Http1 {
    session: HttpSession,
    wire: Wire,
    /// Bytes of the next head that were looked at.
    seen: usize,
    /// Whether the request, or the response, ties the connection to whoever asked.
    personal: bool,
}

// === impl Http1 ===

impl Http1 {
    pub fn new(stream: Stream) -> Self {
        let wire = Wire::new(stream);
        Self {
            session: HttpSession::new(Box::new(wire.clone())),
            wire,
            seen: 0,
            personal: false,
        }
    }

    /// Writes the head of the request.
    ///
    /// # Errors
    /// It cannot stand on the wire, or the connection is broken.
    pub fn send_head(&mut self, head: Box<RequestHeader>) -> Result<(), Fault> {
        self.personal |= names_a_login(head.headers.get_all(header::AUTHORIZATION));
        write_result(at_once(self.session.write_request_header(head)))
    }

    /// Whether more may be written before what was written has gone.
    pub fn has_room(&self) -> bool {
        self.wire.unsent() < MAX_UNSENT
    }

    /// Ready when all that was written has gone.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.wire.poll_sent(cx).map_err(|_| Fault::ConnectionTerminated)
    }

    /// Writes some content of the request.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, content: &[u8]) -> Result<(), Fault> {
        if content.is_empty() {
            // As a chunk it would be the last one (RFC 9112 §7.1).
            return Ok(());
        }
        write_result(at_once(self.session.write_body(content)))
    }

    /// Ends the content of the request.
    ///
    /// # Errors
    /// It is shorter than its head says, or the connection is broken.
    pub fn finish(&mut self) -> Result<(), Fault> {
        write_result(at_once(self.session.finish_body()))
    }

    /// The head of the next response: any number of informational ones come before the final one.
    ///
    /// # Errors
    /// It is malformed, or the connection ends before it.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHeader, Fault>> {
        // The session would parse the head anew with each byte that comes.
        loop {
            let awaited = ready!(self.wire.poll_head(&mut self.seen, MAX_HEAD, cx));
            match awaited.map_err(|_| Fault::ConnectionTerminated)? {
                Awaited::TooLong => return Poll::Ready(Err(Fault::HttpProtocol)),
                Awaited::End if self.wire.bytes_read() == 0 => return Poll::Ready(Err(Fault::ConnectionTerminated)),
                Awaited::End | Awaited::Head => {}
            }
            // Empty lines may stand in front of a head.
            if let Poll::Ready(read) = pin!(self.session.read_response()).poll(cx) {
                self.wire.read_on();
                read.map_err(fault)?;
                break;
            }
        }
        let Some(head) = self.session.resp_header() else {
            return Poll::Ready(Err(Fault::HttpProtocol));
        };
        let head = head.clone();
        self.personal |= names_a_login(head.headers.get_all(header::WWW_AUTHENTICATE));
        Poll::Ready(Ok(head))
    }

    /// Some content of the response; `None` at its end.
    ///
    /// # Errors
    /// It is malformed or breaks off.
    pub fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, Fault>> {
        let read = pin!(self.session.read_body_ref());
        read.poll(cx).map_err(Fault::of_body)
    }

    /// Whether the response has ended, which that of a HEAD has with its head.
    pub fn is_ended(&mut self) -> bool {
        self.session.is_body_done()
    }

    /// How many bytes have come from the origin.
    pub fn bytes_read(&self) -> u64 {
        self.wire.bytes_read()
    }

    /// The connection, where another request can follow on it (RFC 9112 §9.3).
    pub fn into_kept(mut self) -> Option<Stream> {
        self.session.respect_keepalive();
        let is_kept = self.session.will_keepalive() && !self.personal;
        let kept = at_once(self.session.reuse()).flatten();
        drop(kept?);
        let (stream, unread) = self.wire.into_stream()?;
        // An origin that says more than it was asked for is not asked again.
        (is_kept && unread.is_empty()).then_some(stream)
    }

    /// The connection of a WebSocket, after the head of the `101`.
    pub fn into_websocket(self) -> Wire {
        // The session has read the head and nothing behind it.
        self.wire
    }
}

fn write_result<T>(done: Option<pingora::Result<T>>) -> Result<(), Fault> {
    match done {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(fault(error)),
        None => Err(Fault::Internal("a write to a wire had to wait".to_owned())),
    }
}

/// Every error of this session is the origin's.
fn fault(error: Box<pingora::Error>) -> Fault {
    Fault::from_pingora(&error.into_up())
}

/// Whether one of the fields names a scheme that proves who asks once for a whole connection (RFC 4559 §6).
fn names_a_login<'a>(fields: impl IntoIterator<Item = &'a HeaderValue>) -> bool {
    let parts = fields
        .into_iter()
        .flat_map(|field| field.as_bytes().split(|byte| *byte == b','));
    let mut schemes = parts.filter_map(|part| part.trim_ascii().split(u8::is_ascii_whitespace).next());
    schemes.any(|scheme| scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate"))
}

/// Bytes of a response's head, as over HTTP/2.
const MAX_HEAD: usize = 256 * 1024;
/// Bytes that may wait to be sent while more is written.
const MAX_UNSENT: usize = 16 * 1024;
