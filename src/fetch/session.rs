//! One request of a fetch and its response, on a connection from [`Origins`](crate::upstream::Origins). After the
//! fetch, the bot's request that waits for the robots.txt can use the same connection. Over HTTP/2, requests for pages
//! can use it even during the fetch.
//!
//! Over HTTP/1.1, a fetch always opens a new connection. On an older one, the late response to an earlier request can
//! still arrive, or the 408 that some servers send when they close an idle connection. robotgate could take either of
//! them for the robots.txt.

use std::{
    future::poll_fn,
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::time::sleep;

use super::Fetcher;
use crate::{
    origin::{Origin, Target},
    upstream::{Content, Fault, OriginConnection, Repeat, Server, Wanted},
};

pub(super) struct Session {
    server: Server,
    address: SocketAddr,
    /// Whether the connection existed before this request, or another request opened it.
    reused: bool,
    /// How long the server may send nothing.
    silence: Duration,
    again: Repeat,
    /// Whether it is certain where the response ends. If not, the connection is not kept for another request.
    is_plain: bool,
}

// === impl Session ===

impl Session {
    /// Uses an existing HTTP/2 connection to the origin, unless `wanted` excludes that. Otherwise, opens a connection
    /// to the first of the checked `addresses` that accepts one. `upstream` gets the last address that was tried.
    ///
    /// # Errors
    /// Fails if no connection can be made.
    pub(super) async fn connect(
        fetcher: &Fetcher,
        origin: &Origin,
        addresses: &[SocketAddr],
        wanted: Wanted,
        upstream: &mut Option<SocketAddr>,
    ) -> Result<Self, Fault> {
        let (within, idle) = (fetcher.connect_timeout, fetcher.kept_for);
        let reaching = fetcher.origins.reach(origin, addresses, wanted, within, idle, upstream);
        let OriginConnection {
            server,
            address,
            reused,
        } = reaching.await?;
        fetcher.egress.check_again(address)?;
        let (idle, total) = (fetcher.options.idle_timeout, fetcher.options.total_timeout);
        let idle = match reused {
            // An existing connection can be broken although it was never closed. Give up early, so that there is time
            // to open a new connection.
            true => idle.min(REUSED_SILENCE),
            false => idle,
        };
        Ok(Self {
            server,
            address,
            reused,
            // If the idle timeout is as long as the total timeout or longer, the total timeout has to end the fetch. In
            // that case, use an idle timeout that is a second longer than the total timeout.
            silence: match idle < total {
                true => idle,
                false => total + Duration::from_secs(1),
            },
            again: Repeat::Never,
            is_plain: false,
        })
    }

    /// Sends `request`, which has no content. `target` is what the request is for.
    ///
    /// # Errors
    /// Fails if the request cannot be sent.
    pub(super) fn send(&mut self, request: RequestHeader, target: &Target) -> Result<(), Fault> {
        let sent = self.server.send_head(request, target, true);
        sent.and_then(|()| self.server.finish())
            .map_err(|fault| self.failed(fault))
    }

    /// Reads the next head, of an informational or the final response.
    ///
    /// # Errors
    /// Fails if the head is malformed or does not arrive in time.
    pub(super) async fn head(&mut self) -> Result<ResponseHeader, Fault> {
        let reply = self.with_silence_timeout(|server, cx| {
            // Ignore a failed write: reading the response reports the same problem.
            let _ = server.poll_sent(cx);
            server.poll_head(cx)
        });
        let head = reply.await?;
        self.is_plain = check_framing(&head).is_ok();
        Ok(head)
    }

    /// Reads the next part of the content, or `None` at its end.
    ///
    /// # Errors
    /// Fails if the content is malformed, incomplete or does not arrive in time.
    pub(super) async fn content(&mut self) -> Result<Option<Bytes>, Fault> {
        self.with_silence_timeout(|server, cx| {
            let part = server.poll_content(cx);
            part.map_ok(|part| part.map(Content::into_bytes))
        })
        .await
    }

    /// Waits for the result of `poll`. Fails if the server sends nothing for too long.
    async fn with_silence_timeout<T>(
        &mut self,
        mut poll: impl FnMut(&mut Server, &mut Context<'_>) -> Poll<Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let (server, silence) = (&mut self.server, self.silence);
        let mut timer = pin!(sleep(silence));
        let mut before = server.bytes_read();
        let reply = poll_fn(|cx| {
            if let Poll::Ready(reply) = poll(server, cx) {
                return Poll::Ready(reply);
            }
            let now = server.bytes_read();
            if std::mem::replace(&mut before, now) != now {
                timer.as_mut().reset(tokio::time::Instant::now() + silence);
            }
            ready!(timer.as_mut().poll(cx));
            Poll::Ready(Err(Fault::ReadTimeout))
        });
        reply.await.map_err(|fault| self.failed(fault))
    }

    fn failed(&mut self, fault: Fault) -> Fault {
        self.again = match self.server.again(&fault, self.reused) {
            // Repeat the request on a new connection, because other requests on this one may have caused the fault.
            Repeat::Never if self.reused => Repeat::Always,
            again => again,
        };
        fault
    }

    /// Returns whether and how the request can be repeated after an error.
    pub(super) fn again(&self) -> Repeat {
        self.again
    }

    /// Keeps the connection for other requests to `origin` if the whole response has arrived. To find out, it reads the
    /// rest of the content, without waiting, and drops it.
    pub(super) fn keep(mut self, fetcher: &Fetcher, origin: &Origin) {
        if !self.is_plain {
            return;
        }
        let mut nobody = Context::from_waker(Waker::noop());
        let mut read = 0;
        while !self.server.is_ended() {
            match self.server.poll_content(&mut nobody) {
                Poll::Ready(Ok(Some(part))) if read < MAX_UNREAD => read += part.as_slice().len(),
                Poll::Ready(Ok(None)) => break,
                _ => return,
            }
        }
        fetcher
            .origins
            .keep(origin, self.address, self.server, fetcher.kept_for);
    }
}

/// Refuses transfer codings other than chunked. Encoded content would look like a robots.txt without rules.
pub(super) fn check_framing(head: &ResponseHeader) -> Result<(), Fault> {
    let mut codings = head.headers.get_all(http::header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Fault::HttpProtocol),
    }
}

/// How long a server may send nothing on a reused connection.
const REUSED_SILENCE: Duration = Duration::from_secs(2);
/// How many bytes of a response are read and dropped at most, so that its connection can be reused.
const MAX_UNREAD: usize = 32 * 1024;
