//! How much of what happens: counters, gauges and histograms, and the text that Prometheus reads of them.
//!
//! What counts on the way of a request is a few atomics: it never locks, allocates, formats or reads a clock. The text is
//! made when somebody asks for it, and what only has to be looked up then comes as a [`Snapshot`]. No label says a host,
//! and each has few values: those of closed lists, or the names of configured bots.

mod bots;
mod fetch_result;
mod histogram;
mod label;
mod page;
mod process;
mod sharded;
mod text;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use self::{
    bots::Decisions,
    histogram::Histogram,
    label::{Counts, Gauges, Label as _},
    sharded::ShardedCounters,
};
pub use self::{
    bots::Meter,
    fetch_result::FetchResult,
    label::{Class, Listener, Method, Outcome, Present, Tunnel},
    page::Format,
    process::Process,
};
use crate::{
    audit::AuditCounts, decision::Verdict, store::Memory, text::micros_since_1970, trust::RejectionKind,
    upstream::ProxyError,
};

/// What has been counted since the start, over all reloads.
#[derive(Debug)]
pub struct Metrics {
    started: SystemTime,
    /// Decisions by the name of the bot. Locked at a reload and a scrape.
    bots: Mutex<BTreeMap<Arc<str>, Arc<Decisions>>>,
    /// Of bots that are not configured, and of those past [`MAX_BOTS`].
    other: Arc<Decisions>,
    /// Of those that name no bot.
    unidentified: Arc<Decisions>,
    /// By outcome, for each method.
    requests: [Counts<Outcome>; Method::COUNT],
    responses: Counts<Class>,
    errors: Counts<ProxyError>,
    malformed: AtomicU64,
    /// Bytes of content from clients, and to them.
    bytes: ShardedCounters,
    decision: Histogram,
    robots_wait: Histogram,
    exchange: Histogram,
    audit_wait: Histogram,
    fetches: Counts<FetchResult>,
    fetch: Histogram,
    connections: Gauges<Listener>,
    connections_accepted: Counts<Listener>,
    tunnels: Gauges<Tunnel>,
    tunnels_opened: Counts<Tunnel>,
    distrust: Counts<RejectionKind>,
    /// What the audit logs count.
    pub audit: Arc<AuditCounts>,
    pub reloads: Reloads,
    /// Certificates of hosts that were made, by whichever authority.
    pub leaves_minted: Arc<AtomicU64>,
}

/// What became of reloads. The start counts as one that went well, and for none. Times are microseconds since 1970.
#[derive(Debug)]
pub struct Reloads {
    last: AtomicU64,
    last_good: AtomicU64,
    ok: AtomicU64,
    rejected: AtomicU64,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeEnd {
    pub method: Method,
    pub outcome: Outcome,
    /// The status that the client got, if it got one.
    pub status: Option<u16>,
    pub error: Option<ProxyError>,
    /// Bytes of content from the client, and to it.
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// From the request's head to the end; `None` of a tunnel or a WebSocket, which last as long as somebody wants.
    pub took: Option<Duration>,
}

/// What is looked up when somebody asks.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The configuration's.
    pub generation: u64,
    pub draining: bool,
    /// How often each limit was come over, by its key in `[proxy]`.
    pub limits: Vec<(&'static str, u64)>,
    pub memory: Memory,
    /// Origins in memory by what holds of their robots.txt.
    pub copies: Vec<(&'static str, u64)>,
    /// `None` where the copies are kept in memory alone.
    pub disk: Option<DiskUse>,
    /// Whether they are though they should be on disk, or nothing can be written there now.
    pub disk_fails: bool,
    /// Certificates that are ready.
    pub leaves: usize,
    /// How many connections and fetches there may be at once.
    pub connections_max: usize,
    pub fetches_max: usize,
    /// When the authority's certificate ends, where there is one.
    pub authority_ends: Option<SystemTime>,
    /// Bytes that wait to be written to the audit log, and whether it takes nothing.
    pub audit_waiting_bytes: usize,
    pub audit_stalled: bool,
    pub process: Process,
}

/// The copies on disk.
#[derive(Debug, Clone, Copy)]
pub struct DiskUse {
    /// Bytes of texts and records, and how many there may be. `None` while the file cannot be used.
    pub bytes: Option<u64>,
    pub max_bytes: u64,
    /// Origins that wait to be written.
    pub waiting: usize,
    /// How often nothing could be written.
    pub failures: u64,
}

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started: SystemTime::now(),
            bots: Mutex::default(),
            other: Arc::default(),
            unidentified: Arc::default(),
            requests: std::array::from_fn(|_| Counts::default()),
            responses: Counts::default(),
            errors: Counts::default(),
            malformed: AtomicU64::default(),
            bytes: ShardedCounters::new(2),
            decision: Histogram::new(&histogram::OF_WORK),
            robots_wait: Histogram::new(&histogram::OF_NETWORK),
            exchange: Histogram::new(&histogram::OF_NETWORK),
            audit_wait: Histogram::new(&histogram::OF_DISK),
            fetches: Counts::default(),
            fetch: Histogram::new(&histogram::OF_NETWORK),
            connections: Gauges::default(),
            connections_accepted: Counts::default(),
            tunnels: Gauges::default(),
            tunnels_opened: Counts::default(),
            distrust: Counts::default(),
            audit: Arc::default(),
            reloads: Reloads::default(),
            leaves_minted: Arc::default(),
        }
    }
}

