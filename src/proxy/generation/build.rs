//! Builds a generation from a configuration, and takes over from the previous generation what has not changed.

use std::{
    sync::{Arc, Weak, atomic::AtomicU64},
    time::SystemTime,
};

use super::{Generation, SetupError, service_records};
use crate::{
    audit::{AuditLog, GenerationFields, Instance, LogFormat},
    authority::{self, Authority, Leaves},
    config::{Cache, Config, HttpsMode},
    copy::SiteDocument,
    egress::{Listening, Resolver, Roots},
    evidence::{Evidence, EvidenceError},
    fair_semaphore::FairSemaphore,
    fleet::{Fleet, Notice, Paused},
    metrics::Meter,
    pacer::{FleetPace, Pacer, SharedPacer},
    proxy::{
        clients::{kept_connections, open_files},
        fetching::LoggedFetcher,
        server_tls,
        tdmrep::MemoryShares,
    },
    seal::Sealer,
    store::{Disk, DiskError, FileError, Store},
    upstream::Origins,
};

// === impl Generation ===

impl Generation {
    pub(super) fn build(
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
        // Do not reuse a connection if the origin's certificate was verified with other root certificates.
        let origins = match before.filter(|before| Arc::ptr_eq(&before.roots, &roots)) {
            Some(before) => before.origins.clone(),
            None => Origins::new(roots.path(), kept_connections(open_files()), listening.clone()),
        };
        let leaves = match unchanged(|old, new| pair_of(old) == pair_of(new)) {
            Some(before) => before.leaves.clone(),
            None => leaves(&config, metrics.leaves_minted.clone())?,
        };
        let server_tls = match unchanged(|old, new| old.proxy.tls == new.proxy.tls) {
            Some(before) => before.server_tls.clone(),
            None => config.proxy.tls.as_ref().map(server_tls::build).transpose()?,
        };
        // Keep the limiter even if `anew` is set, so that running and waiting fetches still count against the limit.
        let limiter = match before.filter(|before| before.config.robots.max_fetches == config.robots.max_fetches) {
            Some(before) => before.limiter.clone(),
            None => config.fetch_limiter(),
        };
        let egress = config.way_out(resolver, listening);
        let fetcher = config.fetcher(egress.clone(), origins.clone(), limiter.clone());
        let store = match before.filter(|before| is_same_file(&before.config.cache, &config.cache)) {
            Some(before) => before.store.clone(),
            None => store(&config, before)?,
        };
        let pacer_before = before
            .and_then(|before| before.pacer.as_ref())
            .map(|pacer| &pacer.local);
        let pacer = config.pace.map(|pace| match pacer_before {
            Some(pacer) => pacer.clone(),
            None => Arc::new(Pacer::new(pace.max_waiting)),
        });
        let is_same_fleet = |before: &Generation| {
            let same_copies = Arc::ptr_eq(&before.store, &store) && before.config.fetched_as() == config.fetched_as();
            let same_pacer = pacer_before.map(Arc::as_ptr) == pacer.as_ref().map(Arc::as_ptr);
            let settings = |config: &Config| config.fleet.as_ref().map(|fleet| fleet.settings.clone());
            settings(&before.config) == settings(&config) && same_copies && same_pacer
        };
        let audit_in_force = before.map(|before| before.audit_in_force.clone()).unwrap_or_default();
        let tdmrep_in_force = before.map(|before| before.tdmrep_in_force.clone()).unwrap_or_default();
        let fleet = match (before.filter(|before| is_same_fleet(before)), &config.fleet) {
            (Some(before), _) => before.fleet.clone(),
            (None, Some(fleet)) => {
                let (store, pacer) = (Arc::downgrade(&store), pacer.as_ref().map(Arc::downgrade));
                let (audit, tdmrep) = (audit_in_force.clone(), tdmrep_in_force.clone());
                let on_notice = move |notice| match notice {
                    Notice::Forgotten(origin) => {
                        if let Some(store) = store.upgrade() {
                            if let Some(audit) = &*audit.load() {
                                service_records::log_forget_by_fleet(audit, &origin, &store);
                            }
                            store.forget(&origin);
                        }
                        if let Some(tdmrep) = &*tdmrep.load() {
                            tdmrep.forget(&origin);
                        }
                    }
                    Notice::Paused(Paused { origin, left }) => {
                        if let Some(pacer) = pacer.as_ref().and_then(Weak::upgrade) {
                            pacer.pause(&origin, left);
                        }
                    }
                };
                let counts = metrics.fleet.clone();
                Some(Arc::new(Fleet::join(
                    &fleet.settings,
                    config.fetched_as(),
                    counts,
                    on_notice,
                )?))
            }
            (None, None) => None,
        };
        let pacer = pacer.map(|local| {
            let sharing = fleet.clone().zip(config.fleet.as_ref());
            let fleet = sharing.map(|(fleet, shared)| FleetPace {
                fleet,
                on_loss: shared.on_loss,
                size: shared.size,
            });
            SharedPacer { local, fleet }
        });
        let evidence = evidence(&config, before)?;
        let counts = metrics.audit.clone();
        // Open the audit log last, because a reload that fails must not leave a new file behind.
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
        let sealer = sealer(&config, before);
        let number = before.map_or(1, |before| before.number + 1);
        let instance = before.map_or_else(Instance::random, |before| before.instance);
        let seen_texts = before.map(|before| before.seen_texts.clone()).unwrap_or_default();
        let privacy = &config.audit.privacy;
        // After a change of the privacy settings, forget the recent lines of the audit log, because they may contain
        // what the new settings leave out.
        let recent = before.map(|before| match *privacy == before.config.audit.privacy {
            true => before.recent.clone(),
            false => Arc::new(before.recent.successor()),
        });
        let recent = recent.unwrap_or_default();
        let changes = before.map(|before| before.changes.clone()).unwrap_or_default();
        let config = Arc::new(config);
        let fetcher = LoggedFetcher {
            fetcher,
            audit: audit.clone(),
            metrics: metrics.clone(),
            pacer: pacer.clone(),
            fleet: fleet.clone(),
            evidence: evidence.clone(),
            evidence_required: config.evidence.as_ref().is_some_and(|evidence| evidence.required),
            redact_query: config.audit.privacy.redact_query.clone(),
            config: number,
            seen_texts: seen_texts.clone(),
            settings: config.clone(),
            recent: recent.clone(),
            instance,
            changes: changes.clone(),
        };
        let same_store = before.filter(|before| Arc::ptr_eq(&before.store, &store));
        // If bots begin or cease to need `tdmrep.json` files, start with an empty store. The old one is divided into
        // shards for its old size, so files might not fit into a shard.
        let memory = MemoryShares::of(&config);
        let tdmrep_before = same_store
            .filter(|before| MemoryShares::of(&before.config).is_for_bots() == memory.is_for_bots())
            .map(|before| before.tdmrep.clone());
        let tdmrep =
            tdmrep_before.unwrap_or_else(|| Arc::new(Store::beside(&store, &SiteDocument::TDMREP, memory.tdmrep)));
        Ok(Self {
            number,
            made: SystemTime::now(),
            terms: config.terms(number),
            egress,
            fetcher: Arc::new(fetcher),
            audit,
            audit_fields: GenerationFields::new(number, &instance, config.canonical.sha256()),
            instance,
            audit_in_force,
            tdmrep,
            tdmrep_in_force,
            seen_texts,
            changes,
            log_format,
            store,
            meter: Meter::new(metrics, &config.bots),
            leaves,
            server_tls,
            recent,
            long_decisions: match before {
                Some(before) => before.long_decisions.clone(),
                None => FairSemaphore::new(half_of_the_cores()),
            },
            pacer,
            roots,
            fleet,
            evidence,
            sealer,
            origins,
            limiter,
            config,
        })
    }
}

