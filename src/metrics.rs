//! Metrics: counters, gauges and histograms, and their exposition for Prometheus.
//!
//! While a request is served, counting only updates atomics: it never locks, allocates, formats or reads a clock. The
//! text is produced at each scrape, together with a [`Snapshot`] of values that are read only then. Labels never
//! contain a host and have few values: closed lists, or the names of configured bots.

mod bots;
mod change_effect;
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
    change_effect::ChangeEffect,
    fetch_result::FetchResult,
    label::{Class, GaugeGuard, Listener, Method, Outcome, Tunnel},
    page::Format,
    process::Process,
};
use crate::{
    audit::AuditCounts,
    decision::{Reason, Verdict},
    evidence::EvidenceState,
    fleet,
    seal::SealState,
    store::Memory,
    text::micros_since_1970,
    trust::RejectionKind,
    upstream::ProxyError,
    usage::{Purpose, UseStatement, Vocabulary, VocabularyPolicy},
};

/// Everything counted since the start, across reloads.
#[derive(Debug)]
pub struct Metrics {
    started: SystemTime,
    /// Decisions by the name of the bot. Locked only during a reload or a scrape.
    bots: Mutex<BTreeMap<Arc<str>, Arc<Decisions>>>,
    /// Decisions about bots that are not configured, and about those beyond [`MAX_BOTS`].
    other: Arc<Decisions>,
    /// Decisions about requests that name no bot.
    unidentified: Arc<Decisions>,
    /// Requests by outcome, for each method.
    requests: [Counts<Outcome>; Method::COUNT],
    responses: Counts<Class>,
    /// Withdrawn responses by the purpose that they forbid, for each vocabulary.
    withdrawn: [Counts<Purpose>; Vocabulary::COUNT],
    /// Decisions by the purpose that the site forbids, for each vocabulary; first those that only report, then those
    /// that enforce.
    forbidden: [[Counts<Purpose>; Vocabulary::COUNT]; 2],
    errors: Counts<ProxyError>,
    malformed: AtomicU64,
    /// Bytes of content from and to clients.
    bytes: ShardedCounters,
    decision: Histogram,
    robots_wait: Histogram,
    pace_wait: Histogram,
    exchange: Histogram,
    audit_wait: Histogram,
    fetches: Counts<FetchResult>,
    fetch: Histogram,
    robots_changes: Counts<ChangeEffect>,
    connections: Gauges<Listener>,
    connections_accepted: Counts<Listener>,
    tunnels: Gauges<Tunnel>,
    tunnels_opened: Counts<Tunnel>,
    distrust: Counts<RejectionKind>,
    /// Counters of the audit logs.
    pub audit: Arc<AuditCounts>,
    pub reloads: Reloads,
    /// Counters of the fleet.
    pub fleet: Arc<fleet::Counts>,
    /// Number of leaf certificates minted by any authority.
    pub leaves_minted: Arc<AtomicU64>,
}

/// Results of reloads. Times are in microseconds since 1970. At the start, both times are set as if a reload had
/// succeeded then, but no reload is counted.
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
    /// The status that the client received, if any.
    pub status: Option<u16>,
    pub error: Option<ProxyError>,
    /// Bytes of content from and to the client.
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Time from the request's head to the end. `None` for a tunnel or a WebSocket, because its users decide how long
    /// it lasts.
    pub took: Option<Duration>,
}

