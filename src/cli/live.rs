//! Fetches a robots.txt for a person in the same way as the proxy: with the same fetcher, egress, trusted root
//! certificates and interpretation.
//!
//! It keeps nothing and decides nothing about a bot.

mod record;
mod way;

use std::{collections::HashSet, fmt::Display, sync::Arc, time::SystemTime};

use crate::{
    config::Config,
    copy::{Answer, CacheStatus, Fetched, Lookup, OriginState, Policy, Received, SourceFetch},
    egress::{Resolver, ResolverError, Roots, RootsError},
    explanation::FetchRecord,
    fetch::{Document, LookupError, Name, Requester, Traced},
    origin::Origin,
    upstream::Origins,
};

use self::way::Way;
use super::progress::Progress;

/// A fetch and its result.
#[derive(Debug)]
pub struct Live {
    pub traced: Traced,
    pub policy: Policy,
    /// When the fetch ended.
    pub at: SystemTime,
    state: Arc<OriginState>,
}

/// Why robotgate could not start a fetch. A failed fetch is not such an error, because robotgate decides by it.
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

/// Fetches the robots.txt of `origin` with `config`, which takes at most `robots.fetch-timeout`.
/// Shows progress at a terminal if it takes long.
///
/// # Errors
/// Fails if the name servers or the root certificates cannot be loaded.
pub fn fetch(config: &Config, origin: &Origin) -> Result<Live, LiveError> {
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
        let text = format!("fetching {}", origin.robots_url());
        let _progress = Progress::begin(move || text.clone());
        Ok::<_, LiveError>(fetcher.trace(&permit, &Document::ROBOTS_TXT, origin, None).await)
    })?;
    Ok(Live::new(traced, config.robots.policy, SystemTime::now()))
}

// === impl Live ===

impl Live {
    fn new(traced: Traced, policy: Policy, at: SystemTime) -> Self {
        let fetched = &traced.fetched;
        let meaning = fetched.meaning(&policy, at);
        let (status, freshness) = (fetched.status(), fetched.freshness());
        Self {
            state: Arc::new(OriginState::unknown().after(meaning, status, freshness, at, 0.0, &policy)),
            traced,
            policy,
            at,
        }
    }

    /// Returns the lookup that the proxy would have got from the same fetch.
    pub(super) fn lookup(&self) -> Lookup {
        Lookup {
            state: self.state.clone(),
            status: CacheStatus::Miss,
            waited: self.traced.took,
            at: self.at,
            pending: false,
            tally: Arc::default(),
        }
    }

    /// Returns the answer after the fetch, for an origin about which nothing was known before.
    pub fn answer(&self) -> Answer<'_> {
        self.state.answer(self.at, &self.policy)
    }

    /// Returns the status that decides, and when it expires.
    pub fn source_fetch(&self) -> SourceFetch {
        self.state.source_fetch(self.at, &self.policy)
    }

    /// Returns the robots.txt, if the fetch returned one.
    pub fn body(&self) -> Option<&[u8]> {
        self.rules().map(|received| &*received.body)
    }

    /// Returns the same as [`body`](Self::body) and the bytes after it that were read. The result is longer than
    /// [`LIMIT`](crate::robots::LIMIT) if the robots.txt is.
    pub fn body_as_read(&self) -> Option<Vec<u8>> {
        self.rules()
            .map(|received| [&*received.body, &received.cut_off].concat())
    }

    /// Returns whether only a part of the robots.txt is used.
    pub fn is_cut(&self) -> bool {
        self.rules().is_some_and(|received| !received.cut_off.is_empty())
    }

    /// Returns in words whether redirects led in a circle or were too many; `None` if neither.
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

    /// Returns a value that displays the fetch, in lines for a person.
    pub fn way(&self) -> impl Display {
        Way(self)
    }

    /// Returns the record of the fetch for programs.
    pub(super) fn record(&self) -> FetchRecord<'_> {
        self.into()
    }

    /// Returns the response, if it has rules.
    fn rules(&self) -> Option<&Received> {
        match (&self.traced.fetched, self.answer()) {
            (Fetched::Received(received), Answer::Rules(_)) => Some(received),
            _ => None,
        }
    }
}
