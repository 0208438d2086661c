//! Writes the text of all metrics with the crate prometheus-client.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, text},
    registry::Registry,
};

use super::{Format, Metrics, Snapshot, label::Label, page::Page};
use crate::{
    fleet::CopyRejection,
    text::micros_since_1970,
    usage::{Vocabulary, VocabularyPolicy},
};

#[derive(Debug)]
struct MetricsCollector {
    metrics: Arc<Metrics>,
    snapshot: Snapshot,
    format: Format,
}

pub(super) fn write(metrics: &Arc<Metrics>, snapshot: Snapshot, format: Format) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(MetricsCollector {
        metrics: metrics.clone(),
        snapshot,
        format,
    }));
    let mut out = String::with_capacity(32 * 1024);
    let _ = match format {
        Format::OpenMetrics => text::encode(&mut out, &registry),
        Format::Prometheus => text::encode_registry(&mut out, &registry),
    };
    out
}

impl Collector for MetricsCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page::new(encoder, self.format);
        self.requests(&mut page)?;
        self.pace(&mut page)?;
        self.robots(&mut page)?;
        self.evidence(&mut page)?;
        self.seal(&mut page)?;
        self.fleet(&mut page)?;
        self.connections(&mut page)?;
        self.audit(&mut page)?;
        self.program(&mut page)?;
        self.process(&mut page)
    }
}

// === impl MetricsCollector ===

