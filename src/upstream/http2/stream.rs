//! One request and its response on a stream of an HTTP/2 connection.

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

/// A request and its response. Dropping this before the response has ended cancels both.
///
/// A caller can stop polling any method at any time without losing data.
#[derive(Debug)]
pub struct Stream {
    response: Response,
    content: SendStream<Bytes>,
    /// Content that waits until the origin's window has room for it.
    unsent: Bytes,
    left: Left,
    /// Length of the part that [`Stream::poll_content`] returned last. The next call of this method opens the
    /// flow-control window again by as many bytes.
    handed: usize,
    informational: usize,
    /// Must be the last field. Fields are dropped in order, so the stream counts as open until the others are dropped.
    permit: StreamPermit,
}

#[derive(Debug)]
enum Response {
    HeadRead(ResponseFuture),
    Begun(RecvStream),
}

/// What remains to be sent of a request's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// The caller can push more.
    More,
    /// The content in `unsent`, and then the end of the stream.
    End,
    Nothing,
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(permit: StreamPermit, response: ResponseFuture, content: SendStream<Bytes>, end: bool) -> Self {
        Self {
            response: Response::HeadRead(response),
            content,
            unsent: Bytes::new(),
            left: if end { Left::Nothing } else { Left::More },
            handed: 0,
            informational: 0,
            permit,
        }
    }

    /// Reads the next informational response, or `None` once the final head has arrived.
    ///
    /// # Errors
    /// Fails in the same cases as [`poll_head`](Self::poll_head).
    pub fn poll_informational(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ResponseHeader, StreamError>>> {
        let Response::HeadRead(response) = &mut self.response else {
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

    /// Reads the head of the final response. Skips informational responses that were not read with
    /// [`poll_informational`](Self::poll_informational).
    ///
    /// # Errors
    /// Fails if the stream or the connection fails, or the response is malformed.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHeader, StreamError>> {
        while let Some(informational) = ready!(self.poll_informational(cx)) {
            informational?;
        }
        let Response::HeadRead(response) = &mut self.response else {
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

    /// Reads the next part of the response's content, or `None` at its end. Opens the window again by the size of the
    /// previous part.
    pub fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        let Response::Begun(body) = &mut self.response else {
            return Poll::Ready(Err(StreamError::internal("it asked for content before the head")));
        };
        if self.handed > 0 {
            // This cannot fail, because `handed` is never more than was received.
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

    /// Reads the trailers after the end of the content, or `None` if there are none.
    ///
    /// # Errors
    /// Fails if the response is incomplete.
    pub fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        let Response::Begun(body) = &mut self.response else {
            return Poll::Ready(Err(StreamError::internal("it asked for trailers before the head")));
        };
        let trailers = ready!(body.poll_trailers(cx));
        self.permit.settled |= trailers.is_ok();
        Poll::Ready(trailers.map_err(|_| self.failed_content()))
    }

    /// Returns whether the whole response was read, including trailers.
    pub fn has_ended(&self) -> bool {
        matches!(&self.response, Response::Begun(body) if body.is_end_stream())
    }

    /// Queues content of the request for sending. Set `end` with the last part.
    ///
    /// Call this only after [`poll_room`](Self::poll_room) was ready.
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

    /// Returns whether all queued content was sent.
    pub fn has_room(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Sends the queued content. Becomes ready when the origin's window has room for all of it, or when the origin
    /// accepts no more content.
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
            // An error means that the stream has already ended.
            let _ = self.content.send_data(Bytes::new(), true);
            self.left = Left::Nothing;
        }
        Poll::Ready(())
    }

    /// Returns whether more content can be pushed. False after the end was queued, or after
    /// [`poll_room`](Self::poll_room) found that the origin accepts no more (RFC 9113 §8.1).
    pub fn wants_content(&self) -> bool {
        self.left == Left::More
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
            // The connection has failed, or the origin is closing it.
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

const MAX_INFORMATIONAL: usize = 16;
