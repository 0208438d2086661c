//! The names of sites and bots and the texts of rules: each is stored once, and all of them in a bounded space.

use std::{collections::HashSet, sync::Arc};

#[derive(Debug, Default)]
pub(super) struct Names {
    names: HashSet<Arc<str>>,
    bytes: usize,
}

// === impl Names ===

impl Names {
    /// Returns the stored copy of `name`, or `None` if there is no room for another name.
    pub(super) fn store(&mut self, name: &str) -> Option<Arc<str>> {
        if let Some(stored) = self.names.get(name) {
            return Some(stored.clone());
        }
        if self.bytes + weight(name) > MAX_BYTES {
            return None;
        }
        let stored: Arc<str> = name.into();
        self.bytes += weight(name);
        self.names.insert(stored.clone());
        Some(stored)
    }

    /// Returns the space that the names take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes the names that nothing uses any longer.
    pub(super) fn sweep(&mut self) {
        self.names.retain(|name| Arc::strong_count(name) > 1);
        self.bytes = self.names.iter().map(|name| weight(name)).sum();
    }
}

/// The text, the counters of its references, and its place in the set.
fn weight(name: &str) -> usize {
    name.len() + 48
}

/// Maximum size of all names.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
