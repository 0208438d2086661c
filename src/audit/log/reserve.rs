//! Room for lines that are still to come, for what must not begin unless it can be logged.

use std::sync::Arc;

use super::{AuditError, AuditLog, MAX_PENDING, MAX_WAIT, state::State};

/// Room for a line that is still to come. It is given back when this is dropped.
#[derive(Debug)]
pub struct Reserved {
    log: Arc<AuditLog>,
    bytes: usize,
}

// === impl AuditLog ===

impl AuditLog {
    /// Waits until the output takes lines and there is room for one of `bytes`, and keeps that room from other
    /// reservations.
    ///
    /// # Errors
    /// The output takes nothing, or there is no room, for [`MAX_WAIT`].
    pub async fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reserved, AuditError> {
        let room = async {
            loop {
                // It is told of what happens from here on.
                let freed = self.shared.freed.notified();
                if !self.is_stalled() && self.shared.lock().reserve(bytes) {
                    break;
                }
                freed.await;
            }
        };
        let waited = tokio::time::timeout(MAX_WAIT, room).await;
        waited.map_err(|_| AuditError::Full)?;
        Ok(Reserved {
            log: self.clone(),
            bytes,
        })
    }
}

// === impl State ===

impl State {
    fn reserve(&mut self, bytes: usize) -> bool {
        let fits = !self.failing && self.lines.len() + self.reserved + bytes <= MAX_PENDING;
        if fits {
            self.reserved += bytes;
        }
        fits
    }
}

// === impl Reserved ===

impl Reserved {
    /// Hands the line over, which may be longer than what was reserved, without waiting until it is written.
    pub fn append(self, line: &[u8]) {
        self.log.append_now(line);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.log.shared.lock().reserved -= self.bytes;
        self.log.shared.freed.notify_waiters();
    }
}
