//! Fetches a robots.txt or a `tdmrep.json` ([`SiteDocument`]): the I/O of RFC 9309 §2.3, with limits against hostile
//! servers. This module does not parse the document.
//!
//! The request is a GET without cookies or credentials. Up to five redirects are followed, also to other origins, and
//! the egress guard checks each address.

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
    hop::opaque,
    limiter::{FetchLimiter, FetchPermit, Name, Requester},
    redirect::Hop,
    trace::{Traced, TracedHop},
};
use crate::{
    copy::{Failure, FetchError, Fetched, NetworkError, OriginState, Policy, RobotsCopy, SiteDocument},
    egress::{Egress, EgressError},
    fleet::Fleet,
    origin::Origin,
    upstream::{Fault, Origins},
};

/// Fetches documents of origins, such as their robots.txt.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Space in the audit log that is reserved for the record of a fetch.
    type Reservation: Send + 'static;

    /// Queues a fetch. Returns its permit, which says when the [`FetchLimiter`] allows the fetch to start.
    ///
    /// # Errors
    /// Fails if the requester has reached its limit of fetches.
    fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError>;

    /// Reserves space in the audit log for the record of the fetch. Callers fetch only after this has succeeded.
    ///
    /// # Errors
    /// Fails if the audit log cannot be written, or if evidence is required but texts cannot be stored now.
    async fn reserve(&self) -> Result<Self::Reservation, LookupError>;

    /// Waits until `permit` lets the fetch start, and fetches `document`, or gets a 304 if the document still has this
    /// `etag`. Implementations must limit the time of the fetch.
    async fn fetch(
        &self,
        permit: &FetchPermit,
        document: &'static SiteDocument,
        origin: &Origin,
        etag: Option<&str>,
    ) -> Traced;

    /// Stores the text of a copy as evidence, before the copy is used for a decision.
    ///
    /// # Errors
    /// Fails if the text could not be stored although evidence is required (`evidence.required`). The copy must then
    /// not be used.
    async fn store_evidence(&self, _copy: &RobotsCopy) -> Result<(), LookupError> {
        Ok(())
    }

    /// Checks whether the text of a new copy could be stored as evidence.
    ///
    /// # Errors
    /// Fails if evidence is required (`evidence.required`), but texts cannot be stored now.
    fn check_evidence(&self) -> Result<(), LookupError> {
        Ok(())
    }

    /// Writes the record of a fetch to the audit log. Called once for each fetch, before its result is used, even if
    /// the fetch was cancelled ([`FetchError::CutOff`]).
    fn finished(&self, finished: &FinishedFetch<'_>, reservation: Self::Reservation);

    /// Returns the fleet, which is asked for the document before each fetch. `None` if robotgate runs alone.
    fn fleet(&self) -> Option<&Arc<Fleet>> {
        None
    }

    /// Writes to the audit log that another robotgate of the fleet has fetched a document. Called before the result of
    /// that fetch is used.
    fn took_shared_copy(&self, shared: &SharedCopy<'_>, reservation: Self::Reservation);

    /// Called when a fetch has changed the state of the origin, also a fetch by another robotgate of the fleet. Must
    /// not block.
    fn learned(&self, _learned: &Learned<'_>) {}
}

/// The state of an origin before and after a fetch by this robotgate or by another one of the fleet.
#[derive(Debug)]
pub struct Learned<'a> {
    pub document: &'static SiteDocument,
    pub origin: &'a Origin,
    pub before: &'a OriginState,
    pub after: &'a OriginState,
}

/// A document that another robotgate of the fleet has fetched, and how it changed the state of the origin.
#[derive(Debug)]
pub struct SharedCopy<'a> {
    pub document: &'static SiteDocument,
    pub origin: &'a Origin,
    pub before: &'a OriginState,
    pub after: &'a OriginState,
    /// When this robotgate got the copy.
    pub at: SystemTime,
    pub policy: &'a Policy,
}

