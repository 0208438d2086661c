//! A generation: one loaded configuration, and everything built from it. A reload builds the next one, which takes over
//! what has not changed, and replaces the old one as a whole. If building fails, the old one stays.

mod build;
mod service_records;

use std::{sync::Arc, time::SystemTime};

use arc_swap::ArcSwapOption;

use super::{
    changes::ChangeNotes,
    fetching::LoggedFetcher,
    seen_texts::SeenTexts,
    server_tls::{ServerTls, ServerTlsError},
};
use crate::{
    audit::{AuditError, AuditLog, Displaced, GenerationFields, Instance, LogFormat, Recent},
    authority::{Authority, AuthorityError, Leaves},
    config::Config,
    copy::OriginState,
    decision::Terms,
    egress::{Egress, Listening, ResolverError, Roots, RootsError},
    evidence::{Evidence, EvidenceError},
    fair_semaphore::FairSemaphore,
    fetch::{Fetch as _, FetchLimiter, Name},
    fleet::{Fleet, FleetError},
    metrics::Meter,
    origin::Origin,
    pacer::SharedPacer,
    seal::Sealer,
    store::{DiskError, Store},
    upstream::Origins,
};

/// A loaded configuration and everything built from it.
pub struct Generation {
    /// 1 at the start, and one more with each reload that succeeds.
    pub number: u64,
    pub made: SystemTime,
    pub config: Arc<Config>,
    pub(crate) terms: Terms,
    pub(super) egress: Egress,
    pub(super) fetcher: Arc<LoggedFetcher>,
    pub(super) audit: Arc<AuditLog>,
    pub(super) audit_fields: GenerationFields,
    pub(super) instance: Instance,
    /// The audit log of the generation in force. The code that handles messages from the fleet needs it, because an
    /// earlier generation may have started this code.
    pub(super) audit_in_force: Arc<ArcSwapOption<AuditLog>>,
    seen_texts: Arc<SeenTexts>,
    changes: Arc<ChangeNotes>,
    /// Format of the audit log on standard output. A file always has JSON.
    log_format: LogFormat,
    pub(super) store: Arc<Store>,
    pub(super) tdmrep: Arc<Store>,
    /// The `tdmrep.json` files of the generation in force, for messages from the fleet.
    pub(super) tdmrep_in_force: Arc<ArcSwapOption<Store>>,
    pub(super) meter: Meter,
    /// Issues the certificates for intercepted hosts. `None` if no CONNECT is intercepted.
    pub(super) leaves: Option<Leaves>,
    /// `None` if no listener speaks TLS.
    pub(super) server_tls: Option<ServerTls>,
    pub(super) recent: Arc<Recent>,
    /// Limits how many decisions that take long run at the same time, fairly between clients.
    pub(super) long_decisions: Arc<FairSemaphore<Name>>,
    /// Limits how fast sites get requests. `None` without a `[pace]` section.
    pub(super) pacer: Option<SharedPacer>,
    roots: Arc<Roots>,
    fleet: Option<Arc<Fleet>>,
    evidence: Option<Arc<Evidence>>,
    sealer: Option<Arc<Sealer>>,
    pub(super) origins: Arc<Origins>,
    limiter: Arc<FetchLimiter>,
}

/// Why a configuration cannot be used.
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
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error("evidence.path: {0}")]
    Evidence(#[from] EvidenceError),
}

// === impl Generation ===

impl Generation {
    /// Builds the first generation. `log_format` is for an audit log on standard output.
    pub(super) fn first(config: Config, listening: Listening, log_format: LogFormat) -> Result<Self, SetupError> {
        Self::build(config, None, false, listening, log_format)
    }

    /// Builds the generation for the new `config`, and takes over what has not changed. With `anew`, also reopens
    /// the audit log and reads certificates, keys and resolv.conf again, because someone may have replaced the files.
    ///
    /// # Errors
    /// Fails if a file or another resource that `config` names is not available. `self` can then stay in force.
    pub fn followed_by(&self, config: Config, anew: bool) -> Result<Arc<Self>, SetupError> {
        let listening = self.egress.listening.clone();
        Self::build(config, Some(self), anew, listening, self.log_format).map(Arc::new)
    }

    /// Returns the certificate authority for intercepted hosts.
    pub fn authority(&self) -> Option<&Authority> {
        self.leaves.as_ref().map(|leaves| leaves.authority().as_ref())
    }

    /// Returns whether requests have to wait because the audit log accepts no lines.
    pub fn audit_is_stalled(&self) -> bool {
        self.audit.is_stalled()
    }

    /// Opens the path of the audit log again, after its file was renamed. Blocks, and returns `false` if the log is not
    /// a file.
    ///
    /// # Errors
    /// Fails if the file cannot be opened. Lines are then still written to the old file.
    pub fn reopen_audit_log(&self) -> Result<bool, AuditError> {
        self.audit.reopen()?;
        Ok(self.config.audit.output.file().is_some())
    }

    /// Returns what happened to the file of the audit log since it was opened. Blocks.
    pub fn audit_log_displaced(&self) -> Displaced {
        self.audit.displaced()
    }

    /// Returns the addresses on which robotgate listens. All generations share this list.
    pub fn listening(&self) -> &Listening {
        &self.egress.listening
    }

    /// Returns one SHA-256 digest over the certificate of robotgate's own TLS listeners and its intermediates.
    pub fn server_certificate(&self) -> Option<[u8; 32]> {
        self.server_tls.as_ref().map(|tls| tls.certificate)
    }

    /// Returns whether both generations have the same `[egress]` settings and share their root certificates.
    pub(super) fn reaches_like(&self, other: &Generation) -> bool {
        self.config.egress == other.config.egress && self.trusts_like(other)
    }

    pub(super) fn trusts_like(&self, other: &Generation) -> bool {
        Arc::ptr_eq(&self.roots, &other.roots)
    }

    /// Makes code that handles messages from the fleet use this generation from now on.
    pub(super) fn note_in_force(&self) {
        self.audit_in_force.store(Some(self.audit.clone()));
        self.tdmrep_in_force.store(Some(self.tdmrep.clone()));
    }

    /// Forgets the robots.txt and the `tdmrep.json` of an origin.
    pub fn forget(&self, origin: &Origin) {
        self.store.forget(origin);
        self.tdmrep.forget(origin);
    }

    /// Returns what is in memory about the `tdmrep.json` of an origin.
    pub fn held_tdmrep(&self, origin: &Origin) -> Option<Arc<OriginState>> {
        self.tdmrep.held(origin)
    }

    /// Returns the store of the robots.txt copies.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the fleet, if one is configured.
    pub fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.fleet.as_ref()
    }

    /// Returns the evidence store, if one is configured.
    pub fn evidence(&self) -> Option<&Arc<Evidence>> {
        self.evidence.as_ref()
    }

    /// Returns the sealer of the audit log, if the log is sealed.
    pub fn sealer(&self) -> Option<&Arc<Sealer>> {
        self.sealer.as_ref()
    }

    /// Returns whether no new robots.txt can be used, because the evidence store fails and `evidence.required` is set.
    pub fn evidence_is_stalled(&self) -> bool {
        self.fetcher.check_evidence().is_err()
    }

    /// Logs the changes of robots.txt files that still wait to be logged.
    pub async fn finish_changes(&self) {
        self.changes.finish().await;
    }

    /// Returns how many root certificates are trusted from the system, and how many from `https.extra-roots`.
    pub fn roots(&self) -> (usize, usize) {
        (self.roots.system, self.roots.extra)
    }
}
