//! The metrics whose values other modules keep.

use std::time::SystemTime;

use super::Process;
use crate::{evidence::EvidenceState, seal::SealState, store::Memory};

/// Values that are read when Prometheus asks for the metrics.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// 1 at the start, and one more after each successful reload.
    pub generation: u64,
    pub draining: bool,
    /// For some limits of `[proxy]`: the key, and how many times clients exceeded the limit.
    pub limits: Vec<(&'static str, u64)>,
    pub memory: Memory,
    /// Memory that the `tdmrep.json` files use.
    pub tdmrep_bytes: u64,
    /// Requests that wait for their turn at a site.
    pub pace_waiting: usize,
    /// For each kind of answer, such as `rules` or `unreachable`, the number of origins in memory to which it applies.
    pub copies: Vec<(&'static str, u64)>,
    /// `None` if copies are only kept in memory.
    pub disk: Option<DiskUse>,
    /// Whether robotgate cannot use the cache file.
    pub disk_fails: bool,
    pub evidence: Option<EvidenceState>,
    /// `None` if the audit log is not sealed.
    pub seal: Option<SealState>,
    /// Whether the fleet's server can be used; `None` without a fleet.
    pub fleet_connected: Option<bool>,
    pub leaves: usize,
    pub connections_max: usize,
    /// The limits for one client that are lower than configured if the process may open too few files: the key of each,
    /// and the limit that applies.
    pub client_limits: [(&'static str, usize); 3],
    pub fetches_max: usize,
    pub authority_ends: Option<SystemTime>,
    /// The earliest time at which one of the `[[https.tunnel]]` entries ends or ended.
    pub tunnel_entry_ends: Option<SystemTime>,
    /// Bytes that wait to be written to the audit log.
    pub audit_waiting_bytes: usize,
    pub audit_stalled: bool,
    pub process: Process,
}

/// How much room the robots.txt copies take on disk.
#[derive(Debug, Clone, Copy)]
pub struct DiskUse {
    /// Approximate size of the robots.txt texts and the records in the cache file. `None` while the file cannot be
    /// used.
    pub bytes: Option<u64>,
    pub max_bytes: u64,
    /// Number of origins whose robots.txt copies wait to be written.
    pub waiting: usize,
    pub failures: u64,
}
