//! Limits for clients: the list of limits, how often each was exceeded, and allowances that refill with time. Reads no
//! clock.

use std::{
    fmt,
    net::SocketAddr,
    sync::atomic::AtomicU32,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{fetch::TOO_MANY_FETCHES, ratelimited::EventCounter};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Connections,
    ClientConnections,
    ClientRequests,
    ClientFetches,
    ClientLeaves,
    HeaderBytes,
    HeaderFields,
    HeaderTimeout,
    BodyTimeout,
    Http2Resets,
    TunnelIdleTimeout,
    TunnelTimeout,
}

#[derive(Debug)]
pub(super) struct Tally {
    since: Instant,
    counts: [EventCounter; Limit::ALL.len()],
}

/// How often a client may still do something, such as cause a new certificate. Refills gradually, up to the full
/// amount.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    left: f64,
    at: Instant,
}

/// Counts how often the client of an HTTP/2 connection cancels requests. Cancelling needs a limit, because the client
/// may then send further requests while robotgate still works on the cancelled ones (CVE-2023-44487).
#[derive(Debug)]
pub(super) struct Resets {
    allowed: u32,
    allowance: Mutex<Allowance>,
    /// Number of requests that are being served, including cancelled ones.
    pub(super) served: AtomicU32,
    /// Cancelled once the client has cancelled too many requests, or too many of its requests are being served.
    pub(super) enough: CancellationToken,
}

// === impl Resets ===

impl Resets {
    pub(super) fn new(allowed: u32, now: Instant) -> Self {
        Self {
            allowed,
            allowance: Mutex::new(Allowance::full(allowed, now)),
            served: AtomicU32::new(0),
            enough: CancellationToken::new(),
        }
    }

    pub(super) fn count(&self, now: Instant) {
        let mut allowance = self.allowance.lock();
        if !allowance.take(self.allowed, RESETS_WITHIN, now) {
            self.enough.cancel();
        }
    }
}

// === impl Limit ===

impl Limit {
    const ALL: [Limit; 12] = [
        Limit::Connections,
        Limit::ClientConnections,
        Limit::ClientRequests,
        Limit::ClientFetches,
        Limit::ClientLeaves,
        Limit::HeaderBytes,
        Limit::HeaderFields,
        Limit::HeaderTimeout,
        Limit::BodyTimeout,
        Limit::Http2Resets,
        Limit::TunnelIdleTimeout,
        Limit::TunnelTimeout,
    ];

