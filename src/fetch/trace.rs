//! The trace of a fetch: each requested URL and its response. It is for people and records; no decision depends on it.

use std::{net::SocketAddr, time::Duration};

use super::Fetched;

/// The result of a fetch and its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    pub fetched: Fetched,
    /// The requests in order. Each one after the first follows a redirect, or repeats the first request without its
    /// condition. Empty if the fetch never started.
    pub hops: Vec<TracedHop>,
    /// Time from the start of the fetch to the last byte that is used, or to the failure.
    pub took: Duration,
}

/// A request of a fetch, and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedHop {
    pub url: String,
    /// The address of the connection, or the last address that was tried. `None` if no address was tried.
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

    /// Returns the address to which the request to the origin itself was sent.
    pub fn upstream(&self) -> Option<SocketAddr> {
        // There can be two requests to the origin, one with a condition and then one without.
        let origin_hop = self.hops.iter().find(|hop| hop.is_redirect()).or(self.hops.last());
        origin_hop.and_then(|hop| hop.upstream)
    }

    /// Returns the status of the last response; `None` if there was no response from the last URL.
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
