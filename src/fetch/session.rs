//! One request of a fetch and its response. Requests for pages can use the same connection: an HTTP/2 connection at the
//! same time, and an HTTP/1.1 connection afterwards.
//!
//! Over HTTP/1.1, a fetch always opens a new connection. On an older one, robotgate could mistake the late response to
//! an earlier request, or the 408 of a server that closes the connection, for the robots.txt.

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
    /// Whether an earlier or a concurrent request opened the connection.
    reused: bool,
    /// How long the server may send nothing.
    silence: Duration,
    again: Repeat,
    /// Whether it is certain where the response ends. If not, the connection is not kept.
    is_plain: bool,
}

// === impl Session ===

impl Session {
    /// Uses an existing HTTP/2 connection to one of the checked `addresses` if `wanted` allows it, or else connects to
    /// the first address that accepts. `upstream` gets the last address that was tried.
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
            // An existing connection can be broken without being closed. Give up early, while there is time for a new
            // one.
            true => idle.min(REUSED_SILENCE),
            false => idle,
        };
        Ok(Self {
            server,
            address,
            reused,
            // If the idle timeout is not shorter than the total timeout, wait a second more than the total timeout, so
            // that the total timeout ends the fetch.
            silence: match idle < total {
                true => idle,
                false => total + Duration::from_secs(1),
            },
            again: Repeat::Never,
            is_plain: false,
        })
    }

    pub(super) fn send(&mut self, request: RequestHeader, target: &Target) -> Result<(), Fault> {
        let sent = self.server.send_head(request, target, true);
        sent.and_then(|()| self.server.finish())
            .map_err(|fault| self.failed(fault))
    }

    /// Reads the next head, informational or final.
    pub(super) async fn head(&mut self) -> Result<ResponseHeader, Fault> {
        let reply = self.with_silence_timeout(|server, cx| {
            // Reading the response also reports a failed write.
            let _ = server.poll_sent(cx);
            server.poll_head(cx)
        });
        let head = reply.await?;
        self.is_plain = check_framing(&head).is_ok();
        Ok(head)
    }

    /// Reads the next part of the content, or `None` at its end.
    pub(super) async fn content(&mut self) -> Result<Option<Bytes>, Fault> {
        self.with_silence_timeout(|server, cx| {
            let part = server.poll_content(cx);
            part.map_ok(|part| part.map(Content::into_bytes))
        })
        .await
    }

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
            // Other requests on this connection may have caused the fault, so repeat the request on a new one.
            Repeat::Never if self.reused => Repeat::Always,
            again => again,
        };
        fault
    }

    pub(super) fn again(&self) -> Repeat {
        self.again
    }

    /// Reads and drops the rest of the response, without waiting. If all of it has arrived, keeps the connection for
    /// other requests.
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

const REUSED_SILENCE: Duration = Duration::from_secs(2);
/// Maximum number of bytes that are read and dropped, so that the connection can be reused.
const MAX_UNREAD: usize = 32 * 1024;
