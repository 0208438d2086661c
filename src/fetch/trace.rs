//! The trace of a fetch: each requested URL and its response. For people and records; no decision depends on it.

use std::{net::SocketAddr, time::Duration};

use super::Fetched;

/// The result of a fetch and its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    pub fetched: Fetched,
    /// The requests in order. All but the first follow redirects. Empty if the fetch never began.
    pub hops: Vec<TracedHop>,
    /// Time from the fetch's turn to the last byte that is used, or to the failure.
    pub took: Duration,
}

/// A request of a fetch, and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedHop {
    pub url: String,
    /// The address of the connection, or the last address that was tried. `None` if there was none to try.
    pub upstream: Option<SocketAddr>,
    /// `None` if there was no response.
    pub status: Option<u16>,
}

// === impl Traced ===

impl Traced {
    /// Returns the status and target of each redirect, even if its request failed.
    pub fn redirects(&self) -> impl Iterator<Item = (Option<u16>, &TracedHop)> {
        std::iter::zip(&self.hops, self.hops.iter().skip(1))
            .filter(|(from, _)| from.is_redirect())
            .map(|(from, to)| (from.status, to))
    }

    /// Returns the address at which the origin itself was asked.
    pub fn upstream(&self) -> Option<SocketAddr> {
        // The origin might have been asked twice, with a condition and then without.
        let origin_hop = self.hops.iter().find(|hop| hop.is_redirect()).or(self.hops.last());
        origin_hop.and_then(|hop| hop.upstream)
    }

    /// Returns the status of the last response, if the last URL gave one.
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
