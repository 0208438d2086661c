//! Reads the metrics that are not counted while requests are served, such as the number of known sites.

use std::{sync::Arc, time::SystemTime};

use super::{generation::Generation, live::Live};
use crate::{
    authority::Authority,
    config::TunnelException,
    copy::AnswerKind,
    metrics::{DiskUse, Format, Metrics, Process, Snapshot},
    store::Disk,
};

impl Live {
    /// Returns the counters of the metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns all metrics as text. Blocks for some milliseconds if many origins are known.
    pub fn metrics_text(&self, format: Format) -> String {
        self.metrics.text(self.snapshot(), format)
    }

    /// Reads the metrics that are not counted while requests are served. Blocks as long as
    /// [`metrics_text`](Self::metrics_text).
    pub fn snapshot(&self) -> Snapshot {
        let generation = self.generation();
        let leaves = generation.leaves.as_ref();
        let logs = self.audit_logs();
        Snapshot {
            generation: generation.number,
            draining: self.is_stopping(),
            limits: self.clients.exceeded().collect(),
            memory: self.store().memory(),
            tdmrep_bytes: generation.tdmrep.memory().bytes,
            pace_waiting: generation.pacer.as_ref().map_or(0, |pacer| pacer.local.waiting()),
            copies: self.copies(&generation),
            disk: self.store().disk().map(disk_use),
            disk_fails: self.store().disk_trouble().is_some(),
            evidence: generation.evidence().map(|evidence| evidence.state()),
            seal: generation.sealer().map(|sealer| sealer.state()),
            fleet_connected: generation.fleet().map(|fleet| fleet.error().is_none()),
            leaves: leaves.map_or(0, |leaves| leaves.len()),
            connections_max: self.clients.room(&generation.config.proxy.limits),
            client_limits: self.clients.client_limits(&generation.config.proxy.limits),
            fetches_max: generation.config.robots.max_fetches,
            authority_ends: generation.authority().map(Authority::not_after),
            tunnel_entry_ends: first_end(&generation.config.https.tunnels),
            audit_waiting_bytes: logs.iter().map(|log| log.waiting_bytes()).sum(),
            audit_stalled: logs.iter().any(|log| log.is_stalled()),
            process: Process::read(),
        }
    }

    /// Counts the origins in memory by the kind of answer that applies to them, such as `rules` or `unreachable`.
    fn copies(&self, generation: &Generation) -> Vec<(&'static str, u64)> {
        let mut counts = AnswerKind::ALL.map(|holds| (holds.as_str(), 0));
        let now = SystemTime::now();
        self.store().each_state(|state| {
            if !state.is_known() {
                return;
            }
            let holds = state.answer(now, &generation.terms.policy).holds();
            counts[holds as usize].1 += 1;
        });
        counts.into()
    }
}

fn disk_use(disk: &Disk) -> DiskUse {
    let (bytes, max_bytes) = disk.bytes();
    DiskUse {
        bytes,
        max_bytes,
        waiting: disk.waiting(),
        failures: disk.failures(),
    }
}

/// Returns the earliest end of the entries, even if it is in the past, so that the alert in
/// `conf/prometheus-alerts.yml` goes on until somebody removes the ended entry.
fn first_end(entries: &[TunnelException]) -> Option<SystemTime> {
    entries.iter().map(|entry| entry.until).min()
}
