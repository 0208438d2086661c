//! One request and its response, on a stream of a connection.

use std::{
    future::Future as _,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, client::ResponseFuture};
use http::HeaderMap;
use pingora_http::ResponseHeader;

use super::{StreamError, StreamPermit, message};
use crate::upstream::Fault;

/// One request and its response. Dropped before the response has ended, it cancels both.
///
/// Both ways go on at once: poll [`Self::poll_room`] beside whatever is polled of the response. Each method may be polled
/// and not awaited to its end without loss.
#[derive(Debug)]
pub struct Stream {
    response: Response,
    content: SendStream<Bytes>,
    /// Content that was handed over and that the peer's window does not take yet.
    unsent: Bytes,
    /// What is left to be sent.
    left: Left,
    /// Bytes that were handed out, and whose room in the window is given back when more is asked for.
    handed: usize,
    /// Informational responses so far.
    informational: usize,
    /// Behind the others: the place is free when they are gone.
    permit: StreamPermit,
}

/// The response, as far as it has come.
#[derive(Debug)]
enum Response {
    Awaited(ResponseFuture),
    Begun(RecvStream),
}

/// What is left of a request's content to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// More may be handed over.
    More,
    /// What is unsent, and the end behind it.
    End,
    /// Nothing: the end was sent, or nobody wants it.
    Nothing,
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(permit: StreamPermit, response: ResponseFuture, content: SendStream<Bytes>, end: bool) -> Self {
        Self {
            response: Response::Awaited(response),
            content,
            unsent: Bytes::new(),
            left: if end { Left::Nothing } else { Left::More },
            handed: 0,
            informational: 0,
            permit,
        }
    }

    /// The next informational response; `None` once the final head is there.
    ///
    /// # Errors
    /// As those of [`poll_head`](Self::poll_head).
    pub fn poll_informational(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ResponseHeader, StreamError>>> {
        let Response::Awaited(response) = &mut self.response else {
            return Poll::Ready(None);
        };
        Poll::Ready(match ready!(response.poll_informational(cx)) {
            None => None,
            Some(Err(error)) => Some(Err(self.failed_head(&error))),
            Some(Ok(_)) if self.informational == MAX_INFORMATIONAL => Some(Err(self.malformed())),
            Some(Ok(head)) => {
                self.informational += 1;
                Some(message::response(head).map_err(|_| self.malformed()))
            }
        })
    }

    /// The head of the final response. Informational ones that [`poll_informational`](Self::poll_informational) did not
    /// give are passed over.
    ///
    /// # Errors
    /// The stream or the connection failed, or what came is no response.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHeader, StreamError>> {
        while let Some(informational) = ready!(self.poll_informational(cx)) {
            informational?;
        }
        let Response::Awaited(response) = &mut self.response else {
            return Poll::Ready(Err(StreamError::internal("it asked for a response's head twice")));
        };
        let response = match ready!(Pin::new(response).poll(cx)) {
            Ok(response) => response,
            Err(error) => return Poll::Ready(Err(self.failed_head(&error))),
        };
        let (parts, body) = response.into_parts();
        self.permit.settled = body.is_end_stream();
        self.response = Response::Begun(body);
        let head = message::response(http::Response::from_parts(parts, ()));
        Poll::Ready(head.map_err(|_| self.malformed()))
    }

    /// The next part of the response's content; `None` at its end. What was handed out before is taken for consumed, and
    /// the origin may send as much again.
    ///
    /// # Errors
    /// The content broke off.
    pub fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        let Response::Begun(body) = &mut self.response else {
            return Poll::Ready(Err(StreamError::internal("it asked for content before the head")));
        };
        if self.handed > 0 {
            // No more is given back than was handed out, which is all that h2 could complain of.
            let _ = body.flow_control().release_capacity(std::mem::take(&mut self.handed));
        }
        Poll::Ready(match ready!(body.poll_data(cx)) {
            Some(Ok(part)) => {
                self.handed = part.len();
                self.permit.settled = body.is_end_stream();
                Ok(Some(part))
            }
            None => {
                self.permit.settled = true;
                Ok(None)
            }
            Some(Err(_)) => Err(self.failed_content()),
        })
    }

    /// The response's trailers, behind the end of its content; `None` where it has none.
    ///
    /// # Errors
    /// The response broke off.
    pub fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        let Response::Begun(body) = &mut self.response else {
            return Poll::Ready(Err(StreamError::internal("it asked for trailers before the head")));
        };
        let trailers = ready!(body.poll_trailers(cx));
        self.permit.settled |= trailers.is_ok();
        Poll::Ready(trailers.map_err(|_| self.failed_content()))
    }

    /// Whether the whole response was taken, trailers included, so that nothing else will come.
    pub fn has_ended(&self) -> bool {
        matches!(&self.response, Response::Begun(body) if body.is_end_stream())
    }

    /// Hands over content of the request, and its end with it or alone. Call it where [`poll_room`](Self::poll_room) was
    /// ready. What nobody wants any more is dropped.
    pub fn push(&mut self, content: Bytes, end: bool) {
        if self.left != Left::More {
            return;
        }
        self.unsent = match self.unsent.is_empty() {
            true => content,
            false => [&*self.unsent, &content].concat().into(),
        };
        if end {
            self.left = Left::End;
        }
    }

    /// Whether all that was handed over has been sent.
    pub fn has_room(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Sends what was handed over. Ready when the peer's window took all of it, or when nobody wants it any more
    /// ([`wants_content`](Self::wants_content)). It never fails: why the origin wants no more, the response says.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.unsent.is_empty() {
            self.content.reserve_capacity(self.unsent.len());
            let room = match self.content.capacity() {
                0 => match ready!(self.content.poll_capacity(cx)) {
                    Some(Ok(room)) => room,
                    Some(Err(_)) | None => return self.stop(),
                },
                room => room,
            };
            let part = self.unsent.split_to(room.min(self.unsent.len()));
            let end = self.left == Left::End && self.unsent.is_empty();
            if self.content.send_data(part, end).is_err() {
                return self.stop();
            }
            if end {
                self.left = Left::Nothing;
            }
        }
        if self.left == Left::End {
            // One that is not taken was for a stream that has ended.
            let _ = self.content.send_data(Bytes::new(), true);
            self.left = Left::Nothing;
        }
        Poll::Ready(())
    }

    /// Whether more of the request's content is of use. It is not once the end was handed over, or the origin has
    /// answered without waiting for it (RFC 9113 §8.1) or failed.
    pub fn wants_content(&self) -> bool {
        self.left == Left::More
    }

    /// Cancels the request and its response.
    pub fn reset(&mut self) {
        self.end(Reason::CANCEL);
        if !std::mem::replace(&mut self.permit.settled, true) {
            self.permit.state.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn stop(&mut self) -> Poll<()> {
        self.left = Left::Nothing;
        self.unsent = Bytes::new();
        Poll::Ready(())
    }

    fn end(&mut self, reason: Reason) {
        let _: Poll<()> = self.stop();
        self.content.send_reset(reason);
    }

    fn failed_head(&mut self, error: &h2::Error) -> StreamError {
        self.permit.settled = true;
        let failed = StreamError::of_head(error, self.is_silent());
        if error.is_go_away() || error.is_io() {
            // As where no stream can be opened.
            self.permit.state.away.store(true, Ordering::Relaxed);
        }
        failed
    }

    fn failed_content(&mut self) -> StreamError {
        self.permit.settled = true;
        StreamError::of_content(self.is_silent())
    }

    fn malformed(&mut self) -> StreamError {
        self.permit.settled = true;
        self.end(Reason::PROTOCOL_ERROR);
        Fault::HttpProtocol.into()
    }

    fn is_silent(&self) -> bool {
        self.permit.state.silent.load(Ordering::Relaxed)
    }
}

/// Informational responses of one stream.
const MAX_INFORMATIONAL: usize = 16;
