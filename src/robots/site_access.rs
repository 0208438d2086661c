//! What an agent may fetch of a site if the path is unknown, as in a tunnel. Each pattern is judged alone, so the
//! result can be [`SiteAccess::Mixed`] although all paths have the same verdict.

use super::{
    entry::{Offset, PatternEntry, Rank, Shape},
    wild,
};

/// What an agent may fetch, for all paths of a site together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SiteAccess {
    AllAllowed,
    /// The rules disallow every path. [`crate::decision`] can nevertheless allow `/robots.txt`.
    AllDisallowed,
    /// The verdict may depend on the path.
    Mixed,
}

/// The highest ranks among the patterns of an agent, without patterns that match no path.
#[derive(Clone, Copy, Debug)]
pub(super) struct HighestRanks {
    /// Highest rank of a pattern that matches every path.
    universal: Rank,
    disallow: Rank,
    allow: Rank,
}

// === impl HighestRanks ===

impl HighestRanks {
    pub(super) const NOWHERE: Self = Self {
        universal: Rank::NONE,
        disallow: Rank::NONE,
        allow: Rank::NONE,
    };

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

    /// A pattern that matches every path wins against all patterns of lower rank, so these do not matter.
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

/// Returns whether the pattern matches every path: it matches `/`, and has no `$` that limits it. In `/*$`, the `$` has
/// no effect.
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
