//! What an agent may fetch of a site if the path is unknown, as in a tunnel.
//!
//! It looks at each pattern alone, and does not find out which paths several patterns match together. So it can return
//! [`SiteAccess::Mixed`] although all paths have the same verdict.

use super::{
    entry::{Offset, PatternEntry, Rank, Shape},
    wild,
};

/// What an agent may fetch, for all paths of a site together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SiteAccess {
    /// Every path is allowed.
    AllAllowed,
    /// Every path is disallowed, except `/robots.txt`, which robotgate allows whatever the rules say.
    AllDisallowed,
    /// The verdict depends on the path, or may depend on it.
    Mixed,
}

/// The highest ranks among the patterns of an agent. Patterns that match no path are left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct HighestRanks {
    /// Highest rank of a pattern that matches every path.
    universal: Rank,
    /// Highest rank of a pattern that disallows some path.
    disallow: Rank,
    /// Highest rank of a pattern that allows some path.
    allow: Rank,
}

// === impl HighestRanks ===

impl HighestRanks {
    pub(super) const NOWHERE: Self = Self {
        universal: Rank::NONE,
        disallow: Rank::NONE,
        allow: Rank::NONE,
    };

    /// Returns the ranks after taking another pattern into account.
    pub(super) fn with<W: Offset>(mut self, entry: &PatternEntry<W>, text: &[u8]) -> Self {
        let rank = entry.rank();
        if is_universal(entry, text) {
            self.universal = self.universal.max(rank);
        }
        if rank.allows() {
            self.allow = self.allow.max(rank);
        } else {
            self.disallow = self.disallow.max(rank);
        }
        self
    }

    /// Returns what the agent may fetch. A pattern that matches every path always wins against patterns of lower rank.
    /// So only patterns of the same or a higher rank matter.
    pub(super) fn site_access(self) -> SiteAccess {
        if self.disallow == Rank::NONE || self.disallow < self.universal {
            SiteAccess::AllAllowed
        } else if self.allow < self.universal {
            SiteAccess::AllDisallowed
        } else {
            SiteAccess::Mixed
        }
    }
}

/// Returns whether the pattern matches every path, as `/`, `*` and `/*$` do. All paths begin with `/`, so a pattern
/// without `$` that matches `/` matches every path.
fn is_universal<W: Offset>(entry: &PatternEntry<W>, text: &[u8]) -> bool {
    match entry.shape() {
        Shape::Exact | Shape::WildToEnd => false,
        Shape::Prefix => b"/".starts_with(entry.literal(text)),
        Shape::Wild => {
            let rest = b"/".strip_prefix(entry.literal(text));
            rest.is_some_and(|rest| wild::matches(rest, entry.tail(text), false))
        }
    }
}
