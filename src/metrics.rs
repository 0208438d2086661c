//! Metrics: counters, gauges and histograms, and their text for Prometheus.
//!
//! While a request is served, counting only updates atomics: it never locks, formats or reads a clock, and allocates
//! only when a thread first uses a set of counters. Labels never contain a host: their values are words from fixed
//! lists, the names of configured bots, or the version.

mod bots;
mod histogram;
mod label;
mod page;
mod process;
mod sharded;
mod snapshot;
mod text;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use self::{
    bots::Decisions,
    histogram::Histogram,
    label::{Gauges, Label as _, LabelCounts},
    sharded::ShardedCounters,
};
pub use self::{
    bots::Meter,
    label::{ChangeEffect, Class, FetchResult, GaugeGuard, Listener, Method, Outcome, Tunnel},
    page::Format,
    process::Process,
    snapshot::{DiskUse, Snapshot},
};
use crate::{
    audit::AuditCounts,
    decision::{DecisionKind, Verdict},
    fleet,
    text::micros_since_1970,
    trust::RejectionKind,
    upstream::ProxyError,
    usage::{Purpose, UseStatement, Vocabulary, VocabularyPolicy},
};
use parking_lot::Mutex;

/// Everything that was counted since the start. Reloads do not reset it.
#[derive(Debug)]
pub struct Metrics {
    started: SystemTime,
    /// Never locked while a bot's request is served.
    bots: Mutex<BTreeMap<Arc<str>, Arc<Decisions>>>,
    /// Decisions about all other bots: those that are not configured, and configured ones beyond [`MAX_BOTS`] or with
    /// the name `other`.
    other: Arc<Decisions>,
    unidentified: Arc<Decisions>,
    requests: [LabelCounts<Outcome>; Method::COUNT],
    responses: LabelCounts<Class>,
    /// Responses that robotgate withheld because the site forbids a purpose of the bot.
    withdrawn: [LabelCounts<Purpose>; Vocabulary::COUNT],
    /// Decisions about bots with a purpose that the site forbids. The first list is for vocabularies with the policy
    /// `report`, the second for `enforce`.
    forbidden: [[LabelCounts<Purpose>; Vocabulary::COUNT]; 2],
    errors: LabelCounts<ProxyError>,
    malformed: AtomicU64,
    bytes: ShardedCounters,
    decision: Histogram,
    robots_wait: Histogram,
    pace_wait: Histogram,
    exchange: Histogram,
    audit_wait: Histogram,
    fetches: LabelCounts<FetchResult>,
    tdmrep_fetches: LabelCounts<FetchResult>,
    fetch: Histogram,
    robots_changes: LabelCounts<ChangeEffect>,
    connections: Gauges<Listener>,
    connections_accepted: LabelCounts<Listener>,
    tunnels: Gauges<Tunnel>,
    tunnels_opened: LabelCounts<Tunnel>,
    distrust: LabelCounts<RejectionKind>,
    /// Counters of the lines and bytes that were submitted to the audit log.
    pub audit: Arc<AuditCounts>,
    pub reloads: Reloads,
    /// Counters of the calls to the fleet's server, and of the robots.txt copies from it.
    pub fleet: Arc<fleet::FleetCounts>,
    /// Number of leaf certificates that all authorities together have issued.
    pub leaves_minted: Arc<AtomicU64>,
}

/// The results of configuration reloads. The start sets `last` and `last_good` (microseconds since 1970), but is
/// not counted.
#[derive(Debug)]
pub struct Reloads {
    last: AtomicU64,
    last_good: AtomicU64,
    ok: AtomicU64,
    rejected: AtomicU64,
}

/// What is counted at the end of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeEnd {
    pub method: Method,
    pub outcome: Outcome,
    /// The status that the client received; `None` if it received no response.
    pub status: Option<u16>,
    pub error: Option<ProxyError>,
    /// Bytes of content that robotgate received from the client (`bytes_in`), and sent to it (`bytes_out`).
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Time from the request's head to the end of the exchange; `None` for a tunnel or a WebSocket.
    pub took: Option<Duration>,
}

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started: SystemTime::now(),
            bots: Mutex::default(),
            other: Arc::default(),
            unidentified: Arc::default(),
            requests: std::array::from_fn(|_| LabelCounts::default()),
            responses: LabelCounts::default(),
            withdrawn: std::array::from_fn(|_| LabelCounts::default()),
            forbidden: std::array::from_fn(|_| std::array::from_fn(|_| LabelCounts::default())),
            errors: LabelCounts::default(),
            malformed: AtomicU64::default(),
            bytes: ShardedCounters::new(2),
            decision: Histogram::new(&histogram::OF_WORK),
            robots_wait: Histogram::new(&histogram::OF_NETWORK),
            pace_wait: Histogram::new(&histogram::OF_NETWORK),
            exchange: Histogram::new(&histogram::OF_NETWORK),
            audit_wait: Histogram::new(&histogram::OF_DISK),
            fetches: LabelCounts::default(),
            tdmrep_fetches: LabelCounts::default(),
            fetch: Histogram::new(&histogram::OF_NETWORK),
            robots_changes: LabelCounts::default(),
            connections: Gauges::default(),
            connections_accepted: LabelCounts::default(),
            tunnels: Gauges::default(),
            tunnels_opened: LabelCounts::default(),
            distrust: LabelCounts::default(),
            audit: Arc::default(),
            reloads: Reloads::default(),
            fleet: Arc::default(),
            leaves_minted: Arc::default(),
        }
    }
}

