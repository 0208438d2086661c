//! A web site for tests that does not wait for the end of a request.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::{BoxIo, Certificate, NAME, wait};

/// A site that replies to a POST before it has read the content of the request, and then reads until the client closes
/// the connection. It replies to other methods with 404.
pub struct EarlyOrigin {
    port: u16,
    is_closed: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

// === impl EarlyOrigin ===

impl EarlyOrigin {
    /// Starts a site that replies with these bytes. It uses TLS if `tls` is set.
    pub async fn start(reply: &str, tls: bool) -> Self {
        let reply: Arc<str> = reply.into();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let acceptor = tls.then(|| TlsAcceptor::from(Certificate::of(&[NAME]).server_config()));
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = is_closed.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, reply, closed) = (acceptor.clone(), reply.clone(), closed.clone());
                tokio::spawn(async move {
                    let stream: BoxIo = match acceptor {
                        Some(acceptor) => Box::new(acceptor.accept(stream).await?),
                        None => Box::new(stream),
                    };
                    Self::answer(stream, &reply, &closed).await
                });
            }
        });
        Self {
            port,
            is_closed,
            accepting,
        }
    }

    async fn answer(mut stream: BoxIo, reply: &str, closed: &AtomicBool) -> io::Result<()> {
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            stream.read_buf(&mut bytes).await?;
        }
        if !bytes.starts_with(b"POST ") {
            let none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(none).await?;
            return stream.shutdown().await;
        }
        stream.write_all(reply.as_bytes()).await?;
        stream.flush().await?;
        while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        closed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Returns the target of a CONNECT.
    pub fn authority(&self) -> String {
        format!("{NAME}:{}", self.port)
    }

    /// Waits until the client has closed its connection.
    pub async fn closed(&self) {
        let is_closed = || self.is_closed.load(Ordering::SeqCst).then_some(());
        wait::until("the end of the connection", is_closed).await;
    }
}

impl Drop for EarlyOrigin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
