//! What is in force: one configuration and everything built from it, swapped as a whole, so that
//! a request sees either all of the old or all of the new.
//!
//! Building comes first and may fail; what was in force stays then. What a reload did not change
//! is taken over, so that connections, caches and the log go on.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::SystemTime,
};

use super::{
    clients::kept_connections,
    fetching::LoggedFetcher,
    live::open_files,
    server_tls::{self, ServerTls, ServerTlsError},
};
use crate::{
    audit::{AuditError, AuditLog, LogFormat, Output, Recent},
    authority::{self, Authority, AuthorityError, Leaves},
    config::{Cache, Config, HttpsMode},
    decision::Terms,
    egress::{Egress, Listening, Resolver, ResolverError, Roots, RootsError},
    fair_semaphore::FairSemaphore,
    fetch::{FetchLimiter, Name},
    metrics::Meter,
    store::{Disk, DiskError, Store},
    upstream::Origins,
};

/// One configuration in force.
pub struct Generation {
    /// 1 at the start, one more with each reload.
    pub number: u64,
    /// When it was made.
    pub made: SystemTime,
    pub config: Config,
    /// What of it decides.
    pub(crate) terms: Terms,
    pub(super) egress: Egress,
    pub(super) fetcher: Arc<LoggedFetcher>,
    pub(super) audit: Arc<AuditLog>,
    /// What the log looks like if it goes to standard output.
    log_format: LogFormat,
    /// The copies of robots.txt.
    pub(super) store: Arc<Store>,
    pub(super) meter: Meter,
    /// `None` where no CONNECT is intercepted.
    pub(super) leaves: Option<Leaves>,
    /// Of the listeners that speak TLS.
    pub(super) server_tls: Option<ServerTls>,
    /// What was not allowed of late.
    pub(super) recent: Arc<Recent>,
    /// Turns at the decisions that take long, by who asks.
    pub(super) long_decisions: Arc<FairSemaphore<Name>>,
    roots: Arc<Roots>,
    /// The connections to origins.
    pub(super) origins: Arc<Origins>,
    limiter: Arc<FetchLimiter>,
}

