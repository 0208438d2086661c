//! What a fetch went through on its way: each URL that was asked and how it answered. For people
//! and records; nothing is decided by it.

use std::{net::SocketAddr, time::Duration};

use super::Fetched;

/// A fetch and its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    pub fetched: Fetched,
    /// In order; all but the first are where redirects led. None where it never began.
    pub hops: Vec<TracedHop>,
    /// From when its turn had come to the last byte that counts, or to the failure.
    pub took: Duration,
}

/// A request of a fetch, and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedHop {
    pub url: String,
    /// The address that was connected to, or tried last; `None` where there was none to try.
    pub upstream: Option<SocketAddr>,
    /// `None` where no answer came.
    pub status: Option<u16>,
}

// === impl Traced ===

impl Traced {
    /// The redirects that were followed, be it in vain: the status of each, and where it led.
    pub fn redirects(&self) -> impl Iterator<Item = (Option<u16>, &TracedHop)> {
        std::iter::zip(&self.hops, self.hops.iter().skip(1))
            .filter(|(from, _)| from.is_redirect())
            .map(|(from, to)| (from.status, to))
    }

    /// The address at which the origin itself was asked.
    pub fn upstream(&self) -> Option<SocketAddr> {
        // It may have been asked twice, with a condition and then without.
        let origin_hop = self.hops.iter().find(|hop| hop.is_redirect()).or(self.hops.last());
        origin_hop.and_then(|hop| hop.upstream)
    }

    /// The status of the last URL that was asked, where one came.
    pub fn status(&self) -> Option<u16> {
        self.hops.last().and_then(|hop| hop.status)
    }
}

// === impl TracedHop ===

impl TracedHop {
    fn is_redirect(&self) -> bool {
        self.status.is_some_and(|status| (300..400).contains(&status))
    }
}
