//! Keeps the `tdmrep.json` files of sites in the same way as their robots.txt files: in a [`Store`] of their own.
//! It shares the file on disk with the store of the robots.txt files. robotgate needs `tdmrep.json` files only if a bot
//! has the purpose of text and data mining, and if the configuration does not switch them off.
//!
//! [`crate::decision`] says which decisions need the file.

use std::{sync::Arc, time::SystemTime};

use async_trait::async_trait;

use super::{
    fetching::{LoggedFetcher, MAX_ERROR, error_of},
    generation::Generation,
};
use crate::{
    audit::{Json, Line, Reserved, TdmrepRecord},
    config::Config,
    copy::{Fetched, Lookup, Meaning, OriginState, Policy, RobotsCopy, SiteDocument},
    fetch::{Fetch, FetchPermit, FinishedFetch, LookupError, Requester, SharedCopy, Traced},
    fleet::Fleet,
    metrics::FetchResult,
    origin::Origin,
    ratelimited::ratelimited,
    store::{Query, Store},
    text::{Timestamp, micros, plain_message},
    usage::{Purpose, VocabularyPolicy},
};

/// The `tdmrep.json` files of all sites, and how to fetch them.
pub(super) struct TdmrepFiles {
    pub(super) store: Arc<Store>,
    fetcher: Arc<TdmrepFetcher>,
}

/// Fetches `tdmrep.json` files under the same limits as robots.txt files, and logs each fetch.
struct TdmrepFetcher(Arc<LoggedFetcher>);

/// How `cache.max-bytes` is divided between two kinds of files.
pub(super) struct MemoryShares {
    /// Bytes for the robots.txt files.
    pub(super) robots: u64,
    /// Bytes for the `tdmrep.json` files. 0 if robotgate does not need them.
    pub(super) tdmrep: u64,
}

// === impl TdmrepFiles ===

impl TdmrepFiles {
    /// Returns the `tdmrep.json` files for `config`, or `None` if `config` needs none. Takes over the store of
    /// `before`, if there is one. Otherwise creates a store, whose fetches end together with those of the store
    /// `robots`.
    pub(super) fn new(
        config: &Config,
        before: Option<&Self>,
        robots: &Store,
        fetcher: &Arc<LoggedFetcher>,
    ) -> Option<Self> {
        let bytes = MemoryShares::of(config).tdmrep;
        let store = || Arc::new(Store::beside(robots, &SiteDocument::TDMREP, bytes));
        (bytes > 0).then(|| Self {
            store: before.map_or_else(store, |before| before.store.clone()),
            fetcher: Arc::new(TdmrepFetcher(fetcher.clone())),
        })
    }

    /// Looks up the `tdmrep.json` of `origin`, and fetches it first if necessary.
    ///
    /// # Errors
    /// Fails if a fetch is needed but cannot start, and the origin is not the cause.
    pub(super) async fn look_up(
        &self,
        generation: &Generation,
        requester: Requester,
        origin: &Origin,
    ) -> Result<Lookup, LookupError> {
        let query = Query {
            origin,
            fetcher: &self.fetcher,
            policy: &generation.terms.policy,
            requester,
        };
        let found = self.store.lookup(&query, generation.config.robots.wait).await;
        found.map(|(lookup, _)| lookup)
    }
}

// === impl MemoryShares ===

impl MemoryShares {
    pub(super) fn of(config: &Config) -> Self {
        let all = config.cache.max_bytes;
        let is_read = config.usage.tdmrep != VocabularyPolicy::Off
            && config.bots.iter().any(|bot| bot.purposes.contains(Purpose::Tdm));
        let tdmrep = match is_read {
            true => (all / 8).max(MIN_BYTES.min(all / 2)),
            false => 0,
        };
        Self {
            robots: all - tdmrep,
            tdmrep,
        }
    }
}

// === impl TdmrepFetcher ===

#[async_trait]
impl Fetch for TdmrepFetcher {
    type Reservation = Reserved;

    fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError> {
        self.0.enter(requester)
    }

    async fn reserve(&self) -> Result<Reserved, LookupError> {
        self.0.reserve().await
    }

    async fn fetch(&self, permit: &FetchPermit, origin: &Origin, etag: Option<&str>) -> Traced {
        self.0.trace(permit, &SiteDocument::TDMREP, origin, etag).await
    }

    fn meaning(fetched: &Fetched, policy: &Policy, at: SystemTime) -> Meaning {
        fetched.meaning_as_tdmrep(SiteDocument::TDMREP.max_bytes, policy, at)
    }

    async fn store_evidence(&self, copy: &RobotsCopy) -> Result<(), LookupError> {
        self.0.store_evidence(copy).await
    }

    fn check_evidence(&self) -> Result<(), LookupError> {
        self.0.check_evidence()
    }

