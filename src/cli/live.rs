//! Fetches a robots.txt or a `tdmrep.json` for a subcommand, in the same way as the proxy. This module puts nothing
//! into the cache, and decides nothing about a bot.

mod way;

use std::{collections::HashSet, fmt::Display, sync::Arc, time::SystemTime};

use crate::{
    audit::Redirect,
    config::Config,
    copy::{
        Answer, CacheStatus, Fetched, Lookup, OriginResponse, OriginState, Policy, RobotsCopy, SiteDocument,
        SourceFetch,
    },
    egress::{Resolver, ResolverError, Roots, RootsError},
    explanation::FetchRecord,
    fetch::{LookupError, Name, Requester, Traced},
    origin::Origin,
    upstream::Origins,
};

use self::way::Way;
use super::progress::Progress;

/// A fetch of a robots.txt or a `tdmrep.json`, and its result.
#[derive(Debug)]
pub struct Live {
    pub traced: Traced,
    pub policy: Policy,
    /// When the fetch ended.
    pub at: SystemTime,
    state: Arc<OriginState>,
}

/// Why robotgate could not start a fetch. A fetch that starts and fails is no error, but a [`Live`].
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(transparent)]
    Resolver(#[from] ResolverError),
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error("cannot start to fetch: {0}")]
    Runtime(std::io::Error),
    #[error(transparent)]
    Fetch(#[from] LookupError),
}

/// Fetches `document` from `origin`, within `robots.fetch-timeout`. Fails only if the fetch cannot start.
pub fn fetch(config: &Config, document: &'static SiteDocument, origin: &Origin) -> Result<Live, LiveError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LiveError::Runtime)?;
    let traced = runtime.block_on(async {
        let resolver = Resolver::new(&config.egress.dns)?;
        let roots = Roots::gather(&config.https.extra_roots)?;
        let limiter = config.fetch_limiter();
        let permit = limiter.enter(Requester {
            name: Name::Operators,
            max_fetches: 1,
        })?;
        let fetcher = config.fetcher(
            config.way_out(resolver, config.listening()),
            Origins::new(roots.path(), 1, config.listening()),
            limiter,
        );
        let text = format!("fetching {origin}{}", document.path);
        let _progress = Progress::begin(move || text.clone());
        Ok::<_, LiveError>(fetcher.trace(&permit, document, origin, None).await)
    })?;
    Ok(Live::new(
        document,
        origin,
        traced,
        config.robots.policy,
        SystemTime::now(),
    ))
}

// === impl Live ===

impl Live {
    fn new(document: &SiteDocument, origin: &Origin, traced: Traced, policy: Policy, at: SystemTime) -> Self {
        let fetched = &traced.fetched;
        let meaning = fetched.meaning_of(document, origin.scheme, &policy, at);
        let (status, freshness) = (fetched.status(), fetched.freshness());
        Self {
            state: Arc::new(OriginState::unknown().after(meaning, status, freshness, at, 0.0, &policy)),
            traced,
            policy,
            at,
        }
    }

    /// Returns what the proxy's cache would return after this fetch.
    pub(super) fn lookup(&self) -> Lookup {
        Lookup {
            state: self.state.clone(),
            status: CacheStatus::Miss,
            waited: self.traced.took,
            at: self.at,
            pending: false,
        }
    }

    /// Returns what the fetch means for a proxy that knew nothing of the origin before.
    pub fn answer(&self) -> Answer<'_> {
        self.state.answer(self.at, &self.policy)
    }

    pub(super) fn copy(&self) -> Option<&RobotsCopy> {
        self.state.last_copy()
    }

    /// Returns the HTTP status, when the fetch ended, and when robotgate would fetch the document again.
    pub fn source_fetch(&self) -> SourceFetch {
        self.state.source_fetch(self.at, &self.policy)
    }

    /// Returns the text of the fetched document, if the fetch returned one.
    pub fn body(&self) -> Option<&[u8]> {
        self.rules().map(|received| &*received.body)
    }

    /// Returns all bytes that were read of the robots.txt, also those after [`LIMIT`](crate::robots::LIMIT).
    pub fn body_as_read(&self) -> Option<Vec<u8>> {
        self.rules()
            .map(|received| [&*received.body, &received.cut_off].concat())
    }

    /// Returns whether the robots.txt is too long, so that robotgate uses only a part of it.
    pub fn is_cut(&self) -> bool {
        self.rules().is_some_and(|received| !received.cut_off.is_empty())
    }

    /// If there were too many redirects, returns a phrase that says so, or that they went in a circle.
    pub fn detour(&self) -> Option<&'static str> {
        if !matches!(self.traced.fetched, Fetched::TooManyRedirects { .. }) {
            return None;
        }
        let urls: HashSet<&str> = self.traced.hops.iter().map(|hop| &*hop.url).collect();
        Some(if urls.len() < self.traced.hops.len() {
            "redirects in a circle"
        } else {
            "redirects too often"
        })
    }

    /// Returns the fetch as lines for a person.
    pub fn way(&self) -> impl Display {
        Way(self)
    }

    pub(super) fn record(&self) -> FetchRecord<'_> {
        let error = self.answer().failure().map(|failure| &failure.error as &dyn Display);
        let record = FetchRecord::of(self.source_fetch(), self.copy(), error);
        let redirects = self.traced.redirects().map(|(status, to)| Redirect {
            status,
            to: (&*to.url).into(),
            upstream: to.upstream.map(|address| address.to_string()),
        });
        FetchRecord {
            redirects: redirects.collect(),
            cut: self.body().map(|_| self.is_cut()),
            duration_us: Some(self.traced.took.as_micros()),
            error: record.error.or_else(|| self.detour().map(str::to_owned)),
            ..record
        }
    }

    /// Returns the response of the site, if it contains the fetched document.
    fn rules(&self) -> Option<&OriginResponse> {
        match (&self.traced.fetched, self.answer()) {
            (Fetched::Response(received), Answer::Rules(_)) => Some(received),
            _ => None,
        }
    }
}