    /// Returns the configuration key in `[proxy]` that sets the limit.
    pub(super) fn key(self) -> &'static str {
        match self {
            Limit::Connections => "max-connections",
            Limit::ClientConnections => "max-client-connections",
            Limit::ClientRequests => "max-client-requests",
            Limit::ClientFetches => "max-client-fetches",
            Limit::ClientLeaves => "max-client-leaves",
            Limit::HeaderBytes => "max-header-bytes",
            Limit::HeaderFields => "max-header-fields",
            Limit::HeaderTimeout => "header-timeout",
            Limit::BodyTimeout => "body-timeout",
            Limit::Http2Resets => "max-http2-resets",
            Limit::TunnelIdleTimeout => "tunnel-idle-timeout",
            Limit::TunnelTimeout => "tunnel-timeout",
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Limit::Connections => {
                "the proxy has reached its limit of connections (proxy.max-connections, or less if `ulimit -n` is low)"
            }
            Limit::ClientConnections => {
                "this client has reached its limit of connections to the proxy (proxy.max-client-connections, or less if \
                 `ulimit -n` is low)"
            }
            Limit::ClientRequests => {
                "this client has reached its limit of simultaneous requests (proxy.max-client-requests, or less if \
                 `ulimit -n` is low)"
            }
            Limit::ClientFetches => TOO_MANY_FETCHES,
            Limit::ClientLeaves => {
                "this client has reached its limit of certificates for new hosts in a minute (proxy.max-client-leaves)"
            }
            Limit::HeaderBytes => "the request line and the fields together are too long (proxy.max-header-bytes)",
            Limit::HeaderFields => "the request has too many fields (proxy.max-header-fields)",
            Limit::HeaderTimeout => "the request did not arrive in time (proxy.header-timeout)",
            Limit::BodyTimeout => "the request's content did not arrive in time (proxy.body-timeout)",
            Limit::Http2Resets => {
                "the client cancelled too many requests (proxy.max-http2-resets, or twice proxy.max-http2-streams at the \
                 same time)"
            }
            Limit::TunnelIdleTimeout => {
                "no bytes passed through the tunnel or WebSocket for too long (proxy.tunnel-idle-timeout)"
            }
            Limit::TunnelTimeout => "the tunnel or WebSocket reached its maximum duration (proxy.tunnel-timeout)",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

// === impl Tally ===

impl Tally {
    pub(super) fn new(since: Instant) -> Self {
        Self {
            since,
            counts: [const { EventCounter::new() }; Limit::ALL.len()],
        }
    }

    pub(super) fn totals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let total = |limit: Limit| self.counts[limit as usize].total();
        Limit::ALL.into_iter().map(move |limit| (limit.key(), total(limit)))
    }

    /// Counts that a client exceeded a limit, and logs each limit at most once a second. `client` is the address as the
    /// log may show it.
    pub(super) fn note(&self, limit: Limit, client: SocketAddr, now: Instant) {
        let count = &self.counts[limit as usize];
        if let Some(total) = count.note(now.saturating_duration_since(self.since)) {
            tracing::warn!(%client, limit = limit.key(), such_events_since_start = total, "a limit was exceeded: {limit}");
        }
    }
}

// === impl Allowance ===

impl Allowance {
    pub(super) fn full(amount: u32, now: Instant) -> Self {
        Self {
            left: f64::from(amount),
            at: now,
        }
    }

    /// Takes 1 from the allowance, or returns `false` if less than 1 is left. The allowance refills from 0 to `amount`
    /// within `time`.
    pub(super) fn take(&mut self, amount: u32, time: Duration, now: Instant) -> bool {
        self.left = self.refilled(amount, time, now);
        self.at = now;
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }

    pub(super) fn is_full(&self, amount: u32, time: Duration, now: Instant) -> bool {
        self.refilled(amount, time, now) >= f64::from(amount)
    }

    fn refilled(&self, amount: u32, time: Duration, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64() / time.as_secs_f64();
        (self.left + passed * f64::from(amount)).min(f64::from(amount))
    }
}

/// The allowance of cancelled requests (`proxy.max-http2-resets`) refills within this time.
const RESETS_WITHIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn an_allowance_refills_over_time() {
        let start = Instant::now();
        let mut allowance = Allowance::full(3, start);
        let mut take = |seconds| allowance.take(3, MINUTE, start + Duration::from_secs(seconds));
        assert_eq!([0, 0, 0, 0].map(&mut take), [true, true, true, false]);
        assert_eq!([19, 20, 21].map(&mut take), [false, true, false]);
        assert_eq!([600, 600, 600, 600].map(&mut take), [true, true, true, false]);
        assert!(!allowance.is_full(3, MINUTE, start + Duration::from_secs(659)));
        assert!(allowance.is_full(3, MINUTE, start + Duration::from_secs(660)));
    }

    #[test]
    fn a_reduced_allowance_applies_immediately() {
        let start = Instant::now();
        let mut allowance = Allowance::full(1000, start);
        assert!(allowance.take(1, MINUTE, start));
        assert!(!allowance.take(1, MINUTE, start));
    }

    #[test]
    fn every_limit_has_its_own_index_and_key() {
        for (index, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, index);
            let same = Limit::ALL.into_iter().filter(|other| other.key() == limit.key());
            assert_eq!(same.count(), 1, "{limit:?}");
            assert!(limit.sentence().contains(limit.key()), "{limit:?}");
        }
    }
}
