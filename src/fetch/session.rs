//! One request of a fetch and its answer, on a connection of its own, over the HTTP that its TLS agreed on.

use std::{
    future::poll_fn,
    task::{Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use pingora::protocols::{ALPN, Stream, http::v1::client::HttpSession};
use pingora_http::{RequestHeader, ResponseHeader};

use crate::{
    origin::Target,
    upstream::{
        Fault,
        http2::{self, Bounds, Shared, StreamError},
    },
};

pub(super) enum Session {
    Http1(Box<HttpSession>),
    Http2 {
        stream: http2::Stream,
        /// How long the server may be silent.
        silence: Duration,
    },
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
            return Ok(Self::Http2 { stream, silence });
        }
        let mut session = HttpSession::new(stream);
        session.read_timeout = Some(silence);
        session.write_timeout = Some(silence);
        session.write_request_header(Box::new(request)).await.map_err(fault)?;
        session.finish_body().await.map_err(fault)?;
        Ok(Self::Http1(Box::new(session)))
    }

    /// The next head: that of an informational response, or the final one.
    pub(super) async fn head(&mut self) -> Result<ResponseHeader, StreamError> {
        match self {
            Self::Http1(session) => Ok(*session.read_resp_header_parts().await.map_err(fault)?),
            Self::Http2 { stream, silence } => {
                let head = poll_fn(|cx| match ready!(stream.poll_informational(cx)) {
                    Some(head) => Poll::Ready(head),
                    None => stream.poll_head(cx),
                });
                tokio::time::timeout(*silence, head)
                    .await
                    .map_err(|_| Fault::ReadTimeout)?
            }
        }
    }

    /// The next part of the content; `None` at its end.
    pub(super) async fn content(&mut self) -> Result<Option<Bytes>, Fault> {
        match self {
            Self::Http1(session) => session.read_body_bytes().await.map_err(Fault::of_body),
            Self::Http2 { stream, silence } => {
                let part = poll_fn(|cx| stream.poll_content(cx));
                let part = tokio::time::timeout(*silence, part).await;
                Ok(part.map_err(|_| Fault::ReadTimeout)??)
            }
        }
    }
}

fn fault(error: Box<pingora::Error>) -> Fault {
    // Every error of this session is the server's.
    Fault::from_pingora(&error.into_up())
}
