//! HTTP/2 to an origin (RFC 9113): one connection that several exchanges share, each with a stream of its own.
//!
//! [`SharedConnection`] is the connection, [`Stream`] is one request and its response on it, and `message` makes an HTTP/2
//! request of ours and one of our responses of theirs. A task of its own (`drive`) reads and writes the connection.
//! Nothing here connects, keeps a pool or decides whether to try again.
//!
//! # Bounds
//!
//! The origin is not trusted, and a client of ours must not be able to slow down another one on the same connection.
//!
//! - **Windows.** A stream holds at most [`Bounds::window`] bytes that its client has not taken yet. The connection's
//!   window is that times [`Bounds::streams`], and no more streams than that are open at once. So streams that nobody
//!   reads, however many there are, leave every other one its whole window.
//! - **Content.** The origin's window for a connection is one for all its streams, so a connection has one request with
//!   content at a time, and takes no more of any kind once one of those was cancelled.
//! - **Heads.** [`Bounds::max_head`] is announced and enforced. h2 stops decoding what is over it, and closes the
//!   connection at four times as much, or when a head has more CONTINUATION frames than it needs (RUSTSEC-2024-0332).
//! - **Informational responses.** A stream takes 16 of them.
//! - **Floods.** h2 closes a connection whose peer makes it reset more than 1,024 streams (RUSTSEC-2024-0003), violates a
//!   window, or sends too many small DATA frames that nobody has read: it adds up by how much they are below 256 bytes,
//!   and half of the connection's window is the bound. It answers one PING or SETTINGS frame before it reads the next.
//! - **Streams that we cancel.** h2 remembers each for ten seconds, to ignore what was under way. After
//!   100 of them the connection takes no new streams: origins count cancelled streams as an attack, and would close the
//!   connection under all the others.
//! - **Sending.** h2 holds at most 64 KiB of a request's content that the connection has not taken.
//! - **Dead peers.** While streams are open, a PING goes out every [`Bounds::silence`], and the connection ends if none
//!   comes back within the same time.
//! - Server push is off; a PUSH_PROMISE ends the connection.

mod drive;
mod error;
mod message;
mod stream;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::{error::StreamError, message::request, stream::Stream};
use super::Fault;

/// What a connection and its streams may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of a response's head, and of its trailers, counted as RFC 9113 §6.5.2 does: names, values, and 32 for each
    /// field.
    pub max_head: u32,
    /// Bytes of a response's content that may be waiting for its client.
    pub window: u32,
    /// Streams at once, where the origin allows as many.
    pub streams: u32,
    /// How long nothing is asked of the peer while streams are open, and how long its answer to a PING may take.
    pub silence: Duration,
}

/// A connection to an origin that several exchanges share. A clone is the same connection.
#[derive(Debug, Clone)]
pub struct SharedConnection(Arc<State>);

/// What the connection's handles, its streams and the task that drives it share.
#[derive(Debug)]
struct State {
    /// `None` once no stream may be opened any more. h2 closes a connection when its last sender and stream are gone.
    sender: Mutex<Option<SendRequest<Bytes>>>,
    /// The origin goes away, or the connection has ended.
    away: AtomicBool,
    /// The connection was given up because the peer answered no PING.
    silent: AtomicBool,
    /// Streams that are open.
    streams: AtomicUsize,
    /// Streams that may be open: the lower one of the origin's bound and ours.
    limit: AtomicUsize,
    /// Of those, with a request that has content.
    uploads: AtomicUsize,
    /// Streams that ended by our reset.
    cancelled: AtomicUsize,
    bounds: Bounds,
}

/// Counts a stream among those of its connection until it is dropped.
#[derive(Debug)]
struct StreamPermit {
    state: Arc<State>,
    /// Whether the request has content.
    content: bool,
    /// The response has ended, or the stream has failed: nothing is cancelled any more.
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
    /// Begins HTTP/2 on a stream whose TLS agreed on `h2`, and starts the task that drives the connection. The task ends
    /// with the connection; a connection without streams is closed after `idle` (and at most [`Bounds::silence`] more).
    ///
    /// It waits for nothing that the origin says, only for the first bytes to be written.
    ///
    /// # Errors
    /// The stream took no bytes.
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

    /// Whether another stream may be opened now, for a request with `content` or one without.
    pub fn has_room(&self, content: bool) -> bool {
        !self.is_closed() && self.0.has_room(content)
    }

    /// Whether no stream will be opened on it any more. Those that are open may go on.
    pub fn is_closed(&self) -> bool {
        self.0.is_away()
    }

    /// Whether no stream is open.
    pub fn is_idle(&self) -> bool {
        self.0.streams.load(Ordering::Relaxed) == 0
    }

    /// Opens no more streams. The connection ends with those that are open.
    pub fn close(&self) {
        self.0.away.store(true, Ordering::Relaxed);
        self.0.sender().take();
    }

    /// Opens a stream and sends the head of a request; `end` where it has no content.
    ///
    /// # Errors
    /// No stream can be opened, and nothing was sent ([`StreamError::is_unprocessed`]). Or the request is none that
    /// HTTP/2 has.
    pub fn send(&self, request: http::Request<()>, end: bool) -> Result<Stream, StreamError> {
        let (mut sender, permit) = self.0.enter(!end)?;
        let sent = sender.send_request(request, end);
        let (response, content) = sent.map_err(|error| {
            let error = StreamError::of_send(&error);
            if error.is_unprocessed() {
                // The task that drives the connection may not have seen it yet, and the next request must not come here.
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

    /// Takes a place for a stream.
    fn enter(self: &Arc<Self>, content: bool) -> Result<(SendRequest<Bytes>, StreamPermit), StreamError> {
        let guard = self.sender();
        let sender = guard.as_ref().filter(|_| !self.is_away());
        let sender = sender.ok_or_else(StreamError::closed)?.clone();
        // Places are taken under the lock alone, so that the task cannot close the connection meanwhile.
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

    fn sender(&self) -> MutexGuard<'_, Option<SendRequest<Bytes>>> {
        // The value is whole whenever the lock is free.
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StreamPermit ===

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if !self.settled {
            self.state.cancelled.fetch_add(1, Ordering::Relaxed);
            if self.content {
                // The origin may hold the connection's window for what it has not read.
                self.state.away.store(true, Ordering::Relaxed);
            }
        }
        self.state
            .uploads
            .fetch_sub(usize::from(self.content), Ordering::Relaxed);
        self.state.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// RFC 9113 §6.9.1.
const MAX_WINDOW: u32 = (1 << 31) - 1;
/// Streams that we may cancel on one connection.
const MAX_CANCELLED: usize = 100;
/// How long a cancelled stream is remembered: longer than what the origin had sent meanwhile is under way.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Bytes of a request's content that h2 may hold.
const SEND_BUFFER: usize = 64 * 1024;

#[cfg(test)]
mod tests;
