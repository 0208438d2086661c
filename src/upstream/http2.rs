//! HTTP/2 to an origin (RFC 9113). Several requests share a [`SharedConnection`], each with its own [`Stream`].
//!
//! This module opens no TCP connection, keeps no pool, and does not decide whether to retry.
//!
//! # Limits
//!
//! The origin is not trusted, and a client must not be able to slow down another client on the same connection.
//!
//! - **Windows.** A stream holds at most [`Bounds::window`] bytes that its client has not read yet. The connection's
//!   window has room for that many bytes of each stream, so a client that stops reading does not slow down others.
//! - **Content.** Requests with content share the window that the origin gives to the connection, so a connection
//!   carries one of them at a time. After such a request was cancelled, the connection takes no more requests, because
//!   content that the origin never reads would fill the window.
//! - **Heads.** A head above [`Bounds::max_head`] fails its stream. h2 closes the connection if a head is four times as
//!   long, or has too many CONTINUATION frames (RUSTSEC-2024-0332).
//! - **Informational responses.** A stream accepts 16 of them.
//! - **Floods.** h2 closes a connection if the origin makes it reset more than 1,024 streams (RUSTSEC-2024-0003),
//!   exceeds the connection's window, or sends too many empty or small DATA frames.
//! - **Cancelled streams.** After 100 cancelled streams, the connection takes no new ones. With more of them, the
//!   origin might suspect an attack, and close the connection while other requests use it.
//! - **Sending.** h2 buffers at most 64 KiB of a request's content.
//! - **Dead origins.** While streams are open, a PING is sent every [`Bounds::silence`], and the connection ends if the
//!   answer takes longer than that.
//! - Server push is off; a PUSH_PROMISE ends the connection.

mod drive;
mod error;
mod message;
mod stream;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use h2::client::SendRequest;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::{error::StreamError, message::request, stream::Stream};
use super::Fault;

/// Limits of a connection and its streams.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Maximum size in bytes of a response's head, and of its trailers, counted as in RFC 9113 §6.5.2.
    pub max_head: u32,
    /// Maximum number of bytes of a response's content that the client has not read yet.
    pub window: u32,
    /// Maximum number of concurrent streams, unless the origin allows fewer.
    pub streams: u32,
    /// Time between PINGs while streams are open, and time limit for the answer to a PING.
    pub silence: Duration,
}

/// A connection to an origin that several exchanges share. Clones refer to the same connection.
#[derive(Debug, Clone)]
pub struct SharedConnection(Arc<State>);

#[derive(Debug)]
struct State {
    /// `None` once the connection is closing. h2 closes it after this sender and the last stream are dropped.
    sender: Mutex<Option<SendRequest<Bytes>>>,
    /// Whether no new stream may be opened.
    away: AtomicBool,
    /// Whether the connection was closed because the origin did not answer a PING.
    silent: AtomicBool,
    streams: AtomicUsize,
    /// Maximum number of open streams: the lower of the origin's limit and robotgate's.
    limit: AtomicUsize,
    /// Number of open streams whose request has content.
    uploads: AtomicUsize,
    cancelled: AtomicUsize,
    bounds: Bounds,
}

/// Counts an open stream until this value is dropped.
#[derive(Debug)]
struct StreamPermit {
    state: Arc<State>,
    /// Whether the request has content.
    content: bool,
    /// Whether the response has ended or the stream has failed. If not, dropping this permit counts as a cancellation.
    settled: bool,
}

// === impl Bounds ===

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_head: 256 * 1024,
            window: 1024 * 1024,
            streams: 100,
            silence: Duration::from_secs(10),
        }
    }
}

// === impl SharedConnection ===

