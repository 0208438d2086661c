//! Passes the head and the end of a response to the client, with the changes that a proxy has to make.

use std::task::{Context, Poll};

use http::{Method, StatusCode, Version, header};
use pingora_http::ResponseHeader;

use super::{Broken, Down, Relay, Relayed, State};
use crate::{proxy::rewrite, upstream::Fault};

// === impl Relay ===

impl Relay<'_> {
    /// Ends the response to the client. A client of HTTP/2 also gets the origin's trailers.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) -> Result<Down, Broken> {
        match self.server.poll_trailers(cx) {
            Poll::Ready(Ok(Some(mut trailers))) => {
                rewrite::trailers(&mut trailers);
                self.client.finish_with(trailers)?;
            }
            Poll::Ready(Ok(None)) => self.client.finish()?,
            Poll::Ready(Err(fault)) => return Err(Broken::Server(fault)),
            Poll::Pending => return Ok(Down::Content),
        }
        Ok(Down::Ending(Relayed::Complete { reusable: false }))
    }

    pub(super) fn answer(&mut self, state: &mut State, mut head: ResponseHeader) -> Result<Down, Broken> {
        let exchange = &mut *self.exchange;
        let elapsed = exchange.elapsed();
        exchange.timings.first_byte.get_or_insert(elapsed);
        let request = self.client.head();
        let received = request.version;
        let upgrade = self.client.asks_to_upgrade().then_some(&request.headers);
        rewrite::check_answer(upgrade, &head).map_err(Broken::Server)?;
        exchange.note_response(&head);
        let status = head.status;
        // Check what the response says about the use of its content before the fields that `Connection` names are
        // removed. Skip informational responses, which have no content, except a 101, which is a final response.
        if (!status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS)
            && let Some(withdrawal) = exchange.note_usage(&head)
        {
            return Err(Broken::Withdrawn(withdrawal));
        }
        let proxy = &exchange.generation.config.proxy;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            rewrite::to_client(&mut head, received, &proxy.name, None).map_err(internal)?;
            self.client.send_head(head, false)?;
            exchange.status = Some(status.as_u16());
            return Ok(Down::Ending(Relayed::Websocket));
        }
        rewrite::from_origin(&mut head, &proxy.name).map_err(internal)?;
        if received != Version::HTTP_2 || self.server.version() != Version::HTTP_2 {
            // This field announces trailers (RFC 9110 §6.6.2), which are forwarded only from HTTP/2 to HTTP/2.
            head.remove_header(&header::TRAILER);
        }
        if status.is_informational() {
            state.informational += 1;
            if state.informational > MAX_INFORMATIONAL {
                return Err(Broken::Server(Fault::HttpProtocol));
            }
            // HTTP/1.0 has no informational responses (RFC 9110 §15.2).
            if received != Version::HTTP_10 {
                rewrite::to_client(&mut head, received, &proxy.name, None).map_err(internal)?;
                self.client.send_head(head, false)?;
            }
            return Ok(Down::Head);
        }
        // The request will not be sent again, so its content is no longer kept.
        self.content.forget();
        let has_content =
            request.method != Method::HEAD && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        state.discards = !has_content;
        let end = self.server.is_ended();
        let length = head.headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        if has_content {
            state.left = length;
        }
        if has_content && length.is_none() && !head.headers.contains_key(header::TRANSFER_ENCODING) {
            // A response may have no length, as over HTTP/2 or if the origin ends it by closing the connection. But a
            // client of HTTP/1.1 has to know where the content ends (RFC 9112 §6.3).
            match end {
                true => head.insert_header(header::CONTENT_LENGTH, "0"),
                false => head.insert_header(header::TRANSFER_ENCODING, "chunked"),
            }
            .map_err(internal)?;
        }
        let field = exchange.take_decision_field();
        let proxy = &exchange.generation.config.proxy;
        rewrite::to_client(&mut head, received, &proxy.name, field).map_err(internal)?;
        self.client.send_head(head, end)?;
        exchange.status = Some(status.as_u16());
        Ok(match end {
            true => Down::Ending(Relayed::Complete { reusable: false }),
            false => Down::Content,
        })
    }
}

fn internal(error: Box<pingora::Error>) -> Broken {
    Broken::Server(Fault::Internal(error.to_string()))
}

const MAX_INFORMATIONAL: usize = 32;
