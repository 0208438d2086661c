//! What is in force: one configuration and everything built from it, swapped as a whole, so that
//! a request sees either all of the old or all of the new.
//!
//! Building comes first and may fail; what was in force stays then. What a reload did not change
//! is taken over, so that connections, caches and the log go on.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime},
};

use arc_swap::ArcSwap;
use pingora::{
    proxy::HttpProxy,
    server::{ShutdownWatch, configuration::ServerConf},
};
use rustls::ServerConfig;
use tokio::sync::Semaphore;

use super::{
    clients::Clients,
    fetching::LoggedFetcher,
    gate::Gate,
    server_tls::{self, ServerTlsError},
};
use crate::{
    audit::{AuditError, AuditLog},
    authority::{self, Authority, AuthorityError, Leaves},
    cache::{Disk, DiskOptions, Lanes, Policy, Store},
    config::{Cache, Config, HttpsMode, Output},
    egress::{Egress, Listening, Resolver, ResolverError, Roots, RootsError},
};

/// One configuration in force.
pub struct Generation {
    /// 1 at the start, one more with each reload.
    pub number: u64,
    pub config: Config,
    pub(super) policy: Policy,
    pub(super) egress: Egress,
    pub(super) fetcher: Arc<LoggedFetcher>,
    pub(super) audit: Arc<AuditLog>,
    /// `None` where no CONNECT is intercepted.
    pub(super) leaves: Option<Leaves>,
    /// Of the listeners that speak TLS.
    pub(super) server_tls: Option<Arc<ServerConfig>>,
    roots: Arc<Roots>,
    lanes: Arc<Lanes>,
}

/// Why a configuration cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Resolver(#[from] ResolverError),
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error(transparent)]
    ServerTls(#[from] ServerTlsError),
}

/// The generation in force, and what outlives every generation.
pub struct Live {
    forwarder: ArcSwap<Forwarder>,
    pub(super) store: Arc<Store>,
    pub(super) clients: Arc<Clients>,
    /// Turns of the decisions that take long.
    pub(super) long_decisions: Arc<Semaphore>,
    /// Those that a reload has replaced and that a request may still write to.
    audit_logs: Mutex<Vec<Arc<AuditLog>>>,
    /// Turns true when the proxy is to stop.
    shutdown: ShutdownWatch,
}

/// pingora's proxy, whose connector holds one set of roots for life, and the generation that it
/// works by.
pub(super) struct Forwarder {
    pub(super) http: Arc<HttpProxy<Gate>>,
    current: Arc<ArcSwap<Generation>>,
}

// === impl Generation ===

impl Generation {
    /// Builds what `config` asks for, taking from `before` what stays as it was; with `anew`,
    /// nothing but the count and what no file stands behind.
    ///
    /// # Errors
    /// Something that the configuration names cannot be had. Nothing has changed then.
    fn build(
        config: Config,
        before: Option<&Generation>,
        anew: bool,
        listening: Listening,
    ) -> Result<Self, SetupError> {
        let unchanged =
            |same: fn(&Config, &Config) -> bool| before.filter(|before| !anew && same(&before.config, &config));
        let resolver = match unchanged(|old, new| old.egress.dns == new.egress.dns) {
            Some(before) => before.egress.resolver.clone(),
            None => Resolver::new(&config.egress.dns)?,
        };
        let roots = match unchanged(|old, new| old.https.extra_roots == new.https.extra_roots) {
            Some(before) => before.roots.clone(),
            None => Arc::new(Roots::gather(&config.https.extra_roots)?),
        };
        let leaves = match unchanged(|old, new| pair_of(old) == pair_of(new)) {
            Some(before) => before.leaves.clone(),
            None => leaves(&config)?,
        };
        let server_tls = match unchanged(|old, new| old.proxy.tls == new.proxy.tls) {
            Some(before) => before.server_tls.clone(),
            None => config.proxy.tls.as_ref().map(server_tls::build).transpose()?,
        };
        // Kept even then: those that run and wait are to be counted with those that come.
        let lanes = match before.filter(|before| before.config.robots.max_fetches == config.robots.max_fetches) {
            Some(before) => before.lanes.clone(),
            None => config.lanes(),
        };
        let egress = config.way_out(resolver, listening);
        let fetcher = config.fetcher(egress.clone(), &roots, lanes.clone());
        // Last, because it makes a file, and a reload that fails leaves no trace.
        let audit = match before.filter(|before| before.config.audit.output == config.audit.output) {
            // Two writers to one pipe would tear each other's lines.
            Some(before) if !anew || config.audit.output == Output::Stdout => before.audit.clone(),
            Some(_) => Arc::new(AuditLog::reopen(&config.audit.output)?),
            None => Arc::new(AuditLog::open(&config.audit.output)?),
        };
        let number = before.map_or(1, |before| before.number + 1);
        let fetcher = LoggedFetcher {
            fetcher,
            audit: audit.clone(),
            redact_query: config.audit.redact_query,
            config: number,
        };
        Ok(Self {
            number,
            policy: config.policy(),
            egress,
            fetcher: Arc::new(fetcher),
            audit,
            leaves,
            server_tls,
            roots,
            lanes,
            config,
        })
    }