impl MetricsCollector {
    fn requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        page.counters(
            "robotgate_decisions",
            "Decisions, by verdict, reason, bot, enforcement and whether the request was forwarded.",
            metrics.all_decisions().iter().flat_map(|(bot, decisions)| {
                let made = decisions.iter().filter(|counted| counted.count > 0);
                made.map(move |counted| {
                    let labels = [
                        ("verdict", counted.kind.verdict.as_str()),
                        ("reason", counted.kind.reason.as_str()),
                        ("bot", &**bot),
                        ("enforcement", counted.enforcement.as_str()),
                        ("forwarded", if counted.kind.forwarded { "true" } else { "false" }),
                    ];
                    (labels, counted.count)
                })
            }),
        )?;
        page.counters(
            "robotgate_requests",
            "Finished requests, by method and outcome.",
            std::iter::zip(super::Method::ALL, &metrics.requests).flat_map(|(method, outcomes)| {
                outcomes
                    .iter()
                    .map(move |(outcome, count)| ([("method", method.as_str()), ("outcome", outcome.as_str())], count))
            }),
        )?;
        page.counters(
            "robotgate_responses",
            "Responses to clients, by the class of their status.",
            labelled("class", metrics.responses.iter()),
        )?;
        let policies = [VocabularyPolicy::Report, VocabularyPolicy::Enforce];
        page.counters(
            "robotgate_usage",
            "Requests for which the site forbids a purpose of the bot, by vocabulary, purpose and the policy in [usage].",
            std::iter::zip(policies, &metrics.forbidden).flat_map(|(policy, vocabularies)| {
                std::iter::zip(Vocabulary::ALL, vocabularies).flat_map(move |(vocabulary, purposes)| {
                    let made = purposes.iter().filter(|(_, count)| *count > 0);
                    made.map(move |(purpose, count)| {
                        let labels = [
                            ("vocabulary", vocabulary.as_str()),
                            ("purpose", purpose.as_str()),
                            ("policy", policy.as_str()),
                        ];
                        (labels, count)
                    })
                })
            }),
        )?;
        page.counters(
            "robotgate_withdrawn",
            "Responses of sites that bots did not get, by the vocabulary and the purpose that the response forbids.",
            std::iter::zip(Vocabulary::ALL, &metrics.withdrawn).flat_map(|(vocabulary, purposes)| {
                let forbidden = purposes.iter().filter(|(_, count)| *count > 0);
                forbidden.map(move |(purpose, count)| {
                    let labels = [("vocabulary", vocabulary.as_str()), ("purpose", purpose.as_str())];
                    (labels, count)
                })
            }),
        )?;
        page.counters(
            "robotgate_errors",
            "Failed exchanges, by error type (those of RFC 9209, and robotgate's own).",
            labelled("type", metrics.errors.iter()),
        )?;
        page.counters(
            "robotgate_limits",
            "How often clients exceeded a limit, by its key in [proxy].",
            self.snapshot
                .limits
                .iter()
                .map(|(key, count)| ([("limit", *key)], *count)),
        )?;
        page.counter(
            "robotgate_malformed",
            "Requests that were refused because they are malformed.",
            metrics.malformed.load(Ordering::Relaxed),
        )?;
        page.counter(
            "robotgate_received_bytes",
            "Bytes of content received from clients, counted when an exchange ends.",
            metrics.bytes.get(super::RECEIVED),
        )?;
        page.counter(
            "robotgate_sent_bytes",
            "Bytes of content sent to clients, counted when an exchange ends.",
            metrics.bytes.get(super::SENT),
        )?;
        page.histogram(
            "robotgate_decision_seconds",
            "Time from a request's head to its decision, without the waits for a robots.txt and for its turn at a site.",
            &metrics.decision,
        )?;
        page.histogram(
            "robotgate_exchange_seconds",
            "Time from a request's head to the end of its exchange, without tunnels and WebSockets.",
            &metrics.exchange,
        )
    }

    fn pace(&self, page: &mut Page<'_>) -> fmt::Result {
        page.gauge(
            "robotgate_pace_waiting",
            "Requests that wait for their turn at a site.",
            self.snapshot.pace_waiting as u64,
        )?;
        page.histogram(
            "robotgate_pace_wait_seconds",
            "How long requests waited for their turn at a site; 0 if the turn came immediately.",
            &self.metrics.pace_wait,
        )
    }

    fn robots(&self, page: &mut Page<'_>) -> fmt::Result {
        let (metrics, snapshot) = (&self.metrics, &self.snapshot);
        let (memory, disk) = (&snapshot.memory, &snapshot.disk);
        page.histogram(
            "robotgate_robots_wait_seconds",
            "Time that requests waited for a robots.txt; 0 if a valid copy was in memory.",
            &metrics.robots_wait,
        )?;
        page.gauges(
            "robotgate_robots_copies",
            "Sites in memory, by the state of their robots.txt.",
            snapshot
                .copies
                .iter()
                .map(|(state, count)| ([("state", *state)], *count)),
        )?;
        page.counters(
            "robotgate_robots_fetches",
            "Finished fetches of a robots.txt, by result.",
            labelled("result", metrics.fetches.iter()),
        )?;
        page.counters(
            "robotgate_tdmrep_fetches",
            "Finished fetches of a tdmrep.json, by result.",
            labelled("result", metrics.tdmrep_fetches.iter()),
        )?;
        page.gauge(
            "robotgate_robots_fetches_running",
            "Fetches of a robots.txt that run or wait for their turn.",
            memory.fetches as u64,
        )?;
        page.gauge(
            "robotgate_robots_fetches_max",
            "Limit of robots.txt fetches that run at the same time.",
            snapshot.fetches_max as u64,
        )?;
        page.histogram(
            "robotgate_robots_fetch_seconds",
            "Time that fetches of a robots.txt took, without the wait for their turn.",
            &metrics.fetch,
        )?;
        page.counters(
            "robotgate_robots_changes",
            "Changes of robots.txt files, by their effect on recent requests to their sites.",
            labelled("effect", metrics.robots_changes.iter()),
        )?;
        page.gauge(
            "robotgate_cache_memory_bytes",
            "Memory that copies of robots.txt files use, in bytes.",
            memory.bytes,
        )?;
        page.gauge(
            "robotgate_tdmrep_memory_bytes",
            "Memory that copies of tdmrep.json files use, in bytes.",
            snapshot.tdmrep_bytes,
        )?;
        page.gauge(
            "robotgate_cache_memory_max_bytes",
            "Limit of the memory for copies of robots.txt files, in bytes.",
            memory.max_bytes,
        )?;
        page.gauges(
            "robotgate_cache_disk_bytes",
            "Bytes of robots.txt files and site records in the cache file (cache.path). The file itself is larger.",
            optional(disk.and_then(|disk| disk.bytes)),
        )?;
        page.gauges(
            "robotgate_cache_disk_max_bytes",
            "Limit of robotgate_cache_disk_bytes (cache.max-disk-bytes).",
            optional(disk.map(|disk| disk.max_bytes)),
        )?;
        page.gauges(
            "robotgate_cache_writes_waiting",
            "Sites whose latest state is not in the cache file yet.",
            optional(disk.map(|disk| disk.waiting as u64)),
        )?;
        page.gauge(
            "robotgate_cache_disk_fails",
            "1 while robotgate cannot use the file of cache.path.",
            snapshot.disk_fails.into(),
        )?;
        page.counters(
            "robotgate_cache_write_failures",
            "Failed writes to the file of cache.path.",
            optional(disk.map(|disk| disk.failures)),
        )
    }

    fn evidence(&self, page: &mut Page<'_>) -> fmt::Result {
        let evidence = self.snapshot.evidence.as_ref();
        page.gauges(
            "robotgate_evidence_texts",
            "Texts in the store of evidence.",
            optional(evidence.map(|evidence| evidence.texts)),
        )?;
        page.gauges(
            "robotgate_evidence_bytes",
            "Bytes of the compressed texts in the store of evidence.",
            optional(evidence.map(|evidence| evidence.bytes)),
        )?;
        page.gauges(
            "robotgate_evidence_max_bytes",
            "Limit of the compressed texts and the records about versions in the store of evidence, together.",
            optional(evidence.map(|evidence| evidence.max_bytes)),
        )?;
        page.gauges(
            "robotgate_evidence_fails",
            "1 while texts cannot be stored as evidence.",
            optional(evidence.map(|evidence| evidence.trouble.is_some().into())),
        )?;
        page.counters(
            "robotgate_evidence_failed",
            "Texts that were not stored as evidence before a decision was based on them.",
            optional(evidence.map(|evidence| evidence.failures)),
        )
    }

    fn seal(&self, page: &mut Page<'_>) -> fmt::Result {
        let seal = self.snapshot.seal;
        page.gauges(
            "robotgate_seal_lines",
            "Lines of the audit log that are sealed.",
            optional(seal.map(|seal| seal.lines)),
        )?;
        page.gauges(
            "robotgate_seal_fails",
            "1 while the audit log cannot be sealed.",
            optional(seal.map(|seal| seal.fails.into())),
        )
    }

    fn fleet(&self, page: &mut Page<'_>) -> fmt::Result {
        let (connected, counts) = (self.snapshot.fleet_connected, &self.metrics.fleet);
        let counted = |count: &AtomicU64| connected.map(|_| count.load(Ordering::Relaxed));
        page.gauges(
            "robotgate_fleet_connected",
            "1 while the fleet's server is used, 0 while robotgate works without it. Absent without a fleet.",
            optional(connected.map(u64::from)),
        )?;
        page.counters(
            "robotgate_fleet_calls",
            "Calls to the fleet's server.",
            optional(counted(&counts.calls)),
        )?;
        page.counters(
            "robotgate_fleet_errors",
            "Calls to the fleet's server that failed or took too long.",
            optional(counted(&counts.errors)),
        )?;
        page.counters(
            "robotgate_fleet_copies_used",
            "Copies of robots.txt files that another robotgate of the fleet had fetched and this robotgate used.",
            optional(counted(&counts.copies_used)),
        )?;
        page.counters(
            "robotgate_fleet_copies_rejected",
            "Copies on the fleet's server that were ignored, by reason.",
            std::iter::zip(CopyRejection::ALL, &counts.rejected)
                .filter_map(|(why, count)| Some(([("reason", why.as_str())], counted(count)?))),
        )
    }

    fn connections(&self, page: &mut Page<'_>) -> fmt::Result {
        let (metrics, snapshot) = (&self.metrics, &self.snapshot);
        page.gauges(
            "robotgate_connections",
            "Open client connections, by the protocol of their listener.",
            labelled("listener", metrics.connections.iter()),
        )?;
        page.gauge(
            "robotgate_connections_max",
            "Limit of client connections, from proxy.max-connections and the number of files that the process may \
             open.",
            snapshot.connections_max as u64,
        )?;
        page.gauges(
            "robotgate_client_limit",
            "Limit of one client, by its key in [proxy]: its value, or less if the process may open too few files.",
            snapshot
                .client_limits
                .map(|(key, limit)| ([("limit", key)], limit as u64)),
        )?;
        page.counters(
            "robotgate_connections_accepted",
            "Accepted client connections, by the protocol of their listener.",
            labelled("listener", metrics.connections_accepted.iter()),
        )?;
        page.gauges(
            "robotgate_tunnels",
            "Open CONNECTs and WebSockets, by kind.",
            labelled("kind", metrics.tunnels.iter()),
        )?;
        page.counters(
            "robotgate_tunnels_opened",
            "CONNECTs and WebSockets that have been opened, by kind.",
            labelled("kind", metrics.tunnels_opened.iter()),
        )?;
        page.gauge(
            "robotgate_leaves",
            "Certificates in memory that the authority issued for hosts.",
            snapshot.leaves as u64,
        )?;
        page.counter(
            "robotgate_leaves_minted",
            "Certificates for hosts that the authority has signed.",
            metrics.leaves_minted.load(Ordering::Relaxed),
        )?;
        if let Some(ends) = snapshot.authority_ends {
            page.gauge_f64(
                "robotgate_authority_not_after_timestamp_seconds",
                "When the authority's certificate expires, in seconds since 1970.",
                unix_time(ends),
            )?;
        }
        if let Some(ends) = snapshot.tunnel_entry_ends {
            page.gauge_f64(
                "robotgate_tunnel_entry_not_after_timestamp_seconds",
                "When the first [[https.tunnel]] entry ends or ended, in seconds since 1970.",
                unix_time(ends),
            )?;
        }
        page.counters(
            "robotgate_client_distrust",
            "How often clients rejected a certificate, most often because they do not trust the authority.",
            labelled("kind", metrics.distrust.iter()),
        )
    }

    fn audit(&self, page: &mut Page<'_>) -> fmt::Result {
        let (lines, bytes) = self.metrics.audit.totals();
        page.counter("robotgate_audit_lines", "Lines for the audit log.", lines)?;
        page.counter("robotgate_audit_bytes", "Bytes of lines for the audit log.", bytes)?;
        page.histogram(
            "robotgate_audit_wait_seconds",
            "Time that requests waited until their decision was in the audit log.",
            &self.metrics.audit_wait,
        )?;
        page.gauge(
            "robotgate_audit_waiting_bytes",
            "Bytes of lines that are not in the audit log yet.",
            self.snapshot.audit_waiting_bytes as u64,
        )?;
        page.gauge(
            "robotgate_audit_stalled",
            "1 while the audit log cannot be written and robotgate forwards nothing.",
            u64::from(self.snapshot.audit_stalled),
        )
    }

    fn program(&self, page: &mut Page<'_>) -> fmt::Result {
        let reloads = &self.metrics.reloads;
        let [last, last_good, ok, rejected] = [&reloads.last, &reloads.last_good, &reloads.ok, &reloads.rejected]
            .map(|number| number.load(Ordering::Relaxed));
        page.gauge(
            "robotgate_config_generation",
            "Number of the running configuration: 1 at the start, one more with each successful reload.",
            self.snapshot.generation,
        )?;
        page.gauge(
            "robotgate_config_last_reload_success",
            "1 if the last reload succeeded or there was none, 0 if it was rejected.",
            u64::from(last == last_good),
        )?;
        page.gauge_f64(
            "robotgate_config_last_reload_timestamp_seconds",
            "When the last reload ended, or robotgate started, in seconds since 1970.",
            seconds(last),
        )?;
        page.gauge_f64(
            "robotgate_config_last_reload_success_timestamp_seconds",
            "When the running configuration was loaded, in seconds since 1970.",
            seconds(last_good),
        )?;
        page.counters(
            "robotgate_config_reloads",
            "Reloads, by result.",
            [([("result", "ok")], ok), ([("result", "rejected")], rejected)],
        )?;
        page.gauges(
            "robotgate_build_info",
            "The running version; the value is always 1.",
            [([("version", crate::VERSION)], 1)],
        )?;
        page.gauge_f64(
            "robotgate_start_time_seconds",
            "When robotgate started, in seconds since 1970.",
            unix_time(self.metrics.started()),
        )?;
        page.gauge(
            "robotgate_draining",
            "1 while robotgate is stopping and waits for open exchanges to end.",
            u64::from(self.snapshot.draining),
        )
    }

    /// Writes the metrics that Prometheus recommends for every process:
    /// <https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>
    fn process(&self, page: &mut Page<'_>) -> fmt::Result {
        let process = &self.snapshot.process;
        if let Some(seconds) = process.cpu_seconds {
            page.counter_f64(
                "process_cpu_seconds",
                "CPU time that the process has used, in seconds.",
                seconds,
            )?;
        }
        // In the systemd service, `start_seconds` is `None`, because the service cannot read `/proc/stat`.
        page.gauge_f64(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970.",
            process
                .start_seconds
                .unwrap_or_else(|| unix_time(self.metrics.started())),
        )?;
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Resident memory of the process, in bytes.",
                process.resident_bytes,
            ),
            (
                "process_virtual_memory_bytes",
                "Virtual memory of the process, in bytes.",
                process.virtual_bytes,
            ),
            ("process_open_fds", "Open files of the process.", process.open_files),
            (
                "process_max_fds",
                "Limit of open files of the process.",
                process.max_files,
            ),
        ] {
            if let Some(value) = value {
                page.gauge(name, help, value)?;
            }
        }
        Ok(())
    }
}

fn labelled<L: Label>(
    name: &'static str,
    counts: impl Iterator<Item = (L, u64)>,
) -> impl Iterator<Item = ([(&'static str, &'static str); 1], u64)> {
    counts.map(move |(label, count)| ([(name, label.as_str())], count))
}

fn optional(value: Option<u64>) -> impl Iterator<Item = ([(&'static str, &'static str); 0], u64)> {
    value.into_iter().map(|value| ([], value))
}

fn unix_time(time: SystemTime) -> f64 {
    seconds(micros_since_1970(time))
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
