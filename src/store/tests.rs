mod crowd;
mod eviction;
mod fleet;
mod forget;
mod recall;
mod refresh;
mod reload;
mod turns;

use std::{sync::LazyLock, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use super::*;
use crate::robots::Profile;
use crate::{
    copy::{CacheStatus, FetchError, Fetched, Freshness, Lookup, OriginResponse},
    decision::{Reason, Verdict, rules_of},
    fetch::{Fetch, FetchLimiter, FetchPermit, FinishedFetch, LookupError, Name, SharedCopy, Traced},
    fleet::Fleet,
    origin::{HostPort, Scheme},
};

/// A fetcher whose fetches last until the test ends them with a result.
struct Puppet {
    calls: mpsc::UnboundedSender<Call>,
    limiter: Arc<FetchLimiter>,
    /// Whether the audit log has room for a record.
    logs: watch::Sender<bool>,
    /// The origin of each recorded fetch, and its error.
    records: Mutex<Vec<(Origin, Option<FetchError>)>>,
    fleet: Option<Arc<Fleet>>,
}

struct Calls(mpsc::UnboundedReceiver<Call>);

/// A fetch that has started. The fetch panics if the test drops this value.
struct Call {
    origin: Origin,
    etag: Option<String>,
    end: oneshot::Sender<Fetched>,
}

#[derive(Clone)]
struct Bench {
    store: Arc<Store>,
    puppet: Arc<Puppet>,
}

#[async_trait]
impl Fetch for Puppet {
    type Reservation = ();

    fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError> {
        self.limiter.enter(requester)
    }

    async fn reserve(&self) -> Result<(), LookupError> {
        let waited = self.logs.subscribe().wait_for(|logs| *logs).await.map(drop);
        waited.map_err(|_| LookupError::NotLogged)
    }

    async fn fetch(
        &self,
        _permit: &FetchPermit,
        _document: &'static SiteDocument,
        origin: &Origin,
        etag: Option<&str>,
    ) -> Traced {
        let (end, ended) = oneshot::channel();
        let call = Call {
            origin: origin.clone(),
            etag: etag.map(str::to_owned),
            end,
        };
        // Fails if the test has dropped the receiver. `end` is then dropped too, so the fetch panics below.
        let _ = self.calls.send(call);
        Traced {
            fetched: ended.await.expect("the test lets this fetch panic"),
            hops: Vec::new(),
            took: Duration::ZERO,
        }
    }

    fn finished(&self, finished: &FinishedFetch<'_>, _reservation: ()) {
        let error = match &finished.traced.fetched {
            Fetched::Failed(failure) => Some(failure.error.clone()),
            _ => None,
        };
        let mut records = self.records.lock();
        records.push((finished.origin.clone(), error));
    }

    fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.fleet.as_ref()
    }

    fn took_shared_copy(&self, shared: &SharedCopy<'_>, _reservation: ()) {
        let mut records = self.records.lock();
        records.push((shared.origin.clone(), None));
    }
}

impl Puppet {
    fn records(&self) -> Vec<(Origin, Option<FetchError>)> {
        self.records.lock().clone()
    }
}

impl Calls {
    async fn next(&mut self) -> Call {
        self.0.recv().await.expect("the puppet is there")
    }

    async fn none_more(&mut self) -> bool {
        settle().await;
        self.0.is_empty()
    }
}

impl Call {
    fn ends(self, fetched: Fetched) {
        self.end.send(fetched).expect("the fetch waits");
    }

    fn panics(self) {
        drop(self.end);
    }
}

impl Bench {
    fn new() -> (Self, Calls) {
        Self::holding(256 * 1024 * 1024)
    }

    fn holding(max_bytes: u64) -> (Self, Calls) {
        Self::with(Store::new(max_bytes, None), 1000)
    }

    fn with_permits(permits: usize) -> (Self, Calls) {
        Self::with(Store::new(256 * 1024 * 1024, None), permits)
    }

    fn with(store: Store, permits: usize) -> (Self, Calls) {
        Self::within(None, store, permits)
    }

    fn within(fleet: Option<Arc<Fleet>>, store: Store, permits: usize) -> (Self, Calls) {
        let (calls, receiver) = mpsc::unbounded_channel();
        let bench = Self {
            store: Arc::new(store),
            puppet: Arc::new(Puppet {
                calls,
                limiter: Arc::new(FetchLimiter::new(permits)),
                logs: watch::Sender::new(true),
                records: Mutex::default(),
                fleet,
            }),
        };
        (bench, Calls(receiver))
    }

    async fn lookup(&self, origin: &Origin) -> Lookup {
        self.lookup_under(&POLICY, origin).await
    }

    async fn lookup_under(&self, policy: &Policy, origin: &Origin) -> Lookup {
        self.lookup_for(client(1), policy, origin)
            .await
            .expect("a fetch can begin")
    }

    async fn lookup_for(&self, requester: Requester, policy: &Policy, origin: &Origin) -> Result<Lookup, LookupError> {
        let query = Query {
            origin,
            fetcher: &self.puppet,
            policy,
            requester,
        };
        let found = self.store.lookup(&query, WAIT).await;
        found.map(|(lookup, _)| lookup)
    }

    fn spawn(&self, origin: &Origin) -> JoinHandle<Lookup> {
        let (bench, origin) = (self.clone(), origin.clone());
        tokio::spawn(async move { bench.lookup(&origin).await })
    }

    fn spawn_for(&self, requester: Requester, origin: &Origin) -> JoinHandle<Result<Lookup, LookupError>> {
        let (bench, origin) = (self.clone(), origin.clone());
        tokio::spawn(async move { bench.lookup_for(requester, &POLICY, &origin).await })
    }

