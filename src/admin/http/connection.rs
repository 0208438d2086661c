//! One connection of somebody who asks: its requests one after the other, and the time that its client may take to
//! send one and to take an answer.
//!
//! It knows nothing of what is asked.

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

/// How a request came.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionInfo {
    /// Whether by an address that only this machine reaches.
    pub(super) is_local: bool,
}

/// Serves requests by `routes` until the client leaves, is silent for too long, or another connection needs the permit.
/// When `until` ends, it finishes the response that it has begun.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    info: ConnectionInfo,
    permit: ConnectionPermit,
    routes: Router,
    until: CancellationToken,
) {
    let permit = Arc::new(permit);
    let stream = Hurried {
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
        .header_read_timeout(TO_ASK)
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
        () = permit.wanted() => tracing::debug!("an operator's idle connection was closed for another"),
    }
}

/// A stream whose client has to take each answer in time, however many bytes it takes meanwhile.
struct Hurried<S> {
    stream: S,
    permit: Arc<ConnectionPermit>,
    /// When what waits has to have been taken.
    until: Option<Pin<Box<Sleep>>>,
}

// === impl Hurried ===

impl<S> Hurried<S> {
    /// Fails where the time for what waits is over.
    fn check(&mut self, context: &mut Context<'_>, waits: bool) -> io::Result<()> {
        if waits && self.until.is_none() {
            self.permit.set_sending(true);
            self.until = Some(Box::pin(tokio::time::sleep(TO_TAKE)));
        }
        let until = self.until.as_mut();
        match until.is_some_and(|until| until.as_mut().poll(context).is_ready()) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Hurried<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Hurried<S> {
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

    /// It is asked for when all that there is was written.
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

/// For the head of a request, from the end of what came before it.
const TO_ASK: Duration = Duration::from_secs(10);
/// For taking an answer, of which the system's buffers hold the most.
const TO_TAKE: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;
