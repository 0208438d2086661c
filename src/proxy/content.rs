//! Reads the content of a request from the client. Keeps content of up to `MAX_KEPT` bytes, to send it again on another
//! connection if the origin has certainly not processed the request.

use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::client::{Client, ClientFault};

#[derive(Debug, Default)]
pub(super) struct Content {
    kept: Vec<Bytes>,
    next: usize,
    /// Whether a part of the content is no longer kept.
    is_gone: bool,
}

// === impl Content ===

impl Content {
    /// Starts again at the beginning of the content. Returns `false` if robotgate no longer keeps all of it.
    pub(super) fn rewind(&mut self) -> bool {
        self.next = 0;
        !self.is_gone
    }

    /// Stops keeping content. Call this when the request will certainly not be sent again.
    pub(super) fn forget(&mut self) {
        // The parts from `next` on were read from the client, but still have to be sent.
        self.kept.drain(..self.next);
        self.next = 0;
        self.is_gone = true;
    }

    pub(super) fn is_read(&self, client: &mut Client) -> bool {
        self.next == self.kept.len() && client.is_read()
    }

    pub(super) fn poll_next(
        &mut self,
        client: &mut Client,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ClientFault>> {
        if let Some(part) = self.kept.get(self.next) {
            self.next += 1;
            return Poll::Ready(Ok(Some(part.clone())));
        }
        let part = ready!(client.poll_content(cx))?;
        if let Some(part) = &part
            && !self.is_gone
        {
            let bytes: usize = self.kept.iter().map(Bytes::len).sum();
            if bytes + part.len() <= MAX_KEPT {
                self.kept.push(part.clone());
                self.next += 1;
            } else {
                self.kept.clear();
                self.next = 0;
                self.is_gone = true;
            }
        }
        Poll::Ready(Ok(part))
    }
}

const MAX_KEPT: usize = 64 * 1024;
