//! How much one client, one connection, or all of them together may have of the proxy.

use std::ops::RangeInclusive;

use crate::config::check::Checker;
use crate::config::written;

/// The numbers of `[proxy]` that bound what clients may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of all clients together.
    pub connections: usize,
    /// Connections of one client.
    pub client_connections: usize,
    /// Requests of one client that are under way; a tunnel is one.
    pub client_requests: usize,
    /// Fetches of a robots.txt that one client has begun or waits for.
    pub client_fetches: usize,
    /// New hosts in a minute for which one client has a certificate made.
    pub client_leaves: u32,
    /// Requests on one connection, before it is closed in good order.
    pub connection_requests: u32,
    /// Requests that are under way on one HTTP/2 connection.
    pub http2_streams: u32,
    /// Requests that may be taken back within ten seconds on one HTTP/2 connection.
    pub http2_resets: u32,
}

// === impl Limits ===

impl Limits {
    pub(super) fn check(written: &written::Proxy, checker: &mut Checker<'_>) -> Self {
        let mut number = |written, default, range| checker.number(written, default, range);
        Self {
            connections: as_usize(number(&written.max_connections, 65_536, ANY)),
            client_connections: as_usize(number(&written.max_client_connections, 4_096, ANY)),
            client_requests: as_usize(number(&written.max_client_requests, 4_096, ANY)),
            client_fetches: as_usize(number(&written.max_client_fetches, 4_096, ANY)),
            client_leaves: number(&written.max_client_leaves, 6_000, ANY),
            connection_requests: number(&written.max_connection_requests, 10_000, ANY),
            http2_streams: number(&written.max_http2_streams, 100, 1..=10_000),
            http2_resets: number(&written.max_http2_resets, 200, ANY),
        }
    }
}

fn as_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Whatever is more is as good as no bound.
const ANY: RangeInclusive<u32> = 1..=10_000_000;
