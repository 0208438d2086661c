//! The connection that a WebSocket upgrade is asked for on. pingora takes the end of the
//! request's empty content for the end of the WebSocket where it reads the `101` first, and then
//! closes at once (cloudflare/pingora#946). On this connection an answer is never read in the
//! same breath as the request was written, so the order is always the right one.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use async_trait::async_trait;
use pingora::{
    Error, ErrorType, Result,
    connectors::l4::Connect,
    protocols::l4::{
        socket::SocketAddr,
        stream::Stream,
        virt::{VirtualSockOpt, VirtualSocket, VirtualSocketStream},
    },
};
use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Makes such connections.
#[derive(Debug)]
pub(super) struct Patiently;

/// A socket that makes a reader wait for one round after each write.
#[derive(Debug)]
struct Patient {
    socket: TcpStream,
    written: bool,
}

// === impl Patiently ===

#[async_trait]
impl Connect for Patiently {
    async fn connect(&self, address: &SocketAddr) -> Result<Stream> {
        let Some(address) = address.as_inet() else {
            return Error::e_explain(ErrorType::InternalError, "origins have internet addresses");
        };
        let socket = TcpStream::connect(address).await.map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::ConnectionRefused => ErrorType::ConnectRefused,
                io::ErrorKind::TimedOut => ErrorType::ConnectTimedout,
                // As pingora's own connector has it: the origin is not at fault.
                _ if matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)) => {
                    ErrorType::InternalError
                }
                _ => ErrorType::ConnectNoRoute,
            };
            Error::because(kind, "connecting for an upgrade", error)
        })?;
        let patient = Patient { socket, written: false };
        Ok(VirtualSocketStream::new(Box::new(patient)).into())
    }
}

// === impl Patient ===

impl VirtualSocket for Patient {
    fn set_socket_option(&self, option: VirtualSockOpt) -> io::Result<()> {
        match option {
            VirtualSockOpt::NoDelay => self.socket.set_nodelay(true),
            // Nothing else is asked for.
            _ => Ok(()),
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.written) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes));
        self.written = true;
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn what_is_there_already_is_read_one_round_after_a_write() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let address = address.into();
        let stream = Patiently.connect(&address);
        let (stream, accepted) = tokio::join!(stream, listener.accept());
        let (mut stream, (mut origin, _)) = (stream.unwrap(), accepted.unwrap());
        stream.write_all(b"request").await.unwrap();
        stream.flush().await.unwrap();
        origin.write_all(b"101").await.unwrap();
        origin.readable().await.unwrap();

        let mut storage = [0; 8];
        let mut buffer = ReadBuf::new(&mut storage);
        let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut stream).poll_read(cx, &mut buffer))).await;
        assert!(first.is_pending(), "the answer was read in the same breath");
        let mut answer = [0; 3];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"101");
    }
}
