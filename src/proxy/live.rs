//! The generation in force, swapped as a whole, and what outlives every generation.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwap;

use super::{
    clients::Clients,
    generation::{Generation, SetupError},
};
use crate::{
    audit::{AuditLog, LogFormat, Recent},
    config::Config,
    egress::Listening,
    metrics::Metrics,
    store::Store,
    trust::Rejections,
};

/// The generation in force, and what outlives every generation.
pub struct Live {
    current: ArcSwap<Generation>,
    pub(super) clients: Arc<Clients>,
    pub(super) metrics: Arc<Metrics>,
    /// Clients that turned the authority's certificates down.
    pub(super) rejections: Arc<Rejections>,
    /// Those that a reload has replaced and that a request may still write to.
    audit_logs: Mutex<Vec<Arc<AuditLog>>>,
    /// Whether the proxy is stopping. Each request looks at it, so it is no channel, which would have a lock.
    stopping: AtomicBool,
}

// === impl Live ===

impl Live {
    /// Puts the first configuration in force. Its log and those of later ones are in `log_format` on standard output.
    ///
    /// # Errors
    /// Something that it names cannot be had.
    pub fn new(config: Config, log_format: LogFormat) -> Result<Arc<Self>, SetupError> {
        let generation = Arc::new(Generation::first(config, Listening::default(), log_format)?);
        let metrics = generation.meter.metrics.clone();
        Ok(Arc::new(Self {
            current: ArcSwap::new(generation),
            clients: Arc::new(Clients::new(Instant::now(), open_files())),
            metrics,
            rejections: Arc::default(),
            audit_logs: Mutex::new(Vec::new()),
            stopping: AtomicBool::new(false),
        }))
    }

    /// Puts another generation in force, which was made to come after the one that is.
    pub fn put_in_force(&self, generation: Arc<Generation>) {
        let before = self.generation();
        let cache = &generation.config.cache;
        generation.store.set_max_bytes(cache.max_bytes);
        if let Some(disk) = generation.store.disk() {
            disk.set_options(cache.disk);
        }
        self.keep_audit_log(&before, &generation);
        self.current.store(generation.clone());
        if !generation.reaches_like(&before) {
            // What could not be reached before may be within reach now.
            generation.store.retry_failures();
        }
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
    pub fn store(&self) -> Arc<Store> {
        self.generation().store.clone()
    }

    /// Clients that turned the authority's certificates down.
    pub fn rejections(&self) -> &Arc<Rejections> {
        &self.rejections
    }

    /// What was not allowed of late.
    pub fn recent(&self) -> Arc<Recent> {
        self.generation().recent.clone()
    }

    /// All logs that may have something left to write.
    pub fn audit_logs(&self) -> Vec<Arc<AuditLog>> {
        let mut logs = self.audit_logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.retain(|log| Arc::strong_count(log) > 1);
        logs.iter().cloned().chain([self.generation().audit.clone()]).collect()
    }

    /// Connections of clients that are open now.
    pub fn connections(&self) -> usize {
        self.clients.connections()
    }

    /// Whether the proxy is stopping: connections are not kept then.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Notes that the proxy is stopping.
    pub fn note_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// What is in force now, for a look at it and no longer.
    pub(super) fn current(&self) -> arc_swap::Guard<Arc<Generation>> {
        self.current.load()
    }

    /// What is in force now.
    pub fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }
}

/// How many files this process may have open.
pub(super) fn open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit
        .current
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}
