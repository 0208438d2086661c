//! The effect of a changed robots.txt, as a metric label.

use crate::text::words;

words! {
    /// How a changed robots.txt would decide the recent requests to its site. robotgate keeps these requests in memory.
    pub enum ChangeEffect {
        /// It would deny some requests that were allowed, and allow none that were denied.
        Stricter = "stricter",
        /// It would allow some requests that were denied, and deny none that were allowed.
        Looser = "looser",
        Both = "both",
        /// The rules are the same, or all recent requests would be decided as before.
        None = "none",
        /// The rules are different, but there is no recent request with which to compare them.
        Unknown = "unknown",
    }
}
