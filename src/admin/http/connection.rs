//! One connection of an operator: it serves the requests one after the other, and limits the time to send a request and
//! to read a response.
//!
//! This module works in the same way for all requests.

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

/// How a request arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionInfo {
    /// Whether the request came to an address that only this machine can reach.
    pub(super) is_local: bool,
}

/// Serves requests with `routes` until the client leaves, is idle for too long, or another connection needs the permit.
/// When `until` is cancelled, finishes the response that has begun.
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

/// A stream whose client must read each whole response in time, even if it reads some bytes now and then.
struct TimedIo<S> {
    stream: S,
    permit: Arc<ConnectionPermit>,
    /// Deadline for the client to read the pending bytes.
    until: Option<Pin<Box<Sleep>>>,
}

// === impl TimedIo ===

impl<S> TimedIo<S> {
    /// Fails if the pending bytes are past their deadline.
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

    /// Clears the deadline once everything has been written.
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

/// Time for the head of a request, from the end of the previous exchange.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to read a response. Most of it is already in the system's buffers.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a request's head in bytes.
const MAX_HEAD: usize = 64 * 1024;