/// Why a configuration cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("{keys}: {0}", keys = .0.keys())]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Resolver(#[from] ResolverError),
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error(transparent)]
    ServerTls(#[from] ServerTlsError),
    #[error("cache.path: {0}")]
    Cache(#[from] DiskError),
}

// === impl Generation ===

impl Generation {
    /// Builds what `config` asks for, of a robotgate that is `listening` there and writes its log in `log_format`.
    ///
    /// # Errors
    /// Something that the configuration names cannot be had.
    pub(super) fn first(config: Config, listening: Listening, log_format: LogFormat) -> Result<Self, SetupError> {
        Self::build(config, None, false, listening, log_format)
    }

    /// Builds what `config` asks for, to come after this one, taking over what stays as it was. With `anew`, the files
    /// that it names are opened and read again even where their names are the same: certificates, keys and the audit
    /// log, which someone may have moved away.
    ///
    /// # Errors
    /// Something that the configuration names cannot be had. Nothing has changed then.
    pub fn followed_by(&self, config: Config, anew: bool) -> Result<Arc<Self>, SetupError> {
        let listening = self.egress.listening.clone();
        Self::build(config, Some(self), anew, listening, self.log_format).map(Arc::new)
    }

    fn build(
        config: Config,
        before: Option<&Generation>,
        anew: bool,
        listening: Listening,
        log_format: LogFormat,
    ) -> Result<Self, SetupError> {
        let unchanged =
            |same: fn(&Config, &Config) -> bool| before.filter(|before| !anew && same(&before.config, &config));
        let metrics = before.map(|before| before.meter.metrics.clone()).unwrap_or_default();
        let resolver = match unchanged(|old, new| old.egress.dns == new.egress.dns) {
            Some(before) => before.egress.resolver.clone(),
            None => Resolver::new(&config.egress.dns)?,
        };
        let roots = match unchanged(|old, new| old.https.extra_roots == new.https.extra_roots) {
            Some(before) => before.roots.clone(),
            None => Arc::new(Roots::gather(&config.https.extra_roots)?),
        };
        // A connection that was made under other roots must not serve this configuration.
        let origins = match before.filter(|before| Arc::ptr_eq(&before.roots, &roots)) {
            Some(before) => before.origins.clone(),
            None => Origins::new(roots.path(), kept_connections(open_files())),
        };
        let leaves = match unchanged(|old, new| pair_of(old) == pair_of(new)) {
            Some(before) => before.leaves.clone(),
            None => leaves(&config, metrics.leaves_minted.clone())?,
        };
        let server_tls = match unchanged(|old, new| old.proxy.tls == new.proxy.tls) {
            Some(before) => before.server_tls.clone(),
            None => config.proxy.tls.as_ref().map(server_tls::build).transpose()?,
        };
        // Kept even then: those that run and wait are to be counted with those that come.
        let limiter = match before.filter(|before| before.config.robots.max_fetches == config.robots.max_fetches) {
            Some(before) => before.limiter.clone(),
            None => config.fetch_limiter(),
        };
        let egress = config.way_out(resolver, listening);
        let fetcher = config.fetcher(egress.clone(), origins.clone(), limiter.clone());
        let store = match before.filter(|before| is_same_file(&before.config.cache, &config.cache)) {
            Some(before) => before.store.clone(),
            None => store(&config.cache, before)?,
        };
        let counts = metrics.audit.clone();
        // Last, because it makes a file, and a reload that fails leaves no trace.
        let audit = match before.filter(|before| before.config.audit.output == config.audit.output) {
            Some(before) => {
                if anew {
                    before.audit.reopen()?;
                }
                before.audit.clone()
            }
            None => Arc::new(
                AuditLog::open(&config.audit.output)?
                    .in_format(log_format)
                    .counting(counts),
            ),
        };
        let number = before.map_or(1, |before| before.number + 1);
        let fetcher = LoggedFetcher {
            fetcher,
            audit: audit.clone(),
            metrics: metrics.clone(),
            redact_query: config.audit.redact_query,
            config: number,
        };
        Ok(Self {
            number,
            made: SystemTime::now(),
            terms: config.terms(number),
            egress,
            fetcher: Arc::new(fetcher),
            audit,
            log_format,
            store,
            meter: Meter::new(metrics, &config.bots),
            leaves,
            server_tls,
            recent: before.map(|before| before.recent.clone()).unwrap_or_default(),
            long_decisions: match before {
                Some(before) => before.long_decisions.clone(),
                None => FairSemaphore::new(half_of_the_cores()),
            },
            roots,
            origins,
            limiter,
            config,
        })
    }

    /// The authority whose leaves clients of an interception see.
    pub fn authority(&self) -> Option<&Authority> {
        self.leaves.as_ref().map(|leaves| leaves.authority().as_ref())
    }

    /// Whether the audit log takes nothing, so that requests wait.
    pub fn audit_is_stalled(&self) -> bool {
        self.audit.is_stalled()
    }

    /// Opens the audit log's file anew, after someone may have moved it away; `false` where it is no file. It blocks.
    ///
    /// # Errors
    /// The file cannot be opened. Lines go on to where they went.
    pub fn reopen_audit_log(&self) -> Result<bool, AuditError> {
        self.audit.reopen()?;
        Ok(self.config.audit.output != Output::Stdout)
    }

    /// Where robotgate listens, whatever the generation.
    pub fn listening(&self) -> &Listening {
        &self.egress.listening
    }

    /// The digest of the certificate that the proxy itself shows, where it speaks TLS.
    pub fn server_certificate(&self) -> Option<[u8; 32]> {
        self.server_tls.as_ref().map(|tls| tls.certificate)
    }

    /// Whether origins are within reach of `other` exactly as of this one.
    pub(super) fn reaches_like(&self, other: &Generation) -> bool {
        self.config.egress == other.config.egress && self.trusts_like(other)
    }

    /// Whether both check origins' certificates against the same roots.
    pub(super) fn trusts_like(&self, other: &Generation) -> bool {
        Arc::ptr_eq(&self.roots, &other.roots)
    }

    /// The copies of robots.txt.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
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

fn leaves(config: &Config, minted: Arc<AtomicU64>) -> Result<Option<Leaves>, SetupError> {
    let Some((certificate, key)) = pair_of(config) else {
        return Ok(None);
    };
    let (authority, origin) = Authority::load_or_create(certificate, key, SystemTime::now())?;
    if origin == authority::Provenance::Created {
        tracing::info!(
            certificate = %certificate.display(),
            fingerprint = authority.fingerprint(),
            "created a certificate authority; for https, clients have to trust its certificate \
             (robotgate ca export prints it)"
        );
    }
    Ok(Some(Leaves::counted(Arc::new(authority), MAX_LEAVES, minted)))
}

/// Whether both keep the copies in one file, by whatever path.
fn is_same_file(before: &Cache, after: &Cache) -> bool {
    let resolved = |cache: &Cache| {
        let path = cache.path.as_deref()?;
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let file = folder.and_then(|folder| Some(folder.join(path.file_name()?)));
        // The last link, too, where there is one.
        Some(path.canonicalize().ok().or(file).unwrap_or_else(|| path.to_owned()))
    };
    before.path == after.path || resolved(before) == resolved(after)
}

/// The copies, on disk where they are to be kept there. At the start, a disk that cannot be had is no reason to serve
/// nobody: copies are fetched anew after a restart then.
fn store(config: &Cache, before: Option<&Generation>) -> Result<Arc<Store>, DiskError> {
    let pages = Store::disk_share(config.max_bytes);
    let store = match config.path.as_deref().map(|path| Disk::open(path, config.disk, pages)) {
        Some(Ok(disk)) => Store::new(config.max_bytes, Some(disk)),
        Some(Err(error)) if before.is_none() => {
            let why = format!(
                "robotgate cannot use the file of cache.path, so it keeps robots.txt copies in memory only, until \
                 the next start or a reload with another cache.path: {}",
                error.why
            );
            tracing::error!(path = %error.path.display(), "{why}");
            Store::new(config.max_bytes, None).without_disk(why)
        }
        Some(Err(error)) => return Err(error),
        None => Store::new(config.max_bytes, None),
    };
    Ok(Arc::new(match before {
        Some(before) => store.replacing(&before.store),
        None => store,
    }))
}

/// Leaves that are kept ready.
const MAX_LEAVES: usize = 10_000;
/// How many long decisions are made at once: each keeps a core busy, and the rest of the proxy needs some.
fn half_of_the_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}
