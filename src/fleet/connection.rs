//! A connection to the fleet's server. It fails if the server sends more than [`MAX_UNREAD`] bytes while no call gets
//! its answer and no message arrives, so that a broken or hostile server cannot fill the memory.

use std::{
    io,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use redis::{AsyncConnectionConfig, PushInfo, RedisConnectionInfo, RedisError, aio::MultiplexedConnection};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    task::AbortHandle,
};
use tokio_rustls::TlsConnector;

#[derive(Debug)]
pub(super) struct FleetServer {
    pub(super) endpoint: Endpoint,
    pub(super) login: RedisConnectionInfo,
}

#[derive(Debug)]
pub(super) enum Endpoint {
    Tcp(String, u16),
    Tls {
        host: String,
        port: u16,
        name: ServerName<'static>,
        tls: Arc<ClientConfig>,
    },
    Unix(PathBuf),
}

/// A connection that has logged in. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) redis: MultiplexedConnection,
    reading: AbortHandle,
    unread: Arc<Unread>,
}

/// Number of bytes that were read from the fleet's server since a call last got its answer, or a message last arrived.
#[derive(Debug, Default)]
struct Unread(AtomicUsize);

/// A stream that fails as soon as more than [`MAX_UNREAD`] bytes are [`Unread`].
struct Bounded {
    stream: Box<dyn Stream>,
    unread: Arc<Unread>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

// === impl FleetServer ===

impl FleetServer {
    /// Connects and logs in. Calls `on_push` with each message of a subscription, and once more when the connection
    /// ends.
    pub(super) async fn connect(
        &self,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisError> {
        let unread = Arc::<Unread>::default();
        let stream = Bounded {
            stream: self.endpoint.reach().await?,
            unread: unread.clone(),
        };
        let config = AsyncConnectionConfig::new()
            // Each call has its own time limit.
            .set_response_timeout(None)
            .set_push_sender({
                let unread = unread.clone();
                move |push: PushInfo| {
                    unread.clear();
                    on_push(push);
                    Ok::<(), ()>(())
                }
            });
        let (redis, reading) = MultiplexedConnection::new_with_config(&self.login, stream, config).await?;
        unread.clear();
        Ok(Connection {
            redis,
            reading: tokio::spawn(reading).abort_handle(),
            unread,
        })
    }
}

// === impl Endpoint ===

impl Endpoint {
    async fn reach(&self) -> io::Result<Box<dyn Stream>> {
        let tcp = async |host: &str, port: u16| {
            let stream = TcpStream::connect((host, port)).await?;
            // Without TCP_NODELAY, a small write can wait until the fleet's server acknowledges the previous one.
            stream.set_nodelay(true).map(|()| stream)
        };
        Ok(match self {
            Self::Tcp(host, port) => Box::new(tcp(host, *port).await?),
            Self::Tls { host, port, name, tls } => {
                let stream = tcp(host, *port).await?;
                Box::new(TlsConnector::from(tls.clone()).connect(name.clone(), stream).await?)
            }
            Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
        })
    }
}

// === impl Connection ===

impl Connection {
    /// Call this after a call has got its answer.
    pub(super) fn answered(&self) {
        self.unread.clear();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

// === impl Unread ===

impl Unread {
    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

// === impl Bounded ===

impl AsyncRead for Bounded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        let unread = self.unread.0.fetch_add(read, Ordering::Relaxed) + read;
        Poll::Ready(match unread > MAX_UNREAD {
            true => Err(io::Error::other("the server sent too long an answer")),
            false => Ok(()),
        })
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Maximum number of unread bytes. The answers to several calls, each with the largest value
/// ([`MAX_BYTES`](super::value::MAX_BYTES)), can arrive before the first call reads its answer.
const MAX_UNREAD: usize = 8 * 1024 * 1024;

#[cfg(test)]
mod tests;
