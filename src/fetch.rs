//! Fetches a robots.txt: the I/O of RFC 9309 §2.3, with limits against hostile servers. A `tdmrep.json` is fetched in the
//! same way ([`Document`]). This module does not interpret the result.
//!
//! The request is a GET without cookies or credentials. It is unconditional, or its condition is an entity tag that the
//! same origin sent. Up to five redirects are followed, also to other origins. The egress guard checks each of them
//! (RFC 9309 §2.3.1.2).

mod body;
mod document;
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
    document::Document,
    limiter::{FetchLimiter, FetchPermit, Name, Requester},
    redirect::Hop,
    trace::{Traced, TracedHop},
};
use crate::{
    copy::{Failure, FetchError, Fetched, Meaning, NetworkError, OriginState, Policy, RobotsCopy},
    egress::{Egress, EgressError},
    fleet::Fleet,
    origin::Origin,
    upstream::{Fault, Origins},
};

/// Fetches a document of origins: their robots.txt, or another one that is kept in the same way.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Space in the audit log that is reserved for the record of a fetch.
    type Reservation: Send + 'static;

    /// Queues a fetch. It starts when the limiter grants it a permit.
    ///
    /// # Errors
    /// Fails if the requester has reached its limit of fetches.
    fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError>;

    /// Reserves space in the audit log for the record of the fetch. Without it, nothing is fetched.
    ///
    /// # Errors
    /// Fails if the audit log cannot be written.
    async fn reserve(&self) -> Result<Self::Reservation, LookupError>;

    /// Waits until the limiter grants the permit, and fetches. The implementation limits the time. With `etag`, the
    /// request is conditional, so the origin can respond with "not modified".
    async fn fetch(&self, permit: &FetchPermit, origin: &Origin, etag: Option<&str>) -> Traced;

    /// Returns what the result of a fetch says about the origin. Parses the document, which can take a while.
    fn meaning(fetched: &Fetched, policy: &Policy, at: SystemTime) -> Meaning {
        fetched.meaning(policy, at)
    }

    /// Stores the text of a copy as evidence, before a decision is based on it.
    ///
    /// # Errors
    /// Fails if the configuration requires the text to be stored and that failed. The copy must not be used then.
    async fn store_evidence(&self, _copy: &RobotsCopy) -> Result<(), LookupError> {
        Ok(())
    }

    /// Checks whether a new text could be stored as evidence.
    ///
    /// # Errors
    /// Fails if the configuration requires texts to be stored, and they cannot be stored now.
    fn check_evidence(&self) -> Result<(), LookupError> {
        Ok(())
    }

    /// Called for each fetch before its result is used, even for a fetch that was dropped ([`FetchError::CutOff`]), to
    /// record it.
    fn finished(&self, finished: &FinishedFetch<'_>, reservation: Self::Reservation);

    /// Returns the fleet, which is asked for a copy before each fetch. `None` if there is no fleet.
    fn fleet(&self) -> Option<&Arc<Fleet>> {
        None
    }

    /// Called for each copy that another robotgate of the fleet fetched, before the copy is used.
    fn took_shared_copy(&self, shared: &SharedCopy<'_>, reservation: Self::Reservation);

    /// Called after the result of a fetch, by this or another gate, has become the state of the origin. Must not block.
    fn learned(&self, _learned: &Learned<'_>) {}
}

/// The states of an origin before and after a fetch of this or another gate.
#[derive(Debug)]
pub struct Learned<'a> {
    pub origin: &'a Origin,
    pub before: &'a OriginState,
    pub after: &'a OriginState,
}

/// A copy that another robotgate of the fleet fetched, with the states of the origin before and after.
#[derive(Debug)]
pub struct SharedCopy<'a> {
    pub origin: &'a Origin,
    /// The state of the origin before and after.
    pub before: &'a OriginState,
    pub after: &'a OriginState,
    /// When this robotgate got the copy from the fleet.
    pub at: SystemTime,
    pub policy: &'a Policy,
}

/// A completed fetch, and how it changed the state of its origin.
#[derive(Debug)]
pub struct FinishedFetch<'a> {
    pub origin: &'a Origin,
    pub traced: &'a Traced,
    /// The state of the origin before and after the fetch.
    pub before: &'a OriginState,
    pub after: &'a OriginState,
    /// When the fetch ended.
    pub at: SystemTime,
    pub policy: &'a Policy,
}