    /// The authority whose leaves clients of an interception see.
    pub fn authority(&self) -> Option<&Authority> {
        self.leaves.as_ref().map(|leaves| leaves.authority().as_ref())
    }

    /// Whether origins are within reach of `other` exactly as of this one.
    fn reaches_like(&self, other: &Generation) -> bool {
        self.config.egress == other.config.egress && Arc::ptr_eq(&self.roots, &other.roots)
    }

    /// How many roots origins are checked against: the system's, and those of the operator.
    pub fn roots(&self) -> (usize, usize) {
        (self.roots.system, self.roots.extra)
    }
}

/// The files of the authority, where one is needed.
fn pair_of(config: &Config) -> Option<(&std::path::Path, &std::path::Path)> {
    let https = &config.https;
    (https.mode == HttpsMode::Intercept).then_some((&https.ca_certificate, &https.ca_key))
}

fn leaves(config: &Config) -> Result<Option<Leaves>, SetupError> {
    let Some((certificate, key)) = pair_of(config) else {
        return Ok(None);
    };
    let (authority, origin) = Authority::load_or_create(certificate, key, SystemTime::now())?;
    if origin == authority::Provenance::Created {
        tracing::info!(
            certificate = %certificate.display(),
            fingerprint = authority.fingerprint(),
            "a certificate authority was made; clients of https have to trust its certificate \
             (robotgate ca export prints it)"
        );
    }
    Ok(Some(Leaves::new(Arc::new(authority), MAX_LEAVES)))
}

/// The copies, on disk where they are to be kept there. Without a disk they are fetched anew after a
/// restart, which is no reason not to start.
fn store(config: &Cache) -> Store {
    let disk = config.path.as_deref().and_then(|path| {
        let opened = Disk::open(
            path,
            DiskOptions {
                keep: config.keep,
                max_bytes: config.max_disk_bytes,
                cache_bytes: Store::disk_share(config.max_bytes),
            },
        );
        opened
            .inspect_err(|error| tracing::error!("{error}; until the next start, copies are kept in memory alone"))
            .ok()
    });
    Store::new(config.max_bytes, disk)
}

// === impl Live ===

impl Live {
    /// Puts the first configuration in force, of a robotgate that is `listening` there for its life.
    ///
    /// # Errors
    /// Something that it names cannot be had.
    pub fn new(config: Config, listening: Listening, shutdown: ShutdownWatch) -> Result<Arc<Self>, SetupError> {
        let generation = Arc::new(Generation::build(config, None, false, listening)?);
        let store = Arc::new(store(&generation.config.cache));
        Ok(Arc::new_cyclic(|live| Self {
            forwarder: ArcSwap::from_pointee(Forwarder::new(generation, live.clone())),
            store,
            long_decisions: Arc::new(Semaphore::new(LONG_DECISIONS)),
            clients: Arc::new(Clients::new(Instant::now(), open_files())),
            audit_logs: Mutex::new(Vec::new()),
            shutdown,
        }))
    }

