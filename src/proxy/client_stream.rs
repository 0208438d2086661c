//! A connection, over TCP or TLS, whose first bytes may already have been read. The next reads return these bytes. The
//! connection is from a client or, for a WebSocket, to an origin.

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
    early: BytesMut,
    lender: Option<Lender>,
}

/// The task that lent this connection, and gets it back when the borrower drops the stream.
#[derive(Debug)]
struct Lender {
    back: oneshot::Sender<Stream>,
    ended: Arc<AtomicBool>,
}

// === impl ClientStream ===

impl ClientStream {
    pub(super) fn new(inner: Stream, early: BytesMut) -> Self {
        Self {
            inner,
            early,
            lender: None,
        }
    }

    /// Lends this stream: the receiver gets the connection back when the borrower drops the stream. `ended` is set if
    /// the client meanwhile ends the connection, or if the connection breaks.
    pub(super) fn lend(&mut self, ended: Arc<AtomicBool>) -> oneshot::Receiver<Stream> {
        let (back, given) = oneshot::channel();
        self.lender = Some(Lender { back, ended });
        given
    }

    pub(super) fn early(&self) -> &[u8] {
        &self.early
    }

    /// Waits for more bytes and appends them to [`early`](Self::early). Returns 0 if the client has ended the
    /// connection.
    pub(super) async fn read_early(&mut self) -> io::Result<usize> {
        self.inner.read_buf(&mut self.early).await
    }

    /// Tells the lender if the client has ended the connection or `done` is an error. Returns `done`.
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