    async fn fetch(&self, calls: &mut Calls, origin: &Origin, fetched: Fetched) -> Lookup {
        let lookup = self.spawn(origin);
        calls.next().await.ends(fetched);
        lookup.await.expect("a lookup")
    }

    /// Sets the state of `origin` as if a fetch had ended with `fetched` this long `ago`.
    fn known_since(&self, origin: &Origin, ago: Duration, fetched: &Fetched) {
        let cached = self.store.cached(origin);
        let then = SystemTime::now() - ago;
        let meaning = fetched.meaning(&POLICY, then);
        let state = cached
            .state
            .load()
            .after(meaning, 200, fetched.freshness(), then, 0.0, &POLICY);
        cached.state.store(Arc::new(state));
    }
}

/// Waits until no other task can make progress: only then does tokio's paused clock advance.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn client(number: u8) -> Requester {
    Requester {
        name: Name::Client([192, 0, 2, number].into()),
        max_fetches: 2000,
    }
}

fn origin(host: &str) -> Origin {
    Origin::new(Scheme::Https, HostPort::parse(host.as_bytes()).expect("a host"))
}

fn tagged(body: &str, etag: &str) -> Fetched {
    match rules(body) {
        Fetched::Response(received) => Fetched::Response(OriginResponse {
            redirected: false,
            etag: Some(etag.into()),
            ..received
        }),
        other => other,
    }
}

fn rules(body: &str) -> Fetched {
    answered(200, body)
}

fn answered(status: u16, body: &str) -> Fetched {
    Fetched::Response(OriginResponse::new(status, body))
}

/// Returns whether `body` is the robots.txt by which robotgate decides.
fn holds(lookup: &Lookup, body: &str) -> bool {
    let copy = lookup.answer(&POLICY).copy().cloned();
    copy.is_some_and(|copy| {
        copy.sha256 == crate::copy::RobotsCopy::new(Profile::Google, body.as_bytes(), lookup.at).sha256
    })
}

fn verdict(lookup: &Lookup) -> Option<(Verdict, Reason)> {
    rules_of(lookup.answer(&POLICY)).err()
}

const HOUR: Duration = Duration::from_secs(60 * 60);
const WAIT: Duration = Duration::from_secs(5);
static POLICY: LazyLock<Policy> = LazyLock::new(Policy::default);
const OLD: &str = "User-agent: *\nDisallow: /old\n";
const NEW: &str = "User-agent: *\nDisallow: /new\n";

#[tokio::test(start_paused = true)]
async fn the_first_lookup_fetches_and_the_next_uses_the_copy() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let lookup = bench.fetch(&mut calls, &site, rules(OLD)).await;
    assert_eq!((lookup.status, lookup.pending), (CacheStatus::Miss, false));
    assert!(holds(&lookup, OLD));

    let lookup = bench.lookup(&site).await;
    assert_eq!((lookup.status, lookup.pending), (CacheStatus::Hit, false));
    assert_eq!(lookup.waited, Duration::ZERO);
    assert!(holds(&lookup, OLD));
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn every_result_of_a_fetch_is_kept() {
    let failed = || Fetched::Failed(FetchError::Timeout(WAIT).into());
    for (fetched, says) in [
        (answered(404, ""), (Verdict::Allow, Reason::NoRobots)),
        (
            Fetched::TooManyRedirects { status: 302 },
            (Verdict::Allow, Reason::NoRobots),
        ),
        (answered(500, "Page not found"), (Verdict::Allow, Reason::Soft404)),
        (answered(503, ""), (Verdict::Deny, Reason::Unreachable)),
        (failed(), (Verdict::Deny, Reason::Unreachable)),
    ] {
        let (bench, mut calls) = Bench::new();
        let site = origin("a.example");
        let lookup = bench.fetch(&mut calls, &site, fetched.clone()).await;
        assert_eq!(verdict(&lookup), Some(says), "{fetched:?}");
        let lookup = bench.lookup(&site).await;
        assert_eq!(lookup.status, CacheStatus::Hit, "{fetched:?}");
        assert_eq!(verdict(&lookup), Some(says), "{fetched:?}");
        assert!(calls.none_more().await, "{fetched:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_origin_is_fetched_separately() {
    let (bench, mut calls) = Bench::new();
    let names = ["a.example", "b.example", "a.example:8443"];
    let sites = names.map(origin);
    let lookups = [0, 1, 2].map(|at| bench.spawn(&sites[at]));
    let begun = [calls.next().await, calls.next().await, calls.next().await];
    for site in &sites {
        assert!(begun.iter().any(|call| call.origin == *site), "{site}");
    }
    let [first, second, third] = begun;
    // The fetch that started last ends first, and its lookup does not wait for the others.
    let text = format!("User-agent: *\nDisallow: /{}\n", third.origin);
    let last = third.origin.clone();
    third.ends(rules(&text));
    assert!(holds(&bench.lookup(&last).await, &text));
    assert_eq!(lookups.iter().filter(|lookup| lookup.is_finished()).count(), 1);
    first.ends(rules(OLD));
    second.ends(rules(OLD));
    for lookup in lookups {
        assert_eq!(lookup.await.expect("a lookup").status, CacheStatus::Miss);
    }
    assert_eq!(bench.store.memory().origins, 3);
}

#[test]
fn cache_statuses_have_their_names_in_the_log() {
    let names = [
        (CacheStatus::Hit, "hit"),
        (CacheStatus::Miss, "miss"),
        (CacheStatus::Stale, "stale"),
        (CacheStatus::Collapsed, "collapsed"),
        (CacheStatus::Queued, "queued"),
    ];
    for (status, name) in names {
        assert_eq!(status.as_str(), name);
    }
}
