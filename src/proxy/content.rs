//! Reads the content of a request from the client, and keeps it in memory until it is longer than `MAX_KEPT`. If a
//! connection to the origin fails, and the origin has certainly not processed the request, robotgate can send the kept
//! content again on another connection.

use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::client::{Client, ClientFault};

#[derive(Debug, Default)]
pub(super) struct Content {
    kept: Vec<Bytes>,
    /// Index in `kept` of the next part to read.
    next: usize,
    /// Whether some content was read but not kept, so that the content cannot be sent again.
    is_gone: bool,
}

// === impl Content ===

impl Content {
    /// Makes the next read start again at the beginning of the content. Returns `false` if some content was not kept.
    pub(super) fn rewind(&mut self) -> bool {
        self.next = 0;
        !self.is_gone
    }

    /// Stops keeping content. Call this when it is certain that robotgate will not send the request again.
    pub(super) fn forget(&mut self) {
        // Drop the parts that were sent. Keep those from `next` on, which were read from the client and still have to
        // be sent.
        self.kept.drain(..self.next);
        self.next = 0;
        self.is_gone = true;
    }

    /// Returns whether all content has been read.
    pub(super) fn is_read(&self, client: &mut Client) -> bool {
        self.next == self.kept.len() && client.is_read()
    }

    /// Returns the next part of the content, or `None` at its end.
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

/// Maximum size of the content that robotgate keeps for one request, in bytes.
const MAX_KEPT: usize = 64 * 1024;
