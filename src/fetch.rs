//! One fetch of a robots.txt: the I/O of RFC 9309 §2.3, with the bounds that a hostile server
//! needs. What the outcome means is not decided here.
//!
//! The request is a GET without cookies or credentials, and without a condition but the origin's own
//! entity tag. Redirects are followed up to five hops, across origins, each through the egress guard
//! (RFC 9309 §2.3.1.2).

mod body;
mod hop;
mod limiter;
mod redirect;
mod session;
mod trace;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use async_trait::async_trait;

use self::hop::HopEnd;
pub use self::{
    body::within_limit,
    limiter::{FetchLimiter, FetchPermit, Name, Requester},
    redirect::Hop,
    trace::{Traced, TracedHop},
};
use crate::{
    copy::{Failure, FetchError, Fetched, NetworkError, OriginState, Policy},
    egress::{Egress, EgressError},
    origin::Origin,
    upstream::{Fault, Origins},
};

/// Something that fetches the robots.txt of origins.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// A reservation in the log for the result of a fetch.
    type Reservation: Send + 'static;

    /// Queues a fetch, which begins in its turn.
    ///
    /// # Errors
    /// The requester has as many fetches as it may have.
    fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError>;

    /// Reserves room in the log, without which nothing is fetched.
    ///
    /// # Errors
    /// The log takes nothing.
    async fn reserve(&self) -> Result<Self::Reservation, LookupError>;

    /// Fetches in its turn, however long it takes; the implementation bounds it. With `etag`, the origin may
    /// answer that what it gave under that tag has not changed.
    async fn fetch(&self, permit: &FetchPermit, origin: &Origin, etag: Option<&str>) -> Traced;

    /// Told of each fetch before what it found is used, and of one that was dropped before it had ended
    /// ([`FetchError::CutOff`]).
    fn finished(&self, finished: &FinishedFetch<'_>, reservation: Self::Reservation);
}

/// A fetch that has ended, and what it changed.
#[derive(Debug)]
pub struct FinishedFetch<'a> {
    pub origin: &'a Origin,
    pub traced: &'a Traced,
    /// What was known before, and what is now.
    pub before: &'a OriginState,
    pub after: &'a OriginState,
    /// When it ended.
    pub at: SystemTime,
    pub policy: &'a Policy,
}

/// Why nothing could be looked up. It is no fault of the origin's, and nothing is noted of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    #[error("{TOO_MANY_FETCHES}")]
    TooManyFetches,
    #[error("the audit log cannot be written, so robotgate fetches no robots.txt")]
    NotLogged,
}

/// What is said to a client that may begin no more fetches for now.
pub const TOO_MANY_FETCHES: &str =
    "this client has reached its limit of robots.txt fetches under way (proxy.max-client-fetches)";

/// The fetcher that goes out to the network.
pub struct Fetcher {
    /// The connections that pages use, too.
    origins: Arc<Origins>,
    egress: Egress,
    options: FetcherOptions,
    /// Whether servers are offered HTTP/2.
    http2: bool,
    /// For connecting and the TLS handshake of one hop.
    connect_timeout: Duration,
    /// How long a connection waits for another request.
    kept_for: Duration,
    limiter: Arc<FetchLimiter>,
}

/// What of a fetch the configuration sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetcherOptions {
    /// The `User-Agent` that fetches are made with.
    pub user_agent: http::HeaderValue,
    /// For the whole fetch, redirects included, from when its turn has come.
    pub total_timeout: Duration,
    /// How long a server may be silent. Each byte that comes begins it anew.
    pub idle_timeout: Duration,
}

// === impl FetchError ===

impl From<Fault> for FetchError {
    fn from(fault: Fault) -> Self {
        FetchError::Network {
            kind: match &fault {
                Fault::Egress(EgressError::Resolve(_)) => NetworkError::Dns,
                Fault::Egress(EgressError::Prohibited(_)) => NetworkError::Prohibited,
                Fault::ConnectionRefused | Fault::ConnectionTimeout | Fault::Unroutable => NetworkError::Connect,
                Fault::TlsCertificate(_) | Fault::Underscore | Fault::TlsAlert(_) | Fault::TlsProtocol(_) => {
                    NetworkError::Tls
                }
                Fault::ReadTimeout | Fault::WriteTimeout => NetworkError::Timeout,
                Fault::ConnectionTerminated
                | Fault::ResponseIncomplete
                | Fault::HttpProtocol
                | Fault::TransferCoding
                | Fault::ProxyAuthentication => NetworkError::Broken,
                Fault::Internal(_) => NetworkError::Internal,
            },
            text: fault.to_string(),
        }
    }
}