    /// Puts another configuration in force. With `anew`, the files that it names are opened and
    /// read again even where their names are the same: certificates, keys and the audit log, which
    /// someone may have moved away.
    ///
    /// # Errors
    /// Something that it names cannot be had. What was in force stays.
    pub fn replace(self: &Arc<Self>, config: Config, anew: bool) -> Result<Arc<Generation>, SetupError> {
        let before = self.generation();
        let listening = before.egress.listening.clone();
        let generation = Arc::new(Generation::build(config, Some(&before), anew, listening)?);
        self.store.set_max_bytes(generation.config.cache.max_bytes);
        if let Some(disk) = self.store.disk() {
            let cache = &generation.config.cache;
            disk.set_bounds(cache.keep, cache.max_disk_bytes);
        }
        self.keep_audit_log(&before, &generation);
        let forwarder = self.forwarder.load();
        if Arc::ptr_eq(&before.roots, &generation.roots) {
            forwarder.current.store(generation.clone());
        } else {
            // Connections made under the old roots must not serve the new configuration: a new
            // forwarder has a pool of its own, and the old one ends with its last request.
            let forwarder = Forwarder::new(generation.clone(), Arc::downgrade(self));
            self.forwarder.store(Arc::new(forwarder));
        }
        if !before.reaches_like(&generation) {
            // What could not be reached before may be within reach now.
            self.store.retry_failures();
        }
        Ok(generation)
    }

    fn keep_audit_log(&self, before: &Generation, generation: &Generation) {
        let mut logs = self.audit_logs.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that nobody else holds writes what is left when it is dropped.
        logs.retain(|log| Arc::strong_count(log) > 1);
        if !Arc::ptr_eq(&before.audit, &generation.audit) {
            logs.push(before.audit.clone());
        }
    }

    /// The copies of robots.txt.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// All logs that may have something left to write.
    pub fn audit_logs(&self) -> Vec<Arc<AuditLog>> {
        let logs = self.audit_logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.iter().cloned().chain([self.generation().audit.clone()]).collect()
    }

    /// Whether the proxy is stopping: connections are not kept then.
    pub(super) fn is_stopping(&self) -> bool {
        *self.shutdown.borrow()
    }

    /// What is in force now.
    pub fn generation(&self) -> Arc<Generation> {
        self.forwarder.load().current.load_full()
    }

    pub(super) fn forwarder(&self) -> Arc<Forwarder> {
        self.forwarder.load_full()
    }
}

// === impl Forwarder ===

impl Forwarder {
    fn new(generation: Arc<Generation>, live: std::sync::Weak<Live>) -> Self {
        let settings = ServerConf {
            threads: generation.config.proxy.threads,
            upstream_keepalive_pool_size: KEPT_CONNECTIONS,
            ca_file: Some(generation.roots.path()),
            max_retries: MAX_TRIES,
            ..ServerConf::default()
        };
        let current = Arc::new(ArcSwap::new(generation));
        let gate = Gate::new(live, current.clone());
        let mut http = HttpProxy::new(gate, Arc::new(settings));
        http.handle_init_modules();
        Self {
            http: Arc::new(http),
            current,
        }
    }
}

/// How many files this process may have open.
fn open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit
        .current
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

/// Decisions that take long and are made at once.
const LONG_DECISIONS: usize = 8;
/// Leaves that are kept ready.
const MAX_LEAVES: usize = 10_000;
/// Unused connections to origins that each thread may keep.
const KEPT_CONNECTIONS: usize = 256;
/// Addresses or stale connections that are tried for one request.
const MAX_TRIES: usize = 4;
