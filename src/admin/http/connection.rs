//! Serves one connection of an operator, and limits the time to send the head of a request and to read a response.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use hyper::{
    body::Incoming,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};
use tokio_util::sync::CancellationToken;

use super::limiter::ConnectionPermit;

#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionInfo {
    /// Whether the client is on this machine: it connected to a loopback address or to the socket.
    pub(super) is_local: bool,
}

/// Serves requests with `routes` until the client is done or too slow, or until this connection has to make room for
/// another one. When `until` is cancelled, completes a response that has begun, and ends.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    info: ConnectionInfo,
    permit: ConnectionPermit,
    routes: Router,
    until: CancellationToken,
) {
    let permit = Arc::new(permit);
    let stream = TimedIo {
        stream,
        permit: permit.clone(),
        until: None,
    };
    let routes = TowerToHyperService::new(routes);
    let answering = service_fn(|mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(info);
        let (permit, answer) = (permit.clone(), routes.call(request));
        async move {
            let _responding = permit.begin_response();
            answer.await
        }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), answering);
    tokio::pin!(serving);
    let served = async {
        tokio::select! {
            served = &mut serving => return served,
            () = until.cancelled() => serving.as_mut().graceful_shutdown(),
        }
        serving.await
    };
    tokio::select! {
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%error, "an operator's connection ended");
            }
        }
        () = permit.wanted() => tracing::debug!("an operator's idle connection was closed to make room for another"),
    }
}

/// A stream that fails if the client takes too long to read a response.
struct TimedIo<S> {
    stream: S,
    permit: Arc<ConnectionPermit>,
    /// When the client must have read the waiting bytes; `None` if no bytes wait.
    until: Option<Pin<Box<Sleep>>>,
}

// === impl TimedIo ===

impl<S> TimedIo<S> {
    /// Fails if the client has not read the waiting bytes in time. The time limit starts when a call first says that
    /// bytes wait (`waits`).
    fn check(&mut self, context: &mut Context<'_>, waits: bool) -> io::Result<()> {
        if waits && self.until.is_none() {
            self.permit.set_sending(true);
            self.until = Some(Box::pin(tokio::time::sleep(RESPONSE_TIMEOUT)));
        }
        let until = self.until.as_mut();
        match until.is_some_and(|until| until.as_mut().poll(context).is_ready()) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check(context, written.is_pending())?;
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check(context, written.is_pending())?;
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Ends the time limit: hyper calls this only after it has written all waiting bytes.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.until.take().is_some() {
            self.permit.set_sending(false);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Time to send the head of a request, from the start of the connection or the end of the last response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to read a response, from when the system's buffers are full. Most responses fit into them.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 64 * 1024;
