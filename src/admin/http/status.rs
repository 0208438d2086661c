//! The state of robotgate in one object, and the current configuration.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use axum::{Json, extract::State};
use serde::Serialize;

use super::Context;
use crate::{
    audit::Privacy,
    authority::Authority,
    decision::Verdict,
    evidence::EvidenceState,
    proxy::Speaks,
    seal::SealState,
    store::VerdictCounts,
    text::Timestamp,
    trust::{Rejection, Rejections},
};

#[derive(Serialize)]
pub(super) struct Status {
    version: &'static str,
    started: Timestamp,
    now: Timestamp,
    state: &'static str,
    generation: u64,
    loaded: Timestamp,
    last_reload: Option<LastReload>,
    decisions: VerdictCounts,
    requests: u64,
    connections: u64,
    tunnels: u64,
    fetches_running: usize,
    origins: Origins,
    evidence: Option<EvidenceState>,
    /// `None` if the proxy does not seal the audit log.
    seal: Option<SealState>,
    fleet: Option<FleetStatus>,
    audit: Audit,
    listen: Vec<Listens>,
    authority: Option<Signer>,
    trust_problems: Vec<TrustProblem>,
}

/// The result of a configuration reload.
#[derive(Debug, Clone, Serialize)]
pub struct LastReload {
    pub time: Timestamp,
    pub cause: &'static str,
    pub ok: bool,
    pub error: Option<String>,
    /// The number of the configuration that is used after the reload.
    pub generation: u64,
    pub changes: Vec<String>,
    /// Changed keys that take effect only at the next start.
    pub restart_needed: Vec<&'static str>,
}

#[derive(Serialize)]
struct Origins {
    known: u64,
    memory_bytes: u64,
    memory_max_bytes: u64,
    disk_bytes: Option<u64>,
    disk_max_bytes: Option<u64>,
}

#[derive(Serialize)]
struct FleetStatus {
    url: String,
    connected: bool,
    error: Option<String>,
    /// Why no messages of other robotgates arrive, although robotgate can use the fleet's server.
    subscription_error: Option<String>,
    calls: u64,
    errors: u64,
    /// Copies from other robotgates that this one used (`copies_used`) or did not accept (`copies_rejected`).
    copies_used: u64,
    copies_rejected: u64,
}

#[derive(Serialize)]
struct Audit {
    lines: u64,
    stalled: bool,
}

#[derive(Serialize)]
struct Listens {
    address: SocketAddr,
    speaks: Speaks,
}

#[derive(Serialize)]
struct Signer {
    subject: String,
    fingerprint: String,
    not_after: Timestamp,
}

#[derive(Serialize)]
struct TrustProblem {
    client: IpAddr,
    user_agent: Option<String>,
    origin: String,
    /// `distrust` if the client sent a TLS alert, `closed` if it sent none.
    kind: &'static str,
    first: Timestamp,
    last: Timestamp,
    count: u64,
    fix: String,
}

#[derive(Serialize)]
pub(super) struct InForce {
    generation: u64,
    file: Option<PathBuf>,
    /// The settings by key, such as `cache.path`, without secrets.
    settings: BTreeMap<String, String>,
}

pub(super) async fn status(State(context): State<Arc<Context>>) -> Json<Status> {
    let (live, service_info) = (&context.live, &context.service_info);
    let (generation, metrics) = (live.generation(), live.metrics());
    let memory = live.store().memory();
    let disk = context.with_file(|file| Ok((file.origins()?, file.held()))).await.ok();
    let listening = service_info.listeners.addresses().into_iter();
    Json(Status {
        version: crate::VERSION,
        started: Timestamp(context.started),
        now: Timestamp(SystemTime::now()),
        state: if live.is_stopping() { "draining" } else { "ready" },
        generation: generation.number,
        loaded: Timestamp(generation.made),
        last_reload: (service_info.last_reload)(),
        decisions: VerdictCounts {
            allow: metrics.decisions(Verdict::Allow),
            deny: metrics.decisions(Verdict::Deny),
            unverifiable: metrics.decisions(Verdict::Unverifiable),
            defer: metrics.decisions(Verdict::Defer),
        },
        requests: metrics.requests(),
        connections: metrics.connections(),
        tunnels: metrics.tunnels(),
        fetches_running: memory.fetches,
        origins: Origins {
            known: disk.map_or(0, |(origins, _)| origins).max(memory.origins as u64),
            memory_bytes: memory.bytes,
            memory_max_bytes: memory.max_bytes,
            disk_bytes: disk.map(|(_, held)| held),
            disk_max_bytes: live.store().disk().map(|_| generation.config.cache.disk.max_bytes),
        },
        evidence: generation.evidence().map(|evidence| evidence.state()),
        seal: generation.sealer().map(|sealer| sealer.state()),
        fleet: generation
            .fleet()
            .zip(generation.config.fleet.as_ref())
            .map(|(fleet, config)| {
                let (error, counts) = (fleet.error(), &metrics.fleet);
                let rejected = counts.rejected.iter().map(|count| count.load(Ordering::Relaxed));
                FleetStatus {
                    url: config.settings.address.to_string(),
                    connected: error.is_none(),
                    error,
                    subscription_error: fleet.subscription_error(),
                    calls: counts.calls.load(Ordering::Relaxed),
                    errors: counts.errors.load(Ordering::Relaxed),
                    copies_used: counts.copies_used.load(Ordering::Relaxed),
                    copies_rejected: rejected.sum(),
                }
            }),
        audit: Audit {
            lines: metrics.audit.totals().0,
            stalled: live.audit_logs().iter().any(|log| log.is_stalled()),
        },
        listen: listening.map(|(address, speaks)| Listens { address, speaks }).collect(),
        authority: generation.authority().map(Signer::of),
        trust_problems: (live.rejections().list().into_iter())
            .map(|rejection| TrustProblem::of(rejection, live.rejections(), &generation.config.audit.privacy))
            .collect(),
    })
}

pub(super) async fn config(State(context): State<Arc<Context>>) -> Json<InForce> {
    let generation = context.live.generation();
    let settings = generation.config.settings.iter();
    Json(InForce {
        generation: generation.number,
        file: context.service_info.file.clone(),
        settings: settings
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
    })
}

// === impl Signer ===

impl Signer {
    fn of(authority: &Authority) -> Self {
        Self {
            subject: authority.subject().to_owned(),
            fingerprint: authority.fingerprint(),
            not_after: Timestamp(authority.not_after()),
        }
    }
}

// === impl TrustProblem ===

impl TrustProblem {
    fn of(rejection: Rejection, rejections: &Rejections, privacy: &Privacy) -> Self {
        let user_agent = rejection.user_agent.as_deref();
        Self {
            fix: rejections.fix(user_agent),
            client: privacy.ip(rejection.client),
            user_agent: user_agent.map(|text| privacy.user_agent(text).into_owned()),
            origin: rejection.origin,
            kind: rejection.kind.as_str(),
            first: Timestamp(rejection.first),
            last: Timestamp(rejection.last),
            count: rejection.count,
        }
    }
}
