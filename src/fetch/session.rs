//! One request of a fetch and its answer, on a connection of [`Origins`](crate::upstream::Origins): a new one or, over
//! HTTP/2, one that pages share. The request that waits for the fetch can go on the same connection.
//!
//! Over HTTP/1.1 the connection is always a new one. So nothing that was said for another request passes for a robots.txt,
//! such as the 408 with which some servers close a connection that waited.

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

use super::{Fetcher, hop::check_framing};
use crate::{
    origin::{Origin, Target},
    upstream::{Again, Content, Fault, Reached, Server, Wanted},
};

pub(super) struct Session {
    server: Server,
    address: SocketAddr,
    /// Whether the connection was there before.
    was_there: bool,
    /// How long the server may be silent.
    silence: Duration,
    again: Again,
    /// Whether it is plain where the answer ends.
    is_plain: bool,
}

// === impl Session ===

impl Session {
    /// Takes a connection that is there, or connects to the first of the checked `addresses` that answers. Which was tried
    /// last is noted in `upstream`.
    ///
    /// # Errors
    /// There is none to be had.
    pub(super) async fn connect(
        fetcher: &Fetcher,
        origin: &Origin,
        addresses: &[SocketAddr],
        wanted: Wanted,
        upstream: &mut Option<SocketAddr>,
    ) -> Result<Self, Fault> {
        let (within, idle) = (fetcher.connect_timeout, fetcher.kept_for);
        let reaching = fetcher.origins.reach(origin, addresses, wanted, within, idle, upstream);
        let Reached {
            server,
            address,
            was_there,
        } = reaching.await?;
        fetcher.egress.check_again(address)?;
        let (idle, total) = (fetcher.options.idle_timeout, fetcher.options.total_timeout);
        let idle = match was_there {
            // The server may be gone without a word, and there is a new connection to be tried.
            true => idle.min(THERE_SILENCE),
            false => idle,
        };
        Ok(Self {
            server,
            address,
            was_there,
            // Where the whole may take no longer than a silence, it is the whole that ends it.
            silence: match idle < total {
                true => idle,
                false => total + Duration::from_secs(1),
            },
            again: Again::Never,
            is_plain: false,
        })
    }

    /// Sends `request`, which is one for `target` and has no content.
    ///
    /// # Errors
    /// It cannot be sent.
    pub(super) fn send(&mut self, request: RequestHeader, target: &Target) -> Result<(), Fault> {
        let sent = self.server.send_head(request, target, true);
        sent.and_then(|()| self.server.finish())
            .map_err(|fault| self.failed(fault))
    }

    /// The next head: that of an informational response, or the final one.
    ///
    /// # Errors
    /// It is malformed, or does not come in time.
    pub(super) async fn head(&mut self) -> Result<ResponseHeader, Fault> {
        let heard = self.heard(|server, cx| {
            // What is wrong with the connection shows where the answer is read.
            let _ = server.poll_sent(cx);
            server.poll_head(cx)
        });
        let head = heard.await?;
        self.is_plain = check_framing(&head).is_ok();
        Ok(head)
    }

    /// The next part of the content; `None` at its end.
    ///
    /// # Errors
    /// It is malformed, breaks off, or does not come in time.
    pub(super) async fn content(&mut self) -> Result<Option<Bytes>, Fault> {
        self.heard(|server, cx| {
            let part = server.poll_content(cx);
            part.map_ok(|part| part.map(Content::into_bytes))
        })
        .await
    }

    /// What `poll` waits for, unless the server is silent for too long.
    async fn heard<T>(
        &mut self,
        mut poll: impl FnMut(&mut Server, &mut Context<'_>) -> Poll<Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let (server, silence) = (&mut self.server, self.silence);
        let mut timer = pin!(sleep(silence));
        let mut before = server.bytes_read();
        let heard = poll_fn(|cx| {
            if let Poll::Ready(heard) = poll(server, cx) {
                return Poll::Ready(heard);
            }
            let now = server.bytes_read();
            if std::mem::replace(&mut before, now) != now {
                timer.as_mut().reset(tokio::time::Instant::now() + silence);
            }
            ready!(timer.as_mut().poll(cx));
            Poll::Ready(Err(Fault::ReadTimeout))
        });
        heard.await.map_err(|fault| self.failed(fault))
    }

    fn failed(&mut self, fault: Fault) -> Fault {
        self.again = match self.server.again(&fault, self.was_there) {
            // Whatever it was, what others did on the connection may be the cause.
            Again::Never if self.was_there => Again::Anyhow,
            again => again,
        };
        fault
    }

    /// Whether the request may be put once more, after an error.
    pub(super) fn again(&self) -> Again {
        self.again
    }

    /// Keeps the connection for other requests to `origin`, if the whole answer is there. For that it reads the content that
    /// does not count, as far as it has come, and waits for nothing.
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

/// How long a server may be silent on a connection that was there before.
const THERE_SILENCE: Duration = Duration::from_secs(2);
/// Bytes that are read for the sake of the connection.
const MAX_UNREAD: usize = 32 * 1024;
