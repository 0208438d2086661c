//! Reserves room for a future line, so that a fetch begins only when the log can accept the record of it.

use std::sync::Arc;

use super::{AuditError, AuditLog, MAX_PENDING, MAX_WAIT, state::State};

/// Reserved room for a future line, until this value is dropped. Other reservations cannot use this room, but lines
/// without a reservation can.
#[derive(Debug)]
pub struct Reserved {
    log: Arc<AuditLog>,
    bytes: usize,
}

// === impl AuditLog ===

impl AuditLog {
    /// Waits until the output accepts lines and there is room for a line of `bytes`, and reserves that room.
    ///
    /// # Errors
    /// Fails if that takes longer than [`MAX_WAIT`].
    pub async fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reserved, AuditError> {
        let room = async {
            loop {
                // `notified()` comes before the check, so that no notification is missed.
                let freed = self.shared.freed.notified();
                if !self.is_stalled() && self.shared.state.lock().reserve(bytes) {
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
    /// Submits the line without waiting. It can be longer than the reserved room.
    pub fn append(self, line: &[u8]) {
        self.log.append_now(line);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.log.shared.state.lock().reserved -= self.bytes;
        self.log.shared.freed.notify_waiters();
    }
}