/// Returns the paths of the certificate authority's certificate and key, if anything is intercepted.
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
            "created a certificate authority; for https, clients have to trust its certificate"
        );
    }
    Ok(Some(Leaves::counted(Arc::new(authority), MAX_LEAVES, minted)))
}

/// Returns whether both configurations keep the robots.txt copies in the same file, even by different paths, or neither
/// keeps them in a file.
fn is_same_file(before: &Cache, after: &Cache) -> bool {
    let resolved = |cache: &Cache| {
        let path = cache.path.as_deref()?;
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let file = folder.and_then(|folder| Some(folder.join(path.file_name()?)));
        // In `file`, only the links in the folder's path are resolved. The file may also be a link, so resolve the
        // whole path if the file exists.
        Some(path.canonicalize().ok().or(file).unwrap_or_else(|| path.to_owned()))
    };
    before.path == after.path || resolved(before) == resolved(after)
}

/// Creates the store of the robots.txt copies, on disk if so configured. If the file on disk cannot be used, a reload
/// fails, but a start continues with the copies in memory only.
fn store(config: &Config, before: Option<&Generation>) -> Result<Arc<Store>, DiskError> {
    let (config, max_bytes) = (&config.cache, MemoryShares::of(config).robots);
    let pages = Store::disk_share(max_bytes);
    let store = match config.path.as_deref().map(|path| Disk::open(path, config.disk, pages)) {
        Some(Ok(disk)) => Store::new(max_bytes, Some(disk)),
        Some(Err(error)) if before.is_none() => {
            let advice = match error.why {
                FileError::Locked => "; each robotgate needs its own cache.path",
                _ => "",
            };
            let why = format!(
                "robotgate cannot use the file of cache.path: {}{advice}. Until the next start, or a reload with \
                 another cache.path, it keeps robots.txt copies in memory only",
                error.why
            );
            tracing::error!(path = %error.path.display(), "{why}");
            Store::new(max_bytes, None).without_disk(why)
        }
        Some(Err(error)) => return Err(error),
        None => Store::new(max_bytes, None),
    };
    Ok(Arc::new(match before {
        Some(before) => store.replacing(&before.store),
        None => store,
    }))
}

/// Opens the evidence store, or keeps the open one, and stores the text of the configuration in it.
fn evidence(config: &Config, before: Option<&Generation>) -> Result<Option<Arc<Evidence>>, EvidenceError> {
    let Some(options) = &config.evidence else {
        return Ok(None);
    };
    let text = config.canonical.text();
    let same = before.and_then(|before| before.evidence.as_ref());
    let same = same.filter(|evidence| evidence.path() == options.path);
    Ok(Some(match same {
        Some(evidence) => {
            evidence.set_config(text, options.required)?;
            evidence.clone()
        }
        None => Arc::new(Evidence::start(options, text)?),
    }))
}

fn sealer(config: &Config, before: Option<&Generation>) -> Option<Arc<Sealer>> {
    let log = config.audit.output.file()?;
    let same = before.and_then(|before| before.sealer.as_ref());
    let same = same.filter(|sealer| sealer.is_of(&config.seal, log)).cloned();
    config
        .seals
        .then(|| same.unwrap_or_else(|| Arc::new(Sealer::start(&config.seal, log))))
}

const MAX_LEAVES: usize = 10_000;
/// Half of the cores may be busy with decisions that take long, so that the others stay free for the rest of the proxy.
fn half_of_the_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}
