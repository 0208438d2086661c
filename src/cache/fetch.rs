//! One fetch of a robots.txt: the I/O of RFC 9309 §2.3, with the bounds that a hostile server
//! needs. What the outcome means is not decided here.
//!
//! The request is an unconditional GET without cookies or credentials. Redirects are followed up
//! to five hops, across origins, each through the egress guard (RFC 9309 §2.3.1.2).

mod body;
mod hop;
mod trace;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use async_trait::async_trait;
use pingora::connectors::{ConnectorOptions, http::v1::Connector};

use self::hop::{Hop, HopEnd};
pub use self::{
    body::within_limit,
    trace::{Asked, Traced},
};
use super::{Failure, FetchError, Freshness, Meaning, Policy, Received, copy::LARGE};
use crate::{
    egress::{Egress, Roots},
    origin::Origin,
};

/// Something that fetches the robots.txt of origins.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Fetches, however long it takes; the implementation bounds it.
    async fn fetch(&self, origin: &Origin) -> Fetched;
}

/// What came of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    Received(Received),
    /// More hops than five, or a loop. Counts as if there were no robots.txt.
    TooManyRedirects {
        status: u16,
    },
    Failed(Failure),
}

/// The fetcher that goes out to the network.
pub struct Fetcher {
    connector: Connector,
    egress: Egress,
    options: FetcherOptions,
}

/// What of a fetch the configuration sets.
#[derive(Debug, Clone)]
pub struct FetcherOptions {
    /// The `User-Agent` that fetches are made with.
    pub user_agent: http::HeaderValue,
    /// For connecting and the TLS handshake of one hop.
    pub connect_timeout: Duration,
    /// For the whole fetch, redirects included.
    pub total_timeout: Duration,
}

// === impl Fetched ===

impl Fetched {
    /// What the fetch says of the origin.
    pub fn meaning(&self, policy: &Policy, at: SystemTime) -> Meaning {
        match self {
            Fetched::Received(received) => Meaning::of(received, policy, at),
            Fetched::TooManyRedirects { .. } => Meaning::NoRobots,
            Fetched::Failed(failure) => Meaning::Failed(failure.clone()),
        }
    }

    /// Whether it brought so much text that reading it takes a while.
    pub fn is_large(&self) -> bool {
        matches!(self, Fetched::Received(received) if received.body.len() > LARGE)
    }

    /// The last HTTP status, 0 where none was received.
    pub fn status(&self) -> u16 {
        match self {
            Fetched::Received(received) => received.status,
            Fetched::TooManyRedirects { status } => *status,
            Fetched::Failed(_) => 0,
        }
    }

    pub fn freshness(&self) -> Freshness {
        match self {
            Fetched::Received(received) => received.freshness,
            Fetched::TooManyRedirects { .. } | Fetched::Failed(_) => Freshness::default(),
        }
    }
}

// === impl Fetcher ===

impl Fetcher {
    /// A fetcher that goes out by `egress` and checks certificates against `roots`.
    pub fn new(egress: Egress, roots: &Roots, options: FetcherOptions) -> Self {
        // No connection is used twice: most origins are asked once a day.
        let mut settings = ConnectorOptions::new(1);
        settings.ca_file = Some(roots.path());
        Self {
            connector: Connector::new(Some(settings)),
            egress,
            options,
        }
    }

    /// As [`Fetch::fetch`], and tells its way, too.
    pub async fn trace(&self, origin: &Origin) -> Traced {
        let total = self.options.total_timeout;
        let started = Instant::now();
        let mut hops = Vec::with_capacity(1);
        let fetched = tokio::time::timeout(total, self.follow(origin, &mut hops))
            .await
            .unwrap_or_else(|_| Err(FetchError::Timeout(total).into()))
            .unwrap_or_else(Fetched::Failed);
        Traced {
            fetched,
            hops,
            took: started.elapsed(),
        }
    }

    async fn follow(&self, origin: &Origin, hops: &mut Vec<Asked>) -> Result<Fetched, Failure> {
        let (mut hop, mut status) = (Hop::first(origin), 0);
        for _ in 0..=MAX_REDIRECTS {
            let asked = hops.push_mut(Asked {
                url: hop.url(),
                status: None,
            });
            match hop.ask(self, &mut asked.status).await? {
                HopEnd::Received(received) => return Ok(Fetched::Received(received)),
                HopEnd::Redirect { to, status: last } => {
                    hop = to;
                    status = last;
                }
            }
        }
        Ok(Fetched::TooManyRedirects { status })
    }
}

#[async_trait]
impl Fetch for Fetcher {
    async fn fetch(&self, origin: &Origin) -> Fetched {
        let fetched = self.trace(origin).await.fetched;
        if let Fetched::Failed(failure) = &fetched {
            tracing::info!(%origin, error = %failure.error, "the robots.txt could not be fetched");
        }
        fetched
    }
}

#[async_trait]
impl<F: Fetch> Fetch for Arc<F> {
    async fn fetch(&self, origin: &Origin) -> Fetched {
        (**self).fetch(origin).await
    }
}

/// RFC 9309 §2.3.1.2.
const MAX_REDIRECTS: usize = 5;