// === impl Fetcher ===

impl Fetcher {
    /// A fetcher that goes out by `egress` on connections of `origins`, and offers HTTP/2 beside HTTP/1.1 with `http2`. A
    /// connection is left to other requests, and waits for them as long as `kept_for` says. Of all fetchers that share
    /// `limiter`, as many fetches run at once as it allows.
    pub fn new(
        egress: Egress,
        origins: Arc<Origins>,
        options: FetcherOptions,
        http2: bool,
        connect_timeout: Duration,
        kept_for: Duration,
        limiter: Arc<FetchLimiter>,
    ) -> Self {
        Self {
            origins,
            egress,
            options,
            http2,
            connect_timeout,
            kept_for,
            limiter,
        }
    }

    /// Queues a fetch, which begins in its turn.
    ///
    /// # Errors
    /// The requester has as many fetches as it may have.
    pub fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError> {
        self.limiter.enter(requester)
    }

    /// Fetches the robots.txt of `origin` once the turn of `permit` has come. With `etag`, its answer may be that what it
    /// gave under that tag has not changed.
    pub async fn trace(&self, permit: &FetchPermit, origin: &Origin, etag: Option<&str>) -> Traced {
        permit.turn().await;
        let (total, began) = (self.options.total_timeout, Instant::now());
        let mut hops = Vec::with_capacity(1);
        let ran = permit.run(tokio::time::timeout(total, self.follow(origin, etag, &mut hops)));
        let fetched = match ran.await {
            Ok(Ok(fetched)) => fetched,
            Ok(Err(_)) => Err(FetchError::Timeout(total).into()),
            Err(error) => Err(error.into()),
        };
        Traced {
            fetched: fetched.unwrap_or_else(Fetched::Failed),
            hops,
            took: began.elapsed(),
        }
    }

    async fn follow(&self, origin: &Origin, etag: Option<&str>, hops: &mut Vec<TracedHop>) -> Result<Fetched, Failure> {
        if let Some(etag) = etag {
            let first = Hop::first(origin);
            let end = first.ask(self, Some(etag), note(hops, &first)).await;
            match end.map_err(Failure::of_origin)? {
                // Some servers do not understand the condition, and say so; without it they may have
                // rules to give. One that is asked too often says nothing of it, and is left in peace.
                HopEnd::Received(received) if matches!(received.status, 400..=428 | 430..=499) => {}
                end => return self.go_on(end, hops).await,
            }
        }
        let first = Hop::first(origin);
        let end = first.ask(self, None, note(hops, &first)).await;
        self.go_on(end.map_err(Failure::of_origin)?, hops).await
    }

    /// Follows redirects to their end. They are asked without a condition: a tag speaks for one URL.
    async fn go_on(&self, mut end: HopEnd, hops: &mut Vec<TracedHop>) -> Result<Fetched, Failure> {
        for _ in 0..MAX_REDIRECTS {
            let HopEnd::Redirect { to, .. } = end else { break };
            end = to.ask(self, None, note(hops, &to)).await?;
            if let HopEnd::Received(received) = &mut end {
                received.etag = None;
                received.redirected = true;
            }
        }
        Ok(match end {
            HopEnd::Received(received) => Fetched::Received(received),
            HopEnd::NotModified(freshness) => Fetched::NotModified { freshness },
            HopEnd::Redirect { status, .. } => Fetched::TooManyRedirects { status },
        })
    }
}

/// Notes that a URL is asked, and gives where its address and status are noted.
fn note<'h>(hops: &'h mut Vec<TracedHop>, hop: &Hop) -> &'h mut TracedHop {
    hops.push_mut(TracedHop {
        url: hop.url(),
        upstream: None,
        status: None,
    })
}

/// RFC 9309 §2.3.1.2.
const MAX_REDIRECTS: usize = 5;
