//! The trace of a fetch: each URL that was requested, and its response. No decision depends on it.

use std::{net::SocketAddr, time::Duration};

use super::{Fetched, hop::is_redirect};

/// The result of a fetch and its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    pub fetched: Fetched,
    /// The requests in order. Each after the first follows a redirect, or repeats the first without its ETag.
    pub hops: Vec<TracedHop>,
    /// Duration of the fetch, without the time for which it was queued.
    pub took: Duration,
}

/// A request of a fetch, and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedHop {
    pub url: String,
    /// The address of the connection, or the last address that was tried.
    pub upstream: Option<SocketAddr>,
    /// `None` if there was no response.
    pub status: Option<u16>,
}

// === impl Traced ===

impl Traced {
    /// Returns for each redirect its status and the request to which it led, even if that request failed.
    pub fn redirects(&self) -> impl Iterator<Item = (Option<u16>, &TracedHop)> {
        std::iter::zip(&self.hops, self.hops.iter().skip(1))
            .filter(|(from, _)| from.is_redirect())
            .map(|(from, to)| (from.status, to))
    }

    /// Returns the address of the origin's server, even if the origin redirected the fetch to another server.
    pub fn upstream(&self) -> Option<SocketAddr> {
        // The first two requests can both be for the origin: with an ETag, and then without.
        let origin_hop = self.hops.iter().find(|hop| hop.is_redirect()).or(self.hops.last());
        origin_hop.and_then(|hop| hop.upstream)
    }

    /// Returns how many bytes of the last response's content were read, after decoding. `None` if the result is not a
    /// [`Fetched::Response`].
    pub fn bytes(&self) -> Option<usize> {
        match &self.fetched {
            Fetched::Response(received) => Some(received.bytes()),
            _ => None,
        }
    }

    /// Returns the status of the response to the last request. `None` if there was no response.
    pub fn status(&self) -> Option<u16> {
        self.hops.last().and_then(|hop| hop.status)
    }
}

// === impl TracedHop ===

impl TracedHop {
    fn is_redirect(&self) -> bool {
        self.status.is_some_and(is_redirect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_request_does_not_count_as_a_redirect() {
        let hop = |status, host: u8| TracedHop {
            url: String::new(),
            upstream: Some(([192, 0, 2, host], 80).into()),
            status: Some(status),
        };
        // After a 304 that names another ETag, robotgate repeats the request without an ETag.
        let traced = |hops| Traced {
            fetched: Fetched::NotModified {
                freshness: Default::default(),
            },
            hops,
            took: Duration::ZERO,
        };
        let repeated = traced(vec![hop(304, 1), hop(200, 2)]);
        assert_eq!(repeated.redirects().count(), 0);
        assert_eq!(repeated.upstream(), hop(200, 2).upstream);
        let redirected = traced(vec![hop(304, 1), hop(302, 2), hop(200, 3)]);
        let redirects: Vec<_> = redirected
            .redirects()
            .map(|(status, to)| (status, to.upstream))
            .collect();
        assert_eq!(redirects, [(Some(302), hop(200, 3).upstream)]);
        assert_eq!(redirected.upstream(), hop(302, 2).upstream);
    }
}
