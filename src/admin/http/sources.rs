//! What answers tell that is known elsewhere.

use std::{collections::BTreeMap, net::IpAddr, net::SocketAddr, path::PathBuf, time::SystemTime};

use serde::Serialize;

use crate::{proxy::Speaks, store::VerdictCounts, text::Timestamp};

/// Who knows it. It is asked for each answer, and must not block.
pub trait Sources: Send + Sync {
    /// What was counted since the start.
    fn numbers(&self) -> Numbers;

    /// What came of the last reload, if there was one.
    fn last_reload(&self) -> Option<LastReload>;

    /// When the configuration in force was put in force.
    fn loaded(&self) -> Option<SystemTime>;

    /// Where robotgate listens.
    fn listens(&self) -> Vec<Listens>;

    /// The configuration in force, as its file has it.
    fn settings(&self) -> Settings;

    /// The authority whose certificates clients see, where there is one.
    fn authority(&self) -> Option<Authority>;

    /// Clients that do not trust it.
    fn trust_problems(&self) -> Vec<TrustProblem>;

    /// What `path` (`/ca.pem`, `/ca.crt`, `/trust`) shows of the authority; `accept` is the request's field.
    fn trust(&self, path: &str, accept: Option<&str>) -> Option<Document>;

    /// All metrics, in the format that suits `accept`.
    fn metrics(&self, accept: Option<&str>) -> Option<Document>;
}

/// Something to be shown as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub media_type: &'static str,
    pub content: Vec<u8>,
}

/// Counts since the start, and what there is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Numbers {
    pub decisions: VerdictCounts,
    pub requests: u64,
    /// Now.
    pub connections: u64,
    pub tunnels: u64,
    pub audit: Audit,
}

/// The audit log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    pub lines: u64,
    /// Whether it takes nothing now.
    pub stalled: bool,
}

/// A reload and what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct LastReload {
    pub time: Timestamp,
    pub cause: String,
    pub ok: bool,
    pub error: Option<String>,
    /// The one in force since.
    pub generation: u64,
    pub changes: Vec<String>,
    /// Keys that take effect at the next start.
    pub restart_needed: Vec<String>,
}

/// A place where robotgate listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Listens {
    pub address: SocketAddr,
    pub speaks: Speaks,
}

/// The configuration as its file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Settings {
    pub file: Option<PathBuf>,
    /// By dotted key; what is secret is not told.
    pub settings: BTreeMap<String, String>,
}

/// The authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Authority {
    pub subject: String,
    pub fingerprint: String,
    pub not_after: Timestamp,
}

/// A client that does not trust the authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustProblem {
    pub client: IpAddr,
    pub user_agent: Option<String>,
    pub origin: String,
    /// `distrust`, or `closed` where it went without a word.
    pub kind: &'static str,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    pub fix: String,
}