/// Values read at scrape time.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The generation of the configuration.
    pub generation: u64,
    pub draining: bool,
    /// Number of times that each limit was exceeded, by the limit's key in `[proxy]`.
    pub limits: Vec<(&'static str, u64)>,
    pub memory: Memory,
    /// Number of requests that wait for their turn at a site.
    pub pace_waiting: usize,
    /// Number of origins in memory for each state of their robots.txt.
    pub copies: Vec<(&'static str, u64)>,
    /// Statistics of the copies on disk. `None` if the copies are only in memory.
    pub disk: Option<DiskUse>,
    /// Whether copies that should be on disk are only in memory, or cannot be written now.
    pub disk_fails: bool,
    /// The store of evidence, if there is one.
    pub evidence: Option<EvidenceState>,
    /// The sealing of the audit log, if the proxy seals it.
    pub seal: Option<SealState>,
    /// Whether the server of the fleet is used; `None` without a fleet.
    pub fleet_connected: Option<bool>,
    /// Number of cached leaf certificates.
    pub leaves: usize,
    /// Maximum number of concurrent connections, and of concurrent fetches.
    pub connections_max: usize,
    pub fetches_max: usize,
    /// When the authority's certificate expires, if there is an authority.
    pub authority_ends: Option<SystemTime>,
    /// Number of bytes that wait to be written to the audit log, and whether its output accepts no bytes now.
    pub audit_waiting_bytes: usize,
    pub audit_stalled: bool,
    pub process: Process,
}

/// Statistics of the copies on disk.
#[derive(Debug, Clone, Copy)]
pub struct DiskUse {
    /// Number of bytes of texts and records, and its maximum. `None` while the file cannot be used.
    pub bytes: Option<u64>,
    pub max_bytes: u64,
    /// Number of origins that wait to be written.
    pub waiting: usize,
    /// Number of failed writes.
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
            withdrawn: std::array::from_fn(|_| Counts::default()),
            forbidden: std::array::from_fn(|_| std::array::from_fn(|_| Counts::default())),
            errors: Counts::default(),
            malformed: AtomicU64::default(),
            bytes: ShardedCounters::new(2),
            decision: Histogram::new(&histogram::OF_WORK),
            robots_wait: Histogram::new(&histogram::OF_NETWORK),
            pace_wait: Histogram::new(&histogram::OF_NETWORK),
            exchange: Histogram::new(&histogram::OF_NETWORK),
            audit_wait: Histogram::new(&histogram::OF_DISK),
            fetches: Counts::default(),
            fetch: Histogram::new(&histogram::OF_NETWORK),
            robots_changes: Counts::default(),
            connections: Gauges::default(),
            connections_accepted: Counts::default(),
            tunnels: Gauges::default(),
            tunnels_opened: Counts::default(),
            distrust: Counts::default(),
            audit: Arc::default(),
            reloads: Reloads::default(),
            fleet: Arc::default(),
            leaves_minted: Arc::default(),
        }
    }
}

/// Methods that count an event.
impl Metrics {
    /// Records how long a decision took, not including `waited`, the time that the request waited for a robots.txt.
    /// `waited` is `None` if there was no lookup.
    pub fn decision_took(&self, took: Duration, waited: Option<Duration>) {
        self.decision.observe(took);
        if let Some(waited) = waited {
            self.robots_wait.observe(waited);
        }
    }

    /// Records how long a request waited for its turn at a site.
    pub fn pace_took(&self, waited: Duration) {
        self.pace_wait.observe(waited);
    }

    /// Records how long a request waited until its decision was in the audit log.
    pub fn audit_took(&self, waited: Duration) {
        self.audit_wait.observe(waited);
    }