    fn finished(&self, finished: &FinishedFetch<'_>, reservation: Reserved) {
        self.0
            .metrics
            .fetched_tdmrep(FetchResult::from(&finished.traced.fetched));
        reservation.append(&self.line(finished));
    }

    fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.0.fleet.as_ref()
    }

    fn took_shared_copy(&self, shared: &SharedCopy<'_>, reservation: Reserved) {
        reservation.append(&self.shared_line(shared));
    }
}

impl TdmrepFetcher {
    fn line(&self, finished: &FinishedFetch<'_>) -> Line {
        let FinishedFetch {
            origin,
            traced,
            before,
            after,
            at,
            policy,
        } = *finished;
        let bytes = match &traced.fetched {
            Fetched::Received(received) => Some(received.bytes()),
            _ => None,
        };
        let is_too_long = bytes.is_some_and(|bytes| bytes > SiteDocument::TDMREP.max_bytes);
        let error = error_of(traced, after).or_else(|| is_too_long.then(|| "it is longer than 1 MiB".to_owned()));
        if let Some(error) = &error {
            ratelimited!(info, %origin, %error, "the tdmrep.json could not be fetched");
        }
        let states = [before, after];
        TdmrepRecord {
            redirects: self.0.redirects(traced),
            status: traced.status(),
            upstream: traced.upstream().map(|address| address.to_string()),
            bytes,
            duration_us: Some(micros(traced.took)),
            error: error.as_deref().map(|error| plain_message(error, MAX_ERROR)).as_deref(),
            ..self.record(
                &origin.to_string(),
                &SiteDocument::TDMREP.name(origin),
                states,
                at,
                policy,
            )
        }
        .line()
    }

    fn shared_line(&self, shared: &SharedCopy<'_>) -> Line {
        let SharedCopy {
            origin,
            before,
            after,
            at,
            policy,
        } = *shared;
        TdmrepRecord {
            source: "fleet",
            fetched: after.last_fetch().map(Timestamp),
            ..self.record(
                &origin.to_string(),
                &SiteDocument::TDMREP.name(origin),
                [before, after],
                at,
                policy,
            )
        }
        .line()
    }

    /// Returns an audit log record about a fetched `tdmrep.json`, without the fields about the response. `states` are
    /// what was known of the origin before and after the fetch.
    fn record<'a>(
        &'a self,
        origin: &'a str,
        url: &'a str,
        states: [&OriginState; 2],
        at: SystemTime,
        policy: &Policy,
    ) -> TdmrepRecord<'a> {
        let [before, after] = states;
        TdmrepRecord {
            time: Timestamp(at),
            origin,
            tdmrep_url: url,
            source: "site",
            fetched: Some(Timestamp(at)),
            redirects: Json(Vec::new()),
            status: None,
            upstream: None,
            bytes: None,
            duration_us: None,
            error: None,
            held: holds(before),
            holds: holds(after),
            held_sha256: before.current().map(|copy| copy.sha256),
            tdmrep_sha256: after.current().map(|copy| copy.sha256),
            entries: after.current().and_then(|copy| Some(copy.tdmrep.as_ref()?.len())),
            tdmrep_expires: after.source_fetch(at, policy).expires.map(Timestamp),
            failing_since: after.failing_since().map(Timestamp),
            config: self.0.config,
            instance: self.0.instance.as_str(),
        }
    }
}

/// Returns what robotgate uses as the origin's `tdmrep.json` in this state: the file, or that there is none. While the
/// site fails, its last answer is used. Returns `None` if nothing is known.
fn holds(state: &OriginState) -> Option<&'static str> {
    match (state.current(), state.answered()) {
        (Some(_), _) => Some("file"),
        (None, Some(_)) => Some("none"),
        (None, None) => state.is_known().then_some("unreachable"),
    }
}

/// Minimum memory for the `tdmrep.json` files, unless `cache.max-bytes` is very small. Several of the largest files
/// have to fit, or each request would fetch its file again.
const MIN_BYTES: u64 = 8 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bot_that_mines_needs_memory_for_the_files() {
        let mines = "[[bot]]\nname = 'm'\nuser-agents = ['M']\npurposes = ['tdm']\n";
        let off = format!("usage.tdmrep = 'off'\n{mines}");
        let little = format!("cache.max-bytes = '1MiB'\n{mines}");
        let some = format!("cache.max-bytes = '32MiB'\n{mines}");
        for (text, robots, tdmrep) in [
            ("", 256 << 20, 0),
            (&off, 256 << 20, 0),
            (&*mines.replace("tdm", "search"), 256 << 20, 0),
            (mines, 224 << 20, 32 << 20),
            (&some, 24 << 20, 8 << 20),
            (&little, 512 << 10, 512 << 10),
        ] {
            let config = Config::parse("robotgate.toml", text, std::path::Path::new("/")).expect("valid");
            let shares = MemoryShares::of(&config);
            assert_eq!((shares.robots, shares.tdmrep), (robots, tdmrep), "{text}");
        }
    }
}