/// Counting.
impl Metrics {
    /// A decision took so long, the wait for a robots.txt not counted, which is `waited` where one was looked up.
    pub fn decision_took(&self, took: Duration, waited: Option<Duration>) {
        self.decision.observe(took);
        if let Some(waited) = waited {
            self.robots_wait.observe(waited);
        }
    }

    /// A request waited so long for its decision to be in the audit log.
    pub fn audit_took(&self, waited: Duration) {
        self.audit_wait.observe(waited);
    }

    pub fn ended(&self, ended: &ExchangeEnd) {
        self.requests[ended.method.index()].add(ended.outcome);
        if let Some(class) = ended.status.and_then(Class::of) {
            self.responses.add(class);
        }
        if let Some(error) = ended.error {
            self.errors.add(error);
        }
        self.bytes.add(RECEIVED, ended.bytes_in);
        self.bytes.add(SENT, ended.bytes_out);
        if let Some(took) = ended.took {
            self.exchange.observe(took);
        }
    }

    /// A client was told of an error before there was an exchange.
    pub fn turned_away(&self, error: ProxyError, status: u16) {
        self.errors.add(error);
        if let Some(class) = Class::of(status) {
            self.responses.add(class);
        }
    }

    /// A request was refused as malformed.
    pub fn malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// A robots.txt was fetched, which took so long from when its turn had come.
    pub fn fetched(&self, result: FetchResult, took: Duration) {
        self.fetches.add(result);
        self.fetch.observe(took);
    }

    /// A client's connection, for as long as what this gives is held.
    #[must_use]
    pub fn connection_opened(&self, listener: Listener) -> Present {
        self.connections_accepted.add(listener);
        self.connections.enter(listener)
    }

    /// As [`connection_opened`](Self::connection_opened), for a tunnel.
    #[must_use]
    pub fn tunnel_opened(&self, tunnel: Tunnel) -> Present {
        self.tunnels_opened.add(tunnel);
        self.tunnels.enter(tunnel)
    }

    /// A client would not take the authority's certificate, or left when it saw it.
    pub fn distrusted(&self, kind: RejectionKind) {
        self.distrust.add(kind);
    }

    /// Where the decisions on the bot of this name are counted.
    fn decisions_of(&self, name: &Arc<str>) -> Arc<Decisions> {
        // Two of one name would be one.
        if **name == *OTHER || **name == *NONE {
            return if **name == *OTHER {
                self.other.clone()
            } else {
                self.unidentified.clone()
            };
        }
        let mut bots = self.bots.lock().unwrap_or_else(PoisonError::into_inner);
        if bots.len() >= MAX_BOTS && !bots.contains_key(name) {
            return self.other.clone();
        }
        bots.entry(name.clone()).or_default().clone()
    }
}

/// Looking.
impl Metrics {
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// Decisions so far.
    pub fn decisions(&self, verdict: Verdict) -> u64 {
        self.all_decisions()
            .iter()
            .map(|(_, decisions)| decisions.of(verdict))
            .sum()
    }

    /// Requests that have ended so far.
    pub fn requests(&self) -> u64 {
        self.requests.iter().map(Counts::total).sum()
    }

    /// Connections that are open.
    pub fn connections(&self) -> u64 {
        self.connections.total()
    }

    /// Tunnels that are open, of all kinds.
    pub fn tunnels(&self) -> u64 {
        self.tunnels.total()
    }

    /// All that is counted, with `snapshot`, as text.
    pub fn text(self: &Arc<Self>, snapshot: Snapshot, format: Format) -> String {
        text::write(self, snapshot, format)
    }

    fn all_decisions(&self) -> Vec<(Arc<str>, Arc<Decisions>)> {
        let fixed = [
            (OTHER.into(), self.other.clone()),
            (NONE.into(), self.unidentified.clone()),
        ];
        let bots = self.bots.lock().unwrap_or_else(PoisonError::into_inner);
        let named = bots.iter().map(|(name, decisions)| (name.clone(), decisions.clone()));
        fixed.into_iter().chain(named).collect()
    }
}

// === impl Reloads ===

impl Default for Reloads {
    fn default() -> Self {
        let now = micros_since_1970(SystemTime::now());
        Self {
            last: now.into(),
            last_good: now.into(),
            ok: AtomicU64::default(),
            rejected: AtomicU64::default(),
        }
    }
}

impl Reloads {
    /// Notes that a reload ended at `at`: another configuration is in force, or it was rejected.
    pub fn note(&self, went_well: bool, at: SystemTime) {
        let at = micros_since_1970(at);
        self.last.store(at, Ordering::Relaxed);
        let count = if went_well {
            self.last_good.store(at, Ordering::Relaxed);
            &self.ok
        } else {
            &self.rejected
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The counters of `Metrics::bytes`.
const RECEIVED: usize = 0;
const SENT: usize = 1;
/// Names of bots that are told apart. A series for each combination that occurs is what they cost.
const MAX_BOTS: usize = 1000;
/// What is not told apart, and who names no bot.
const OTHER: &str = "other";
const NONE: &str = "none";

#[cfg(test)]
mod tests;