/// Why a lookup could not fetch the robots.txt. The origin is not the cause, so its state does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    #[error("{TOO_MANY_FETCHES}")]
    TooManyFetches,
    #[error("the audit log cannot be written, so robotgate fetches no robots.txt")]
    NotLogged,
    #[error(
        "robots.txt files cannot be stored as evidence, so robotgate fetches none (evidence.required); the operational \
         log says why"
    )]
    NotStored,
}

/// The message for a client that has reached its limit of fetches.
pub const TOO_MANY_FETCHES: &str = "this client has reached its limit of robots.txt fetches under way \
     (proxy.max-client-fetches, or less if `ulimit -n` is low)";

/// Fetches robots.txt over the network.
pub struct Fetcher {
    /// The connection pool, shared with page requests.
    origins: Arc<Origins>,
    egress: Egress,
    options: FetcherOptions,
    /// Whether to offer HTTP/2 to servers.
    http2: bool,
    /// Timeout for connecting and the TLS handshake of one hop.
    connect_timeout: Duration,
    /// How long an idle connection waits for another request.
    kept_for: Duration,
    limiter: Arc<FetchLimiter>,
}

/// Fetch settings from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetcherOptions {
    pub user_agent: http::HeaderValue,
    /// Timeout of a whole fetch including redirects, from the moment it may start.
    pub total_timeout: Duration,
    /// How long a server may send nothing. Each received byte restarts the timeout.
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
                | Fault::ProxyAuthentication
                | Fault::Ftp(_)
                | Fault::DataAddress(_) => NetworkError::Broken,
                Fault::Internal(_) => NetworkError::Internal,
            },
            text: fault.to_string(),
        }
    }
}

// === impl Fetcher ===

impl Fetcher {
    /// Creates a fetcher that connects through `egress` with connections from `origins`, and offers HTTP/2 in addition
    /// to HTTP/1.1 if `http2` is set. Idle connections stay open for other requests for `kept_for`. Fetchers with the
    /// same `limiter` share its limit of concurrent fetches.
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

    /// Queues a fetch. It starts when the limiter grants it a permit.
    ///
    /// # Errors
    /// Fails if the requester has reached its limit of fetches.
    pub fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError> {
        self.limiter.enter(requester)
    }

    /// Waits until the limiter grants `permit` and fetches a document of `origin`. With `etag`, the request is
    /// conditional, so the origin can respond with "not modified".
    pub async fn trace(
        &self,
        permit: &FetchPermit,
        document: &'static Document,
        origin: &Origin,
        etag: Option<&str>,
    ) -> Traced {
        permit.turn().await;
        let (total, began) = (self.options.total_timeout, Instant::now());
        let mut hops = Vec::with_capacity(1);
        let following = self.follow(Hop::first(document, origin), etag, &mut hops);
        let ran = permit.run(tokio::time::timeout(total, following));
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

    async fn follow(&self, first: Hop, etag: Option<&str>, hops: &mut Vec<TracedHop>) -> Result<Fetched, Failure> {
        if let Some(etag) = etag {
            let end = first.ask(self, Some(etag), note(hops, &first)).await;
            match end.map_err(Failure::of_origin)? {
                // Some servers respond to a conditional request with a client error, but serve the rules without the
                // condition. After a 429, no second request is sent.
                HopEnd::Received(received) if matches!(received.status, 400..=428 | 430..=499) => {}
                end => return self.follow_redirects(end, hops).await,
            }
        }
        let end = first.ask(self, None, note(hops, &first)).await;
        self.follow_redirects(end.map_err(Failure::of_origin)?, hops).await
    }

    /// Follows redirects to their end. The further requests are unconditional, because an entity tag belongs to one
    /// URL.
    async fn follow_redirects(&self, mut end: HopEnd, hops: &mut Vec<TracedHop>) -> Result<Fetched, Failure> {
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

/// Adds a hop to the trace and returns it, so that its address and status can be filled in.
fn note<'h>(hops: &'h mut Vec<TracedHop>, hop: &Hop) -> &'h mut TracedHop {
    hops.push_mut(TracedHop {
        url: hop.url(),
        upstream: None,
        status: None,
    })
}

/// Maximum number of redirects (RFC 9309 §2.3.1.2).
const MAX_REDIRECTS: usize = 5;
