//! A connection whose writes never wait: what is written is kept until it has been sent, and whoever writes looks at
//! [`Wire::poll_sent`] before writing more. So one task can pass content both ways at once over pingora's sessions, each of
//! which lends itself out whole to either a read or a write; and a head and its content leave in one system call.
//!
//! It reads no protocol.

use std::{
    io::{self, IoSlice},
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
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

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
    /// Bytes that have been read from `stream`.
    read: u64,
    /// How much of `ahead` may be read from the wire for now, where that is bounded.
    quota: Option<usize>,
}

/// What [`Wire::poll_head`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A whole head.
    Head,
    /// The end of the connection.
    End,
    /// No end of a head in as many bytes as it may have.
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

    /// Reads until what was read ahead has an empty line, from byte `seen` on, and lets that much be read from the wire, and no
    /// more until [`Wire::read_on`]. At the end of the connection, everything may be read. A parser that begins anew each
    /// time is so asked once.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn poll_head(&self, seen: &mut usize, max: usize, cx: &mut Context<'_>) -> Poll<io::Result<Awaited>> {
        let mut inner = self.lock();
        loop {
            let from = seen.saturating_sub(2);
            if let Some(end) = empty_line(&inner.ahead[from..]) {
                inner.quota = Some(from + end);
                *seen = 0;
                return Poll::Ready(Ok(Awaited::Head));
            }
            *seen = inner.ahead.len();
            if *seen > max {
                return Poll::Ready(Ok(Awaited::TooLong));
            }
            if ready!(inner.poll_ahead(cx))? == 0 {
                inner.quota = None;
                return Poll::Ready(Ok(Awaited::End));
            }
        }
    }

    /// Lets everything be read from the wire again.
    pub fn read_on(&self) {
        self.lock().quota = None;
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

    /// How many bytes have come since the wire was made.
    pub fn bytes_read(&self) -> u64 {
        self.lock().read
    }

    /// The connection, where nobody else holds a handle of it and nothing is left to be sent; and what was read from it and
    /// not used.
    pub fn into_stream(self) -> Option<(Stream, BytesMut)> {
        let inner = Arc::into_inner(self.0)?;
        let inner = inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_idle = inner.out.is_empty() && !inner.flushes && inner.broken.is_none();
        is_idle.then_some((inner.stream, inner.ahead))
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

/// Reads what is there, `MOST` bytes at once, and takes no memory where there is nothing. At the end, `take` gets no bytes.
///
/// # Errors
/// Those of `from`.
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

/// Where the first empty line ends, by either line end.
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
    /// Reads what is there. How many bytes that were; 0 at the end.
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
        if self.out.capacity() > MUCH {
            self.out = BytesMut::new();
        }
        if self.flushes {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.flushes = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes much at once without a copy, behind what waits already, as far as the stream takes it now. How much of it that
    /// was.
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
        let mut inner = self.lock();
        if inner.quota == Some(0) {
            // Who set it looks for more, and is woken then.
            return Poll::Pending;
        }
        if inner.ahead.is_empty() {
            // A session would read 64 KiB at once, which wait for a client that may take nothing.
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
    /// Takes all of `bytes`, always.
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
        let mut inner = self.lock();
        if let Some(kind) = inner.broken {
            return Poll::Ready(Err(kind.into()));
        }
        let length = bytes.iter().map(|part| part.len()).sum();
        let mut written = 0;
        if length >= MUCH {
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
const MAX_READ: u64 = 16 * 1024;
/// Of a client that sends on while it is served, so much is kept.
const MAX_AHEAD: usize = 4 * AT_ONCE;
/// Parts of one write beyond which the rest waits for the next.
const SLICES: usize = 8;
/// Bytes of one write from which on a copy costs more than a system call.
const MUCH: usize = 16 * 1024;

#[cfg(test)]
mod tests;
