//! One request of a fetch and its answer, on a connection of its own, over the HTTP that its TLS agreed on.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use pingora::protocols::{ALPN, Stream};
use pingora_http::{RequestHeader, ResponseHeader};

use crate::{
    origin::Target,
    upstream::{
        Fault, Http1,
        http2::{self, Bounds, Shared, StreamError},
    },
};

pub(super) struct Session {
    over: Over,
    /// How long the server may be silent.
    silence: Duration,
}

enum Over {
    Http1(Box<Http1>),
    Http2(http2::Stream),
}

// === impl Session ===

impl Session {
    /// Sends `request`, which is one for `target` and has no content. The server may be silent for `silence` each time.
    pub(super) async fn begin(
        stream: Stream,
        request: RequestHeader,
        target: &Target,
        silence: Duration,
    ) -> Result<Self, StreamError> {
        if stream.selected_alpn_proto() == Some(ALPN::H2) {
            let bounds = Bounds {
                streams: 1,
                ..Bounds::default()
            };
            let shared = Shared::open(stream, &bounds, silence).await?;
            let stream = shared.send(http2::request(&request, target)?, true)?;
            shared.close();
            return Ok(Self {
                over: Over::Http2(stream),
                silence,
            });
        }
        let mut session = Http1::new(stream);
        session.send_head(Box::new(request))?;
        session.finish()?;
        Ok(Self {
            over: Over::Http1(Box::new(session)),
            silence,
        })
    }

    /// The next head: that of an informational response, or the final one.
    pub(super) async fn head(&mut self) -> Result<ResponseHeader, StreamError> {
        match &mut self.over {
            Over::Http1(session) => Ok(unless_silent(session, self.silence, Http1::poll_head).await?),
            Over::Http2(stream) => {
                let head = poll_fn(|cx| match ready!(stream.poll_informational(cx)) {
                    Some(head) => Poll::Ready(head),
                    None => stream.poll_head(cx),
                });
                tokio::time::timeout(self.silence, head)
                    .await
                    .map_err(|_| Fault::ReadTimeout)?
            }
        }
    }

    /// The next part of the content; `None` at its end.
    pub(super) async fn content(&mut self) -> Result<Option<Bytes>, Fault> {
        match &mut self.over {
            Over::Http1(session) => {
                let copied = |part: Option<&[u8]>| part.map(Bytes::copy_from_slice);
                unless_silent(session, self.silence, |session, cx| {
                    session.poll_content(cx).map_ok(copied)
                })
                .await
            }
            Over::Http2(stream) => {
                let part = poll_fn(|cx| stream.poll_content(cx));
                let part = tokio::time::timeout(self.silence, part).await;
                Ok(part.map_err(|_| Fault::ReadTimeout)??)
            }
        }
    }
}

/// Waits for what `poll` asks of the server, as long as that is not silent for `silence`: each byte begins it anew.
async fn unless_silent<T>(
    session: &mut Http1,
    silence: Duration,
    mut poll: impl FnMut(&mut Http1, &mut Context<'_>) -> Poll<Result<T, Fault>>,
) -> Result<T, Fault> {
    let mut timer = pin!(tokio::time::sleep(silence));
    let mut heard = session.bytes_read();
    poll_fn(|cx| {
        // The request may wait to be sent. Why it cannot be is seen where the answer is read.
        let _ = session.poll_sent(cx);
        if let Poll::Ready(answer) = poll(session, cx) {
            return Poll::Ready(answer);
        }
        if session.bytes_read() != heard {
            heard = session.bytes_read();
            timer.as_mut().reset(tokio::time::Instant::now() + silence);
        }
        timer.as_mut().poll(cx).map(|()| Err(Fault::ReadTimeout))
    })
    .await
}
