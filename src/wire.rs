//! A connection whose writes never wait: what is written is kept until it has been sent, and whoever writes looks at
//! [`Wire::poll_sent`] before writing more. So one task can pass content both ways at once over pingora's sessions, each of
//! which lends itself out whole to either a read or a write; and a head and its content leave in one system call.
//!
//! It reads no protocol.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType, raw_connect::ProxyDigest,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A handle of the connection. All of them mean the same one; a session of pingora's owns one of them.
#[derive(Clone, Debug)]
pub struct Wire(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    stream: Stream,
    /// Read from `stream`, and yet to be read from the wire.
    ahead: BytesMut,
    /// Written to the wire, and yet to be written to `stream`.
    out: BytesMut,
    /// Whether `stream` has been written to and not flushed.
    flushes: bool,
    /// Why nothing more can be written.
    broken: Option<io::ErrorKind>,
    /// Whether anything has been read.
    has_read: bool,
}

// === impl Wire ===

impl Wire {
    pub fn new(stream: Stream) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            stream,
            ahead: BytesMut::new(),
            out: BytesMut::new(),
            flushes: false,
            broken: None,
            has_read: false,
        })))
    }

    /// Ready when all that was written has been sent, as far as the operating system takes it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_sent(cx)
    }

    /// Waits until all that was written has been sent.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn sent(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_sent(cx)).await
    }

    /// Bytes that were written and not sent.
    pub fn unsent(&self) -> usize {
        self.lock().out.len()
    }

    /// Ready when the other side has closed or broken the connection. What it sends instead is kept for the next read; of
    /// one that sends much, the end is not seen before that was read.
    pub fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        while inner.ahead.len() < MAX_AHEAD {
            match ready!(inner.poll_ahead(cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Waits for bytes, takes no memory meanwhile, and gives all that are there; none at the end.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn read_some(&self) -> io::Result<BytesMut> {
        std::future::poll_fn(|cx| {
            let mut inner = self.lock();
            if inner.ahead.is_empty() {
                ready!(inner.poll_ahead(cx))?;
            }
            Poll::Ready(Ok(std::mem::take(&mut inner.ahead)))
        })
        .await
    }

    /// Gives back what was read and not used: it is what the next read reads.
    pub fn unread(&self, bytes: BytesMut) {
        let mut inner = self.lock();
        if inner.ahead.is_empty() {
            inner.ahead = bytes;
        } else {
            let mut bytes = bytes;
            bytes.extend_from_slice(&inner.ahead);
            inner.ahead = bytes;
        }
    }

    /// Whether the other side has said anything since the wire was made.
    pub fn has_read(&self) -> bool {
        self.lock().has_read
    }

    /// The connection, where nobody else holds a handle of it and nothing is left to be sent; and what was read from it and
    /// not used.
    pub fn into_stream(self) -> Option<(Stream, BytesMut)> {
        let inner = Arc::into_inner(self.0)?;
        let inner = inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let whole = inner.out.is_empty() && !inner.flushes && inner.broken.is_none();
        whole.then_some((inner.stream, inner.ahead))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a future that never waits, as the writes of a session on a [`Wire`] do not; `None` if it did.
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let future = std::pin::pin!(future);
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

// === impl Inner ===

impl Inner {
    /// Reads what is there. How many bytes that were; 0 at the end.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack, since most of the time there is nothing.
        let mut space = [MaybeUninit::uninit(); AT_ONCE];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        let read = read.filled();
        self.has_read |= !read.is_empty();
        self.ahead.extend_from_slice(read);
        Poll::Ready(Ok(read.len()))
    }

    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(kind) = self.broken {
            return Poll::Ready(Err(kind.into()));
        }
        let sent = self.poll_send(cx);
        if let Poll::Ready(Err(error)) = &sent {
            self.broken = Some(error.kind());
        }
        sent
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.out))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.advance(written);
            self.flushes = true;
        }
        // What was needed once for much content is not kept for a connection that may be idle from now on.
        self.out = BytesMut::new();
        if self.flushes {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.flushes = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes much at once without a copy, as far as the stream takes it now. How much that was.
    fn write_through(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> io::Result<usize> {
        if self.poll_send(cx)?.is_pending() {
            return Ok(0);
        }
        let mut written = 0;
        while written < bytes.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &bytes[written..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(more) => written += more,
                Poll::Pending => break,
            }
            self.flushes = true;
        }
        Ok(written)
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.lock();
        if inner.ahead.is_empty() {
            // A session would read 64 KiB at once, which wait for a client that may take nothing.
            let most = buf.remaining().min(MAX_READ);
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
            ready!(Pin::new(&mut inner.stream).poll_read(cx, &mut part))?;
            let read = part.filled().len();
            buf.advance(read);
            inner.has_read |= read > 0;
            return Poll::Ready(Ok(()));
        }
        let taken = inner.ahead.len().min(buf.remaining());
        buf.put_slice(&inner.ahead[..taken]);
        inner.ahead.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    /// Takes all of `bytes`, always.
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.lock();
        if let Some(kind) = inner.broken {
            return Poll::Ready(Err(kind.into()));
        }
        let written = match bytes.len() {
            MUCH.. => match inner.write_through(bytes, cx) {
                Ok(written) => written,
                Err(error) => {
                    inner.broken = Some(error.kind());
                    return Poll::Ready(Err(error));
                }
            },
            _ => 0,
        };
        inner.out.extend_from_slice(&bytes[written..]);
        Poll::Ready(Ok(bytes.len()))
    }

    /// Never waits: [`Wire::poll_sent`] does.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.lock();
        ready!(inner.poll_sent(cx))?;
        Pin::new(&mut inner.stream).poll_shutdown(cx)
    }
}