/// A completed fetch, and how it changed the state of its origin.
#[derive(Debug)]
pub struct FinishedFetch<'a> {
    pub document: &'static SiteDocument,
    pub origin: &'a Origin,
    pub traced: &'a Traced,
    pub before: &'a OriginState,
    pub after: &'a OriginState,
    /// When the fetch ended.
    pub at: SystemTime,
    pub policy: &'a Policy,
}

/// Why robotgate cannot fetch or use a robots.txt, if the origin is not the cause. The origin's state does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    #[error("too many robots.txt fetches for operators are under way (proxy.max-client-fetches); try again later")]
    TooManyFetches,
    #[error("the audit log cannot be written, so robotgate fetches no robots.txt")]
    NotLogged,
    #[error(
        "the robots.txt or tdmrep.json cannot be stored as evidence now, so robotgate does not use it \
         (evidence.required): the disk is slow, or the operational log says why"
    )]
    NotStored,
}

/// The message for a client that has reached its limit of fetches.
pub const TOO_MANY_FETCHES: &str = "this client has reached its limit of robots.txt fetches under way \
     (proxy.max-client-fetches, or less if `ulimit -n` is low)";

/// Fetches documents such as robots.txt over the network.
pub struct Fetcher {
    /// Requests for pages use these connections too.
    origins: Arc<Origins>,
    egress: Egress,
    options: FetcherOptions,
    http2: bool,
    /// Maximum time to connect, including the TLS handshake.
    connect_timeout: Duration,
    kept_for: Duration,
    limiter: Arc<FetchLimiter>,
}

/// Fetch settings from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetcherOptions {
    pub user_agent: http::HeaderValue,
    /// Timeout of a whole fetch, including redirects. It begins when the fetch starts.
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
    /// Creates a fetcher that keeps idle connections for the time `kept_for`, so that other requests can use them.
    /// Fetchers with the same `limiter` share its limit of concurrent fetches.
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

    /// Queues a fetch. Returns its permit, which says when the [`FetchLimiter`] allows the fetch to start.
    ///
    /// # Errors
    /// Fails if the requester has reached its limit of fetches.
    pub fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError> {
        self.limiter.enter(requester)
    }

    /// Waits until `permit` lets the fetch start, and fetches a document of `origin`. With an `etag`, the origin can
    /// answer that the document has not changed (304).
    pub async fn trace(
        &self,
        permit: &FetchPermit,
        document: &'static SiteDocument,
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
                // If a request has an ETag, some servers answer with a client error or with a 304 for a different ETag.
                // So repeat the request without the ETag, except after a 429.
                HopEnd::Response(received) if matches!(received.status, 304 | 400..=428 | 430..=499) => {}
                end => return self.follow_redirects(end, hops).await,
            }
        }
        let end = first.ask(self, None, note(hops, &first)).await;
        self.follow_redirects(end.map_err(Failure::of_origin)?, hops).await
    }

    /// Follows up to [`MAX_REDIRECTS`] redirects. Sends no entity tag, because robotgate knows only the first URL's.
    async fn follow_redirects(&self, mut end: HopEnd, hops: &mut Vec<TracedHop>) -> Result<Fetched, Failure> {
        for _ in 0..MAX_REDIRECTS {
            let HopEnd::Redirect { to, .. } = end else { break };
            let ended = to.ask(self, None, note(hops, &to)).await;
            end = ended.map_err(|failure| failure.after_redirect(&to.origin))?;
            if let HopEnd::Response(received) = &mut end {
                received.etag = None;
                received.redirected = true;
            }
        }
        Ok(match end {
            HopEnd::Response(received) => Fetched::Response(received),
            HopEnd::NotModified(freshness) => Fetched::NotModified { freshness },
            HopEnd::Redirect { status, .. } => Fetched::TooManyRedirects { status },
        })
    }
}

fn note<'h>(hops: &'h mut Vec<TracedHop>, hop: &Hop) -> &'h mut TracedHop {
    hops.push_mut(TracedHop {
        url: hop.url(),
        upstream: None,
        status: None,
    })
}

/// Maximum number of redirects (RFC 9309 §2.3.1.2).
const MAX_REDIRECTS: usize = 5;
