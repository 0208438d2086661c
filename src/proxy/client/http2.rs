//! A request over HTTP/2 (RFC 9113): one stream of the connection.

use std::{
    pin::pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;
use pingora::protocols::http::v2::server::HttpSession;
use pingora_http::{RequestHeader, ResponseHeader};

use super::ClientFault;
use crate::wire::at_once;

pub(in crate::proxy) struct Http2 {
    session: HttpSession,
    body: Option<SendStream<Bytes>>,
    unsent: Bytes,
    ends: bool,
    ended: bool,
    bytes_in: u64,
    bytes_out: u64,
}

// === impl Http2 ===

impl Http2 {
    pub(super) fn new(session: HttpSession) -> Self {
        Self {
            session,
            body: None,
            unsent: Bytes::new(),
            ends: false,
            ended: false,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    pub(super) fn head(&self) -> &RequestHeader {
        self.session.req_header()
    }

    pub(super) fn has_content(&mut self) -> bool {
        !self.session.is_body_empty()
    }

    pub(super) fn is_read(&mut self) -> bool {
        self.session.is_body_done()
    }

    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in, self.bytes_out)
    }

    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ClientFault>> {
        match ready!(self.session.poll_read_body_bytes(cx)) {
            Some(Ok(content)) => {
                self.bytes_in += content.len() as u64;
                Poll::Ready(Ok(Some(content)))
            }
            Some(Err(_)) => Poll::Ready(Err(ClientFault::Gone)),
            None => Poll::Ready(Ok(None)),
        }
    }

    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_reset(cx).map(drop)
    }

    pub(super) fn has_lost_connection(&mut self) -> bool {
        let reset = std::future::poll_fn(|cx| self.poll_reset(cx));
        matches!(at_once(reset), Some(Err(_)))
    }

    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reason, ClientFault>> {
        match &mut self.body {
            Some(body) => body.poll_reset(cx).map_err(|_| ClientFault::Gone),
            None => pin!(self.session.idle()).poll(cx).map_err(|_| ClientFault::Gone),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.unsent.is_empty()
    }

    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientFault>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(()));
        };
        while !self.unsent.is_empty() {
            body.reserve_capacity(self.unsent.len());
            let Some(Ok(room)) = ready!(body.poll_capacity(cx)) else {
                return Poll::Ready(Err(ClientFault::Gone));
            };
            if room == 0 {
                continue;
            }
            let part = self.unsent.split_to(room.min(self.unsent.len()));
            let end = self.ends && self.unsent.is_empty();
            self.bytes_out += part.len() as u64;
            self.ended |= end;
            body.send_data(part, end).map_err(|_| ClientFault::Gone)?;
        }
        if self.ends && !self.ended {
            self.ended = true;
            body.send_data(Bytes::new(), true).map_err(|_| ClientFault::Gone)?;
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn send_head(&mut self, head: ResponseHeader, end: bool) -> Result<(), ClientFault> {
        if head.status.is_informational() {
            return Ok(());
        }
        let sent = self.session.write_response_header(Box::new(head), end);
        sent.map_err(|_| ClientFault::Gone)?;
        self.body = self.session.take_response_body_writer();
        self.ended = end;
        Ok(())
    }

    pub(super) fn send(&mut self, content: Bytes) {
        self.unsent = content;
    }

    pub(super) fn finish(&mut self) {
        self.ends = true;
    }

    pub(super) fn finish_with(&mut self, trailers: HeaderMap) -> Result<(), ClientFault> {
        let body = self.body.as_mut().ok_or(ClientFault::Gone)?;
        self.ended = true;
        body.send_trailers(trailers).map_err(|_| ClientFault::Gone)
    }
}
