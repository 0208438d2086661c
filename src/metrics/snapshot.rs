//! The metrics that no counter holds: their values are read when Prometheus asks for the metrics.

use std::time::SystemTime;

use super::Process;
use crate::{evidence::EvidenceState, seal::SealState, store::Memory};

/// Values that are read when Prometheus asks for the metrics.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The number of the current configuration: 1 at the start, one more with each reload.
    pub generation: u64,
    pub draining: bool,
    /// For each limit, its key in `[proxy]`, and how many times the limit was exceeded.
    pub limits: Vec<(&'static str, u64)>,
    pub memory: Memory,
    /// Memory that the `tdmrep.json` files use, in bytes.
    pub tdmrep_bytes: u64,
    /// Number of requests that wait for their turn at a site.
    pub pace_waiting: usize,
    /// Number of origins in memory for each state of their robots.txt.
    pub copies: Vec<(&'static str, u64)>,
    /// The robots.txt copies on disk. `None` if copies are only kept in memory.
    pub disk: Option<DiskUse>,
    /// Whether robots.txt copies that should be on disk are only in memory, or cannot be written at present.
    pub disk_fails: bool,
    /// The state of the store of evidence, if there is one.
    pub evidence: Option<EvidenceState>,
    /// The state of the sealing of the audit log, if the proxy seals it.
    pub seal: Option<SealState>,
    /// Whether the fleet's server can be used; `None` without a fleet.
    pub fleet_connected: Option<bool>,
    /// Number of leaf certificates in memory.
    pub leaves: usize,
    /// Maximum number of connections at the same time, and of fetches at the same time.
    pub connections_max: usize,
    pub fetches_max: usize,
    /// When the certificate of the local authority expires; `None` without an authority.
    pub authority_ends: Option<SystemTime>,
    /// Number of bytes that wait to be written to the audit log, and whether its output accepts no bytes at present.
    pub audit_waiting_bytes: usize,
    pub audit_stalled: bool,
    pub process: Process,
}

/// How much room the robots.txt copies take on disk.
#[derive(Debug, Clone, Copy)]
pub struct DiskUse {
    /// Bytes that the robots.txt copies take (`None` while the file cannot be used), and their maximum.
    pub bytes: Option<u64>,
    pub max_bytes: u64,
    /// Number of origins whose robots.txt copies wait to be written.
    pub waiting: usize,
    /// Number of writes that failed.
    pub failures: u64,
}