    /// Counts what a site forbids a bot for one request: what `said` forbids, each purpose only once for a vocabulary,
    /// and not if `counted` forbids it as well.
    pub fn forbidden(&self, counted: &[UseStatement], said: &[UseStatement]) {
        for (at, statement) in said.iter().enumerate().filter(|(_, statement)| !statement.allowed) {
            let is_same = |other: &UseStatement| {
                (other.vocabulary, other.purpose, other.allowed) == (statement.vocabulary, statement.purpose, false)
            };
            if counted.iter().chain(&said[..at]).any(is_same) {
                continue;
            }
            let is_enforced = statement.policy == VocabularyPolicy::Enforce;
            self.forbidden[usize::from(is_enforced)][statement.vocabulary.index()].add(statement.purpose);
        }
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

    /// Counts an error response that was sent before an exchange began.
    pub fn early_error(&self, error: ProxyError, status: u16) {
        self.errors.add(error);
        if let Some(class) = Class::of(status) {
            self.responses.add(class);
        }
    }

    /// Counts an origin's response that the bot did not get because of `statement`.
    pub fn withdrawn(&self, statement: &UseStatement) {
        self.withdrawn[statement.vocabulary.index()].add(statement.purpose);
    }

    /// Counts a request that was refused as malformed.
    pub fn malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a fetch of a robots.txt. `took` is the time since the fetch started.
    pub fn fetched(&self, result: FetchResult, took: Duration) {
        self.fetches.add(result);
        self.fetch.observe(took);
    }

    /// Counts a robots.txt that differs from the previous one.
    pub fn robots_changed(&self, effect: ChangeEffect) {
        self.robots_changes.add(effect);
    }

    /// Counts a client connection as open until the result is dropped.
    #[must_use]
    pub fn connection_opened(&self, listener: Listener) -> GaugeGuard {
        self.connections_accepted.add(listener);
        self.connections.enter(listener)
    }

    /// Counts a tunnel as open until the result is dropped.
    #[must_use]
    pub fn tunnel_opened(&self, tunnel: Tunnel) -> GaugeGuard {
        self.tunnels_opened.add(tunnel);
        self.tunnels.enter(tunnel)
    }

    /// Counts a client that refused the authority's certificate or disconnected after it received the certificate.
    pub fn distrusted(&self, kind: RejectionKind) {
        self.distrust.add(kind);
    }

    /// Returns the counters of the decisions about the bot with this name.
    fn decisions_of(&self, name: &Arc<str>) -> Arc<Decisions> {
        // A bot whose name is one of these label values shares their series, because no two series can have the same
        // labels.
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

/// Methods that read the counters.
impl Metrics {
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// Returns the number of decisions with this verdict.
    pub fn decisions(&self, verdict: Verdict) -> u64 {
        self.all_decisions()
            .iter()
            .map(|(_, decisions)| decisions.of(verdict))
            .sum()
    }

    /// Returns the number of decisions by bot, verdict and reason, without those that never occurred.
    pub fn decision_totals(&self) -> Vec<(Arc<str>, Verdict, Reason, u64)> {
        let mut totals: BTreeMap<_, u64> = BTreeMap::new();
        for (bot, decisions) in self.all_decisions() {
            for counted in decisions.iter().filter(|counted| counted.count > 0) {
                let result = (bot.clone(), counted.verdict as usize, counted.reason as usize);
                *totals.entry(result).or_default() += counted.count;
            }
        }
        let totals = totals
            .into_iter()
            .map(|((bot, verdict, reason), count)| (bot, Verdict::ALL[verdict], Reason::ALL[reason], count));
        totals.collect()
    }

    /// Returns the number of completed requests.
    pub fn requests(&self) -> u64 {
        self.requests.iter().map(Counts::total).sum()
    }

    /// Returns the number of exchanges that robotgate itself ended, for example because it was stopped.
    pub fn aborted(&self) -> u64 {
        let mut counts = self.errors.iter();
        counts
            .find(|(error, _)| *error == ProxyError::Aborted)
            .map_or(0, |(_, count)| count)
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> u64 {
        self.connections.total()
    }

    /// Returns the number of open tunnels of all kinds.
    pub fn tunnels(&self) -> u64 {
        self.tunnels.total()
    }

    /// Formats all metrics, including those of `snapshot`.
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
    /// Records a reload that ended at `at`. `went_well` means that the new configuration is in use.
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

/// Indices of the counters in `Metrics::bytes`.
const RECEIVED: usize = 0;
const SENT: usize = 1;
/// Maximum number of bots with their own label value. Each needs a series for every combination of the other labels
/// that occurs.
const MAX_BOTS: usize = 1000;
/// Label values for bots without their own label and for requests that name no bot.
const OTHER: &str = "other";
const NONE: &str = "none";

#[cfg(test)]
mod tests;
