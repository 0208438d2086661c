//! A connection whose writes never wait: it keeps written bytes in memory until they are sent. Callers check
//! [`Wire::poll_sent`] before they write more.
//!
//! A session of pingora is borrowed mutably while it reads or writes. A write that never waits ends its borrow at once,
//! so one task can transfer content in both directions.
//!
//! Of HTTP, this module knows only that a head ends with an empty line.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType, raw_connect::ProxyDigest,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// A handle of a connection. Clones, such as the one in a pingora session, refer to the same connection.
#[derive(Clone, Debug)]
pub struct Wire(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    stream: Stream,
    /// Bytes that were read from `stream`, but not yet from the wire.
    ahead: BytesMut,
    /// Bytes that were written to the wire, but not yet to `stream`.
    out: BytesMut,
    flushes: bool,
    broken: Option<io::ErrorKind>,
    read: u64,
    /// How many bytes of `ahead` may be read now. `None` if there is no limit.
    quota: Option<usize>,
}

/// Result of [`Wire::poll_head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadRead {
    Head,
    End,
    TooLong,
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
            read: 0,
            quota: None,
        })))
    }

    /// Becomes ready when the operating system has all bytes that were written.
    pub fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_sent(cx)
    }

    pub async fn sent(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_sent(cx)).await
    }

    pub fn unsent(&self) -> usize {
        self.0.lock().out.len()
    }

    /// Becomes ready when the other side has closed or broken the connection. Until then, buffers what the other side
    /// sends; while this buffer is full, a close is not noticed.
    pub fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock();
        while inner.ahead.len() < MAX_AHEAD {
            match ready!(inner.poll_ahead(cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Waits for bytes and returns them, or none at the end of the connection. Allocates no read buffer before bytes
    /// arrive, and frees the write buffer if it is empty, so that an idle connection needs little memory.
    pub async fn read_some(&self) -> io::Result<BytesMut> {
        std::future::poll_fn(|cx| {
            let mut inner = self.0.lock();
            if inner.ahead.is_empty() && inner.poll_ahead(cx)?.is_pending() {
                if inner.out.is_empty() {
                    inner.out = BytesMut::new();
                }
                return Poll::Pending;
            }
            Poll::Ready(Ok(std::mem::take(&mut inner.ahead)))
        })
        .await
    }

    /// Becomes ready when a whole head (all lines up to an empty one) or more than `max` bytes have arrived, or the
    /// connection has ended. After a whole head, reads return only its bytes until [`Wire::read_on`] is called.
    ///
    /// `seen` is 0 for the first call, and stores where the next call continues the search.
    pub fn poll_head(&self, seen: &mut usize, max: usize, cx: &mut Context<'_>) -> Poll<io::Result<HeadRead>> {
        let mut inner = self.0.lock();
        loop {
            let from = seen.saturating_sub(2);
            if let Some(end) = empty_line(&inner.ahead[from..]) {
                inner.quota = Some(from + end);
                *seen = 0;
                return Poll::Ready(Ok(HeadRead::Head));
            }
            *seen = inner.ahead.len();
            if *seen > max {
                return Poll::Ready(Ok(HeadRead::TooLong));
            }
            if ready!(inner.poll_ahead(cx))? == 0 {
                inner.quota = None;
                return Poll::Ready(Ok(HeadRead::End));
            }
        }
    }

    /// Lifts the limit that [`Wire::poll_head`] set.
    pub fn read_on(&self) {
        self.0.lock().quota = None;
    }

    /// Puts back bytes, which the next read returns.
    pub fn unread(&self, bytes: BytesMut) {
        let mut inner = self.0.lock();
        if inner.ahead.is_empty() {
            inner.ahead = bytes;
        } else {
            let mut bytes = bytes;
            bytes.extend_from_slice(&inner.ahead);
            inner.ahead = bytes;
        }
    }

    pub fn is_broken(&self) -> bool {
        self.0.lock().broken.is_some()
    }

    pub fn bytes_read(&self) -> u64 {
        self.0.lock().read
    }

    /// Returns the connection and its unread bytes. `None` if there is another handle, if bytes are unsent, or if the
    /// connection is broken.
    pub fn into_stream(self) -> Option<(Stream, BytesMut)> {
        let inner = Arc::into_inner(self.0)?.into_inner();
        let is_idle = inner.out.is_empty() && !inner.flushes && inner.broken.is_none();
        is_idle.then_some((inner.stream, inner.ahead))
    }
}

/// Polls a future that is expected not to wait, such as a write to a [`Wire`]. Returns `None` if it would have to wait.
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let future = std::pin::pin!(future);
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Calls `take` with up to `MOST` bytes that have arrived, or with none at the end of the stream. Allocates no memory.
pub fn poll_some<const MOST: usize, T>(
    from: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    take: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>> {
    let mut space = [MaybeUninit::uninit(); MOST];
    let mut read = ReadBuf::uninit(&mut space);
    ready!(Pin::new(from).poll_read(cx, &mut read))?;
    Poll::Ready(Ok(take(read.filled())))
}

/// Returns the end of the first empty line that follows another line. Lines may end in CRLF or LF.
fn empty_line(bytes: &[u8]) -> Option<usize> {
    let ends = memchr::memchr_iter(b'\n', bytes);
    ends.filter_map(|end| match &bytes[end + 1..] {
        [b'\n', ..] => Some(end + 2),
        [b'\r', b'\n', ..] => Some(end + 3),
        _ => None,
    })
    .next()
}

// === impl Inner ===

impl Inner {
    /// Returns the number of bytes read, which is 0 at the end of the stream.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Self { stream, ahead, .. } = self;
        let read = ready!(poll_some::<AT_ONCE, _>(stream, cx, |read| {
            ahead.extend_from_slice(read);
            read.len()
        }))?;
        self.read += read as u64;
        Poll::Ready(Ok(read))
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
        if self.out.capacity() > LARGE_WRITE {
            self.out = BytesMut::new();
        }
        if self.flushes {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.flushes = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes `out`, and then as much of `bytes` as the stream accepts now, without copying. Returns how many of
    /// `bytes` were written.
    fn write_through(&mut self, bytes: &[IoSlice<'_>], cx: &mut Context<'_>) -> io::Result<usize> {
        let mut written = 0;
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (mut count, mut skip) = (0, written);
            if !self.out.is_empty() {
                slices[0] = IoSlice::new(&self.out);
                count = 1;
            }
            for part in bytes {
                let left = &part[skip.min(part.len())..];
                skip = skip.saturating_sub(part.len());
                if !left.is_empty() && count < SLICES {
                    slices[count] = IoSlice::new(left);
                    count += 1;
                }
            }
            if count == 0 {
                return Ok(written);
            }
            match Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..count])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => {
                    let waited = taken.min(self.out.len());
                    self.out.advance(waited);
                    written += taken - waited;
                    self.flushes = true;
                }
                Poll::Pending => return Ok(written),
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.lock();
        if inner.quota == Some(0) {
            // This registers no waker: the caller polls `poll_head` again, which wakes the task when more bytes arrive.
            return Poll::Pending;
        }
        if inner.ahead.is_empty() {
            // Limit the read: a session would read up to 64 KiB, which would wait in memory for a client that may be
            // slow.
            let before = buf.filled().len();
            let mut some = (&mut inner.stream).take(MAX_READ);
            ready!(Pin::new(&mut some).poll_read(cx, buf))?;
            inner.read += (buf.filled().len() - before) as u64;
            return Poll::Ready(Ok(()));
        }
        let taken = inner.ahead.len().min(buf.remaining());
        let taken = inner.quota.map_or(taken, |quota| quota.min(taken));
        inner.quota = inner.quota.map(|quota| quota - taken);
        buf.put_slice(&inner.ahead[..taken]);
        inner.ahead.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.lock();
        if let Some(kind) = inner.broken {
            return Poll::Ready(Err(kind.into()));
        }
        let length = bytes.iter().map(|part| part.len()).sum();
        let mut written = 0;
        if length >= LARGE_WRITE {
            written = inner
                .write_through(bytes, cx)
                .inspect_err(|error| inner.broken = Some(error.kind()))?;
        }
        for part in bytes {
            inner.out.extend_from_slice(&part[written.min(part.len())..]);
            written = written.saturating_sub(part.len());
        }
        Poll::Ready(Ok(length))
    }

    /// Does nothing. To wait until the bytes are sent, use [`Wire::poll_sent`].
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.lock();
        ready!(inner.poll_sent(cx))?;
        Pin::new(&mut inner.stream).poll_shutdown(cx)
    }
}

#[async_trait]
impl Shutdown for Wire {
    async fn shutdown(&mut self) {
        // An error only means that the connection is already broken.
        let _ = tokio::io::AsyncWriteExt::shutdown(self).await;
    }
}

impl UniqueID for Wire {
    fn id(&self) -> UniqueIDType {
        self.0.lock().stream.id()
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

/// Maximum number of bytes that [`Inner::poll_ahead`] reads at a time.
const AT_ONCE: usize = 4096;
const MAX_READ: u64 = 16 * 1024;
/// How many bytes to keep of what a client sends while robotgate still serves its previous request.
const MAX_AHEAD: usize = 4 * AT_ONCE;
const SLICES: usize = 8;
/// For a write of at least this size, only the part that the stream does not accept at once is copied, because a system
/// call takes less time than the copy. A write buffer that is larger is freed when its bytes are sent.
const LARGE_WRITE: usize = 16 * 1024;

#[cfg(test)]
mod tests;