impl Metrics {
    /// Records how long a decision took, without the waits for a robots.txt and a turn. Also records how long the
    /// request `waited` for a robots.txt; `None` if the decision did not look one up.
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

    /// Records how long a request waited until its decision was in the audit log, or until writing the decision failed.
    pub fn audit_took(&self, waited: Duration) {
        self.audit_wait.observe(waited);
    }

    /// Counts a forbidden purpose once for each vocabulary, even if several statements of the vocabulary forbid it.
    fn forbidden(&self, said: &[UseStatement]) {
        for (at, statement) in said.iter().enumerate().filter(|(_, statement)| !statement.allowed) {
            let is_same = |other: &UseStatement| {
                (other.vocabulary, other.purpose, other.allowed) == (statement.vocabulary, statement.purpose, false)
            };
            if said[..at].iter().any(is_same) {
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

    /// Counts an error response to a request that cannot be read or exceeds a limit.
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

    /// Counts a request that was refused because it is malformed.
    pub fn malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a fetch of a `tdmrep.json`.
    pub fn fetched_tdmrep(&self, result: FetchResult) {
        self.tdmrep_fetches.add(result);
    }

    /// Counts a fetch of a robots.txt. `took` is the time since the fetch started.
    pub fn fetched(&self, result: FetchResult, took: Duration) {
        self.fetches.add(result);
        self.fetch.observe(took);
    }

    /// Counts a robots.txt that has changed, by the effect of the change.
    pub fn robots_changed(&self, effect: ChangeEffect) {
        self.robots_changes.add(effect);
    }

    /// Counts a client connection as open until the returned guard is dropped.
    #[must_use]
    pub fn connection_opened(&self, listener: Listener) -> GaugeGuard {
        self.connections_accepted.add(listener);
        self.connections.enter(listener)
    }

    /// Counts a tunnel as open until the returned guard is dropped.
    #[must_use]
    pub fn tunnel_opened(&self, tunnel: Tunnel) -> GaugeGuard {
        self.tunnels_opened.add(tunnel);
        self.tunnels.enter(tunnel)
    }

    /// Counts a client's rejection of a certificate that the local authority issued.
    pub fn distrusted(&self, kind: RejectionKind) {
        self.distrust.add(kind);
    }

    fn decisions_of(&self, name: &Arc<str>) -> Arc<Decisions> {
        // A bot with the name `other` or `none` gets the counters of this label, because no two series may have equal
        // labels.
        if **name == *OTHER || **name == *NONE {
            return if **name == *OTHER {
                self.other.clone()
            } else {
                self.unidentified.clone()
            };
        }
        let mut bots = self.bots.lock();
        if bots.len() >= MAX_BOTS && !bots.contains_key(name) {
            return self.other.clone();
        }
        bots.entry(name.clone()).or_default().clone()
    }
}

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

    /// Returns the number of decisions by bot and kind. Leaves out kinds that never occurred.
    pub fn decision_totals(&self) -> HashMap<(Arc<str>, DecisionKind), u64> {
        let mut totals = HashMap::new();
        for (bot, decisions) in self.all_decisions() {
            for counted in decisions.iter().filter(|counted| counted.count > 0) {
                *totals.entry((bot.clone(), counted.kind)).or_default() += counted.count;
            }
        }
        totals
    }

    /// Returns the value of the label `bot` for requests of `bot`, or for requests that name no bot (`None`).
    pub fn bot_label<'b>(&self, bot: Option<&'b str>, is_configured: bool) -> &'b str {
        match bot {
            None => NONE,
            Some(NONE) if is_configured => NONE,
            Some(bot) if is_configured && self.bots.lock().contains_key(bot) => bot,
            Some(_) => OTHER,
        }
    }

    /// Returns the number of completed requests.
    pub fn requests(&self) -> u64 {
        self.requests.iter().map(LabelCounts::total).sum()
    }

    /// Returns the number of requests with the error [`ProxyError::Aborted`], for example because robotgate stopped.
    pub fn aborted(&self) -> u64 {
        let mut counts = self.errors.iter();
        counts
            .find(|(error, _)| *error == ProxyError::Aborted)
            .map_or(0, |(_, count)| count)
    }

    /// Returns the number of open client connections.
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
        let bots = self.bots.lock();
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
    /// Records a reload that ended at `at`.
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
/// Maximum number of bots that have a label value of their own: each adds many series.
const MAX_BOTS: usize = 1000;
/// Label values for bots without a label value of their own, and for requests that name no bot.
const OTHER: &str = "other";
const NONE: &str = "none";

#[cfg(test)]
mod tests;
