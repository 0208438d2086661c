//! One trait for all kinds of connections: plain ones, TLS ones as client or server, and those in memory.

use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{client, server};

pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {
    /// Makes a TCP connection end with a reset (RST) instead of a FIN when it is closed. Other connections ignore this
    /// call.
    fn reset_on_close(&self) {}
}

pub type BoxIo = Box<dyn Io>;

impl Io for TcpStream {
    fn reset_on_close(&self) {
        self.set_zero_linger().expect("a connected socket takes SO_LINGER");
    }
}

impl Io for DuplexStream {}

impl Io for UnixStream {}

impl Io for BoxIo {
    fn reset_on_close(&self) {
        (**self).reset_on_close();
    }
}

impl<T: Io> Io for server::TlsStream<T> {
    fn reset_on_close(&self) {
        self.get_ref().0.reset_on_close();
    }
}

impl<T: Io> Io for client::TlsStream<T> {
    fn reset_on_close(&self) {
        self.get_ref().0.reset_on_close();
    }
}
