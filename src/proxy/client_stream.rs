//! A client's connection, over TCP or TLS, whose first bytes may already have been read. The next reads return these
//! bytes. This module interprets no protocol.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType,
    raw_connect::ProxyDigest,
    tls::{SslDigest, TlsRef},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    sync::oneshot,
};

#[derive(Debug)]
pub(super) struct ClientStream {
    inner: Stream,
    /// Bytes that were read from `inner` but not yet from this stream.
    early: BytesMut,
    lender: Option<Lender>,
}

/// The task that lent this connection to the stream's present owner. The task gets the connection back when the owner
/// drops the stream.
#[derive(Debug)]
struct Lender {
    /// Sends the connection back to the task when the stream is dropped.
    back: oneshot::Sender<Stream>,
    /// Set once the client has ended or broken the connection.
    ended: Arc<AtomicBool>,
}

// === impl ClientStream ===

impl ClientStream {
    /// Creates a stream whose reads return first `early` and then the bytes from `inner`.
    pub(super) fn new(inner: Stream, early: BytesMut) -> Self {
        Self {
            inner,
            early,
            lender: None,
        }
    }

    /// Prepares this stream to be lent to another owner. When that owner drops the stream, the returned receiver gets
    /// the connection back. `ended` is set if the client ends the connection while it is lent.
    pub(super) fn lend(&mut self, ended: Arc<AtomicBool>) -> oneshot::Receiver<Stream> {
        let (back, given) = oneshot::channel();
        self.lender = Some(Lender { back, ended });
        given
    }

    /// Returns the bytes that have already been read from the connection, and that the next reads return first.
    pub(super) fn early(&self) -> &[u8] {
        &self.early
    }

    /// Waits for more bytes from the client and appends them to [`early`](Self::early). Returns their number, or 0 if
    /// the client has ended the connection.
    ///
    /// # Errors
    /// Fails if the connection fails.
    pub(super) async fn read_early(&mut self) -> io::Result<usize> {
        self.inner.read_buf(&mut self.early).await
    }

    /// Notes that the client has ended the connection, if `has_ended` is set or if the read or write that returned
    /// `done` failed. Returns `done`.
    fn note<T>(&self, done: io::Result<T>, has_ended: bool) -> io::Result<T> {
        if let Some(lender) = &self.lender
            && (has_ended || done.is_err())
        {
            lender.ended.store(true, Ordering::Relaxed);
        }
        done
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        if let Some(lender) = self.lender.take() {
            let nothing = Box::new(tokio::io::duplex(1).0);
            // If the lender no longer waits for the connection, the connection closes.
            let _ = lender.back.send(std::mem::replace(&mut self.inner, nothing));
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            let room = buf.remaining();
            let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
            return Poll::Ready(self.note(read, buf.remaining() == room));
        }
        let taken = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..taken]);
        self.early.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, buf));
        Poll::Ready(self.note(written, false))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.inner).poll_flush(cx));
        Poll::Ready(self.note(flushed, false))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, bufs));
        Poll::Ready(self.note(written, false))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for ClientStream {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut *self.inner).await;
    }
}

impl UniqueID for ClientStream {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

/// The properties of the client's TLS connection. All methods return `None` if the client connected without TLS.
impl Ssl for ClientStream {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.inner.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.inner.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.inner.selected_alpn_proto()
    }
}

impl Peek for ClientStream {}

impl GetTimingDigest for ClientStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.inner.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.inner.get_write_pending_time()
    }
}

impl GetProxyDigest for ClientStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for ClientStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.inner.get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.inner.set_socket_digest(digest);
    }
}
