//! What an agent may fetch of a site if the path is not known, as in a tunnel.
//!
//! Never looks at a path. It errs to [`SiteAccess::Mixed`]: patterns are looked at one by one, not at
//! what several cover together.

use super::{
    entry::{Entry, Offset, Rank, Shape},
    wild,
};

/// What an agent may fetch, for all paths of a site together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SiteAccess {
    /// Every path is allowed.
    AllAllowed,
    /// Every path is disallowed (but `/robots.txt`, which no rule can forbid).
    AllDisallowed,
    /// It depends on the path, or may.
    Mixed,
}

/// The highest ranks of each kind of pattern; all of these can match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// That match every path.
    universal: Rank,
    /// That keep some path out.
    disallow: Rank,
    /// That let some path through.
    allow: Rank,
}

// === impl Reach ===

impl Reach {
    pub(super) const NOWHERE: Self = Self {
        universal: Rank::NONE,
        disallow: Rank::NONE,
        allow: Rank::NONE,
    };

    /// Of these patterns and `entry`.
    pub(super) fn with<W: Offset>(mut self, entry: &Entry<W>, text: &[u8]) -> Self {
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

    /// A pattern that matches every path hides all that rank below it, so what matters is which
    /// kinds stand above it, itself included.
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

/// Whether the pattern matches every path, as `/`, `*` and `/*$` do. What is not held to the end
/// and matches the shortest path matches every longer one, since all begin with it.
fn is_universal<W: Offset>(entry: &Entry<W>, text: &[u8]) -> bool {
    match entry.shape() {
        Shape::Exact | Shape::WildToEnd => false,
        Shape::Prefix => b"/".starts_with(entry.literal(text)),
        Shape::Wild => {
            let rest = b"/".strip_prefix(entry.literal(text));
            rest.is_some_and(|rest| wild::matches(rest, entry.tail(text), false))
        }
    }
}