#[async_trait]
impl Shutdown for Wire {
    async fn shutdown(&mut self) {
        // One that is broken needs none.
        let _ = tokio::io::AsyncWriteExt::shutdown(self).await;
    }
}

impl UniqueID for Wire {
    fn id(&self) -> UniqueIDType {
        self.lock().stream.id()
    }
}

impl Ssl for Wire {}

impl Peek for Wire {}

impl GetTimingDigest for Wire {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for Wire {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for Wire {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}

/// Bytes that are read at once where it is not known whether any come.
const AT_ONCE: usize = 4096;
/// Bytes that a session reads at once.
const MAX_READ: usize = 32 * 1024;
/// Of a client that sends on while it is served, so much is kept.
const MAX_AHEAD: usize = 4 * AT_ONCE;
/// Bytes of one write from which on a copy costs more than a system call.
const MUCH: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn writes_never_wait_and_nothing_is_lost() {
        let (near, mut far) = duplex(64);
        let wire = Wire::new(Box::new(near));
        let mut writer = wire.clone();
        let sent: Vec<u8> = (0..100_000_u32).map(|byte| byte.to_le_bytes()[0]).collect();
        for part in [&sent[..10], &sent[10..50_000], &sent[50_000..]] {
            at_once(writer.write_all(part))
                .expect("it does not wait")
                .expect("it is open");
        }
        at_once(writer.flush()).expect("it does not wait").expect("it is open");
        assert!(wire.unsent() > 0, "the other side takes 64 bytes at a time");
        let mut received = vec![0; sent.len()];
        let (flushed, read) = tokio::join!(wire.sent(), far.read_exact(&mut received));
        flushed.expect("it is open");
        read.expect("all of it");
        assert_eq!(received, sent);
        assert_eq!(wire.unsent(), 0);
    }

    #[tokio::test]
    async fn a_watch_for_the_end_takes_nothing_away() {
        let (near, mut far) = duplex(64);
        let mut wire = Wire::new(Box::new(near));
        far.write_all(b"next").await.expect("it is open");
        let closed = std::future::poll_fn(|cx| Poll::Ready(wire.poll_closed(cx))).await;
        assert!(closed.is_pending());
        drop(far);
        std::future::poll_fn(|cx| wire.poll_closed(cx)).await;
        let mut read = String::new();
        wire.read_to_string(&mut read).await.expect("it ends well");
        assert_eq!(read, "next");
    }

    #[tokio::test]
    async fn what_is_given_back_is_read_first() {
        let (near, mut far) = duplex(64);
        let mut wire = Wire::new(Box::new(near));
        far.write_all(b"second first").await.expect("it is open");
        let read = wire.read_some().await.expect("it is open");
        let mut rest = read.clone();
        wire.unread(rest.split_off(6));
        wire.unread(rest);
        drop(far);
        let mut again = Vec::new();
        wire.read_to_end(&mut again).await.expect("it ends well");
        assert_eq!(again, read);
    }

    #[tokio::test]
    async fn a_stream_is_taken_out_whole_or_not_at_all() {
        let (near, _far) = duplex(64);
        let wire = Wire::new(Box::new(near));
        let other = wire.clone();
        assert!(wire.into_stream().is_none(), "another has it");
        let mut writer = other.clone();
        at_once(writer.write_all(&[0; 100]))
            .expect("it does not wait")
            .expect("it is open");
        drop(writer);
        assert!(other.into_stream().is_none(), "there is something left to send");
    }

    #[tokio::test]
    async fn a_broken_connection_says_so_from_then_on() {
        let (near, far) = duplex(64);
        let mut wire = Wire::new(Box::new(near));
        drop(far);
        at_once(wire.write_all(b"x"))
            .expect("it does not wait")
            .expect("nobody knows yet");
        assert!(wire.sent().await.is_err());
        assert!(at_once(wire.write_all(b"x")).expect("it does not wait").is_err());
    }
}
