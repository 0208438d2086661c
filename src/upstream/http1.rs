//! One request and its response on an HTTP/1.1 connection to an origin (RFC 9112).

use std::{
    pin::pin,
    task::{Context, Poll, ready},
};

use http::{HeaderValue, header};
use pingora::protocols::{Stream, http::v1::client::HttpSession};
use pingora_http::{RequestHeader, ResponseHeader};

use super::Fault;
use crate::wire::{HeadRead, Wire, at_once};

pub struct Http1 {
    session: HttpSession,
    wire: Wire,
    /// How many bytes of the next head were already searched for its end.
    seen: usize,
    /// Whether a login, such as with NTLM, may apply to the whole connection. No other client may then use the
    /// connection.
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
    /// Fails if the head cannot be serialised or the connection is broken.
    pub fn send_head(&mut self, head: Box<RequestHeader>) -> Result<(), Fault> {
        self.personal |= names_a_login(head.headers.get_all(header::AUTHORIZATION));
        write_result(at_once(self.session.write_request_header(head)))
    }

    /// Returns whether the caller may write more content.
    pub fn has_room(&self) -> bool {
        self.wire.unsent() < MAX_UNSENT
    }

    /// Becomes ready once everything that was written has been sent.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.wire.poll_sent(cx).map_err(|_| Fault::ConnectionTerminated)
    }

    /// Writes content of the request.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    pub fn send(&mut self, content: &[u8]) -> Result<(), Fault> {
        if content.is_empty() {
            // An empty chunk would end the content (RFC 9112 §7.1).
            return Ok(());
        }
        write_result(at_once(self.session.write_body(content)))
    }

    /// Ends the content of the request.
    ///
    /// # Errors
    /// Fails if the content is shorter than the head says, or the connection is broken.
    pub fn finish(&mut self) -> Result<(), Fault> {
        write_result(at_once(self.session.finish_body()))
    }

    /// Reads the next head of a response, informational or final.
    ///
    /// # Errors
    /// Fails if the head is malformed, or the connection ends before it.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHeader, Fault>> {
        // Wait for a whole head: the session would parse an incomplete one again whenever bytes arrive.
        loop {
            let awaited = ready!(self.wire.poll_head(&mut self.seen, MAX_HEAD, cx));
            match awaited.map_err(|_| Fault::ConnectionTerminated)? {
                HeadRead::TooLong => return Poll::Ready(Err(Fault::HttpProtocol)),
                HeadRead::End if self.wire.bytes_read() == 0 => return Poll::Ready(Err(Fault::ConnectionTerminated)),
                HeadRead::End | HeadRead::Head => {}
            }
            // `Wire::poll_head` also stops after two empty lines before the head. The session skips them: wait again.
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

    /// Reads content of the response, or `None` at its end.
    ///
    /// # Errors
    /// Fails if the content is malformed or incomplete.
    pub fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, Fault>> {
        // After a failed write, the connection may have been reset, which reading does not report. So the end of the
        // connection does not prove that the content is complete.
        let is_doubtful = self.wire.is_broken() && self.ends_by_close();
        let read = pin!(self.session.read_body_ref());
        match read.poll(cx).map_err(Fault::of_body) {
            Poll::Ready(Ok(None)) if is_doubtful => Poll::Ready(Err(Fault::ResponseIncomplete)),
            polled => polled,
        }
    }

    /// Returns whether the content ends only when the connection closes (RFC 9112 §6.3).
    fn ends_by_close(&self) -> bool {
        self.session.resp_header().is_some_and(|head| {
            !head.headers.contains_key(header::CONTENT_LENGTH) && !head.headers.contains_key(header::TRANSFER_ENCODING)
        })
    }

    /// Returns whether the response has ended. A response to HEAD ends with its head.
    pub fn is_ended(&mut self) -> bool {
        self.session.is_body_done()
    }

    /// Returns the number of bytes received from the origin since this request got the connection.
    pub fn bytes_read(&self) -> u64 {
        self.wire.bytes_read()
    }

    /// Returns the connection if another request can use it (RFC 9112 §9.3), otherwise `None`.
    pub fn into_kept(mut self) -> Option<Stream> {
        self.session.respect_keepalive();
        let is_kept = self.session.will_keepalive() && !self.personal;
        let kept = at_once(self.session.reuse()).flatten();
        drop(kept?);
        let (stream, unread) = self.wire.into_stream()?;
        // The origin may have sent bytes that belong to no response.
        (is_kept && unread.is_empty()).then_some(stream)
    }

    /// Returns the connection to the origin, which is a WebSocket from now on. Call this after the head of the `101`
    /// response was read.
    pub fn into_websocket(self) -> Wire {
        // The session has read the head and nothing after it.
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

/// Treats all errors of the session as errors of the origin.
fn fault(error: Box<pingora::Error>) -> Fault {
    Fault::from_pingora(&error.into_up())
}

/// Returns whether a field names an authentication scheme that authenticates the whole connection (RFC 4559 §6).
fn names_a_login<'a>(fields: impl IntoIterator<Item = &'a HeaderValue>) -> bool {
    let parts = fields
        .into_iter()
        .flat_map(|field| field.as_bytes().split(|byte| *byte == b','));
    let mut schemes = parts.filter_map(|part| part.trim_ascii().split(u8::is_ascii_whitespace).next());
    schemes.any(|scheme| scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate"))
}

/// Maximum length of a response's head, in bytes. HTTP/2 uses the same limit.
const MAX_HEAD: usize = 256 * 1024;
/// From this number of unsent bytes on, the caller must not write more.
const MAX_UNSENT: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    /// The origin sends `response` to a POST and closes the connection. Then robotgate sends the content `sent`.
    async fn end_of_content(response: &str, sent: &[u8]) -> Result<(), Fault> {
        let (near, mut far) = duplex(1024);
        let mut http1 = Http1::new(Box::new(near));
        let mut head = RequestHeader::build("POST", b"/", None).expect("a head");
        head.insert_header(header::CONTENT_LENGTH, "7").expect("a field");
        http1.send_head(Box::new(head)).expect("it is open");
        poll_fn(|cx| http1.poll_sent(cx)).await.expect("it is open");
        assert!(far.read(&mut [0; 1024]).await.expect("it is open") > 0);
        far.write_all(response.as_bytes()).await.expect("there is room");
        drop(far);

        let written = http1.send(sent);
        assert_eq!(
            written.is_err() || poll_fn(|cx| http1.poll_sent(cx)).await.is_err(),
            !sent.is_empty()
        );
        let head = poll_fn(|cx| http1.poll_head(cx)).await.expect("a head");
        assert_eq!(head.status, 200);
        loop {
            match poll_fn(|cx| http1.poll_content(cx).map_ok(|part| part.map(<[u8]>::len))).await? {
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    #[tokio::test]
    async fn after_a_failed_write_a_close_does_not_end_the_content() {
        let by_close = "HTTP/1.1 200 OK\r\n\r\nhalf";
        let by_length = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfull";
        for (response, sent, end) in [
            (by_close, &b""[..], Ok(())),
            (by_close, b"content", Err(Fault::ResponseIncomplete)),
            (by_length, b"content", Ok(())),
        ] {
            assert_eq!(end_of_content(response, sent).await, end, "{response:?}, {sent:?}");
        }
    }
}
