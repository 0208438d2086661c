//! What a changed robots.txt means, as a metric label.

use crate::text::words;

words! {
    /// What a changed robots.txt means for the requests to its site that are held in memory.
    pub enum ChangeEffect {
        /// Some of them would now be denied, and none allowed that was not.
        Stricter = "stricter",
        /// Some of them would now be allowed, and none denied that was not.
        Looser = "looser",
        Both = "both",
        /// The rules are the same, or all of these requests would be decided as before.
        None = "none",
        /// The rules changed, but none of these requests shows what that means.
        Unknown = "unknown",
    }
}
