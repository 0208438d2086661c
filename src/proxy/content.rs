//! The content of a request as it is read, the beginning of which is kept so that it can be sent once more, where an origin
//! has certainly done nothing about the request.

use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::client::{Client, ClientFault};

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Content {
    kept: Vec<Bytes>,
    /// The part that is read next.
    next: usize,
    /// Whether something was read that is not kept.
    is_gone: bool,
}

// === impl Content ===

impl Content {
    /// Goes back to the beginning; `false` where that is not kept.
    pub(super) fn rewind(&mut self) -> bool {
        self.next = 0;
        !self.is_gone
    }

    /// Keeps nothing from here on: the request is sent for good.
    pub(super) fn forget(&mut self) {
        // What was not read again is needed still.
        self.kept.drain(..self.next);
        self.next = 0;
        self.is_gone = true;
    }

    /// Whether all of it has been read.
    pub(super) fn is_read(&self, client: &mut Client) -> bool {
        self.next == self.kept.len() && client.is_read()
    }

    /// The next part; `None` at the end.
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

/// Bytes of content that are kept.
const MAX_KEPT: usize = 64 * 1024;
