//! The configuration in force, which a reload replaces as a whole, and the state that survives a reload.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{
    clients::{Clients, open_files},
    generation::{Generation, SetupError},
    tdmrep::MemoryShares,
};
use crate::{
    audit::{AuditLog, LogFormat, Recent},
    config::Config,
    egress::Listening,
    history::History,
    metrics::Metrics,
    store::Store,
    trust::Rejections,
};

/// The configuration in force with everything built from it, and the state that survives a reload.
pub struct Live {
    current: ArcSwap<Generation>,
    pub(super) clients: Arc<Clients>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) rejections: Arc<Rejections>,
    pub(super) history: Arc<History>,
    audit_logs: Mutex<Vec<Arc<AuditLog>>>,
    /// Whether the proxy is stopping. Atomic, because each request reads it, and the channel for the stop takes a lock.
    stopping: AtomicBool,
}

// === impl Live ===

impl Live {
    /// Puts the first configuration in force. `config_options` are the options that name the configuration in a
    /// command, as in ` --config FILE`.
    ///
    /// # Errors
    /// Fails if a file or another resource that `config` names is not available.
    pub fn new(config: Config, log_format: LogFormat, config_options: String) -> Result<Arc<Self>, SetupError> {
        let generation = Arc::new(Generation::first(config, Listening::default(), log_format)?);
        let metrics = generation.meter.metrics.clone();
        generation.note_in_force();
        let clients = Clients::new(Instant::now(), open_files());
        clients.set_mask(generation.config.audit.privacy.mask_client);
        Ok(Arc::new(Self {
            current: ArcSwap::new(generation),
            clients: Arc::new(clients),
            metrics,
            rejections: Arc::new(Rejections::new(config_options)),
            history: Arc::default(),
            audit_logs: Mutex::new(Vec::new()),
            stopping: AtomicBool::new(false),
        }))
    }

    /// Puts `generation` in force. It must come from [`Generation::followed_by`] of the generation that it replaces.
    pub fn put_in_force(&self, generation: Arc<Generation>) {
        let before = self.generation();
        let cache = &generation.config.cache;
        let memory = MemoryShares::of(&generation.config);
        generation.store.set_max_bytes(memory.robots);
        generation.tdmrep.set_max_bytes(memory.tdmrep);
        if let Some(disk) = generation.store.disk() {
            disk.set_options(cache.disk);
        }
        if let (Some(evidence), Some(options)) = (generation.evidence(), &generation.config.evidence) {
            evidence.set_options(options);
        }
        self.keep_audit_log(&before, &generation);
        generation.note_in_force();
        self.current.store(generation.clone());
        self.clients.set_mask(generation.config.audit.privacy.mask_client);
        match (&generation.pacer, generation.config.pace, &before.pacer) {
            (Some(pacer), Some(pace), _) => pacer.local.reconfigure(&pace),
            // Without `[pace]`, requests must not wait for their turn any longer.
            (_, _, Some(before)) => before.local.lift(),
            _ => {}
        }
        if !generation.reaches_like(&before) {
            // Fetches that failed because of `[egress]` or the root certificates may succeed now.
            generation.store.retry_failures();
            generation.tdmrep.retry_failures();
        }
    }

    fn keep_audit_log(&self, before: &Generation, generation: &Generation) {
        let mut logs = self.audit_logs.lock();
        logs.retain(is_in_use);
        if !Arc::ptr_eq(&before.audit, &generation.audit) {
            let output = before.audit.output();
            if let Err(error) = before.audit.divert(&generation.config.audit.output) {
                tracing::error!(
                    %error,
                    output,
                    "robotgate cannot write some lines: the previous audit log (field `output`) and the new one (field \
                     `error`) both fail. Make the previous log writable: robotgate keeps trying, but lines that are \
                     not written when its process ends are lost"
                );
            }
            logs.push(before.audit.clone());
        }
    }

    /// Returns the store of the robots.txt copies.
    pub fn store(&self) -> Arc<Store> {
        self.generation().store.clone()
    }

    /// Returns the clients that do not trust robotgate's certificates.
    pub fn rejections(&self) -> &Arc<Rejections> {
        &self.rejections
    }

    /// Returns the counts of the last days, for charts.
    pub fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// Returns the latest lines of the audit log that are in memory.
    pub fn recent(&self) -> Arc<Recent> {
        self.generation().recent.clone()
    }

    /// Returns all audit logs that may still have lines to write.
    pub fn audit_logs(&self) -> Vec<Arc<AuditLog>> {
        let mut logs = self.audit_logs.lock();
        logs.retain(is_in_use);
        // The log in use comes first, so that a stop closes it before a log whose output hangs.
        let current = self.generation().audit.clone();
        [current].into_iter().chain(logs.iter().cloned()).collect()
    }

    /// Returns the number of open connections of clients.
    pub fn connections(&self) -> usize {
        self.clients.connections()
    }

    /// Returns whether the proxy is stopping. If so, connections do not wait for further requests.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Notes that the proxy is stopping.
    pub fn note_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Returns the configuration in force, for a short use. This is cheaper than [`generation`](Self::generation).
    pub(super) fn current(&self) -> arc_swap::Guard<Arc<Generation>> {
        self.current.load()
    }

    /// Returns the configuration in force.
    pub fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }
}

/// Returns whether a log may get more lines, or still has lines to write. Do not drop such a log, because it would lose
/// these lines if its output fails.
fn is_in_use(log: &Arc<AuditLog>) -> bool {
    Arc::strong_count(log) > 1 || log.waiting_bytes() > 0
}

/// Returns a warning for each limit that is written in the configuration and that clients cannot reach, because the
/// limit of open files is too low.
pub fn beyond_files(config: &Config) -> Vec<String> {
    Clients::beyond_files(config, open_files())
}