impl SharedConnection {
    /// Starts HTTP/2 on a byte stream whose TLS handshake agreed on `h2`, without waiting for the origin. A connection
    /// without streams is closed after `idle`, or up to [`Bounds::silence`] later.
    ///
    /// # Errors
    /// Fails if writing to `stream` fails.
    pub async fn open<T>(stream: T, bounds: &Bounds, idle: Duration) -> Result<Self, Fault>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = h2::client::Builder::new();
        builder
            .enable_push(false)
            .max_header_list_size(bounds.max_head)
            .initial_window_size(bounds.window)
            .initial_connection_window_size(bounds.window.saturating_mul(bounds.streams).min(MAX_WINDOW))
            .initial_max_send_streams(bounds.streams as usize)
            .max_concurrent_reset_streams(MAX_CANCELLED + bounds.streams as usize)
            .reset_stream_duration(REMEMBERED)
            .max_send_buffer_size(SEND_BUFFER);
        let handshake = builder.handshake(stream).await;
        let (sender, connection) = handshake.map_err(|_| Fault::ConnectionTerminated)?;
        let state = Arc::new(State {
            sender: Mutex::new(Some(sender)),
            away: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            streams: AtomicUsize::new(0),
            uploads: AtomicUsize::new(0),
            limit: AtomicUsize::new(bounds.streams as usize),
            cancelled: AtomicUsize::new(0),
            bounds: *bounds,
        });
        tokio::spawn(drive::drive(connection, state.clone(), idle));
        Ok(Self(state))
    }

    /// Returns whether another stream can be opened now. `content` says whether its request has content.
    pub fn has_room(&self, content: bool) -> bool {
        !self.is_closed() && self.0.has_room(content)
    }

    /// Returns whether this connection opens no more streams. Open streams may continue.
    pub fn is_closed(&self) -> bool {
        self.0.is_away()
    }

    /// Returns whether no stream is open.
    pub fn is_idle(&self) -> bool {
        self.0.streams.load(Ordering::Relaxed) == 0
    }

    /// Opens no new streams from now on. The connection ends when its open streams have ended.
    pub fn close(&self) {
        self.0.away.store(true, Ordering::Relaxed);
        self.0.sender.lock().take();
    }

    /// Opens a stream and sends the head of a request. Set `end` if the request has no content.
    ///
    /// # Errors
    /// Fails if no stream can be opened ([`StreamError::is_unprocessed`]), or if HTTP/2 cannot carry the request.
    pub fn send(&self, request: http::Request<()>, end: bool) -> Result<Stream, StreamError> {
        let (mut sender, permit) = self.0.enter(!end)?;
        let sent = sender.send_request(request, end);
        let (response, content) = sent.map_err(|error| {
            let error = StreamError::of_send(&error);
            if error.is_unprocessed() {
                // The connection takes no more streams, but the task that drives it may not have noticed yet.
                self.0.away.store(true, Ordering::Relaxed);
            }
            error
        })?;
        Ok(Stream::new(permit, response, content, end))
    }
}

// === impl State ===

impl State {
    fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed) || self.cancelled.load(Ordering::Relaxed) >= MAX_CANCELLED
    }

    fn has_room(&self, content: bool) -> bool {
        let is_free = !content || self.uploads.load(Ordering::Relaxed) == 0;
        is_free && self.streams.load(Ordering::Relaxed) < self.limit.load(Ordering::Relaxed)
    }

    /// Counts a new stream until the returned permit is dropped.
    fn enter(self: &Arc<Self>, content: bool) -> Result<(SendRequest<Bytes>, StreamPermit), StreamError> {
        let guard = self.sender.lock();
        let sender = guard.as_ref().filter(|_| !self.is_away());
        let sender = sender.ok_or_else(StreamError::closed)?.clone();
        // Keep the lock while counting, so that the connection cannot be closed between the check and the count.
        if !self.has_room(content) {
            return Err(StreamError::closed());
        }
        self.streams.fetch_add(1, Ordering::Relaxed);
        self.uploads.fetch_add(usize::from(content), Ordering::Relaxed);
        let permit = StreamPermit {
            state: self.clone(),
            content,
            settled: false,
        };
        Ok((sender, permit))
    }
}

// === impl StreamPermit ===

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if !self.settled {
            self.state.cancelled.fetch_add(1, Ordering::Relaxed);
            if self.content {
                // Content that the origin has not read may take up a part of the connection's window for ever.
                self.state.away.store(true, Ordering::Relaxed);
            }
        }
        self.state
            .uploads
            .fetch_sub(usize::from(self.content), Ordering::Relaxed);
        self.state.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Maximum size of a window (RFC 9113 §6.9.1).
const MAX_WINDOW: u32 = (1 << 31) - 1;
const MAX_CANCELLED: usize = 100;
/// How long h2 ignores frames that the origin sent before it learned that a stream was cancelled.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a request's content that h2 buffers.
const SEND_BUFFER: usize = 64 * 1024;

#[cfg(test)]
mod tests;
