//! What the admin listener tells of that is known elsewhere. Each has a default that says nothing.

use std::{collections::BTreeMap, net::IpAddr, net::SocketAddr, path::PathBuf, time::SystemTime};

use serde::Serialize;

use crate::{proxy::Speaks, text::Timestamp};

/// Who knows the rest. It is asked for each answer, and must not block.
pub trait Sources: Send + Sync {
    /// What was counted since the start.
    fn numbers(&self) -> Numbers {
        Numbers::default()
    }

    /// What came of the last reload, if there was one.
    fn last_reload(&self) -> Option<LastReload> {
        None
    }

    /// When the configuration in force was put in force.
    fn loaded(&self) -> Option<SystemTime> {
        None
    }

    /// Where robotgate listens.
    fn listens(&self) -> Vec<Listens> {
        Vec::new()
    }

    /// The configuration in force, as its file has it.
    fn settings(&self) -> Settings {
        Settings::default()
    }

    /// The authority whose certificates clients see, where there is one.
    fn authority(&self) -> Option<Authority> {
        None
    }

    /// Clients that do not trust it.
    fn trust_problems(&self) -> Vec<TrustProblem> {
        Vec::new()
    }

    /// What `path` (`/ca.pem`, `/ca.crt`, `/trust`) shows of the authority; `accept` is the request's field.
    fn trust(&self, _path: &str, _accept: Option<&str>) -> Option<Document> {
        None
    }

    /// All metrics, in the format that suits `accept`.
    fn metrics(&self, _accept: Option<&str>) -> Option<Document> {
        None
    }
}

/// Says nothing.
impl Sources for () {}

/// Something to be shown as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub media_type: &'static str,
    pub content: Vec<u8>,
}

/// Counts since the start, and what there is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Decisions by verdict.
    pub allow: u64,
    pub deny: u64,
    pub unverifiable: u64,
    pub requests: u64,
    /// Now.
    pub connections: u64,
    pub tunnels: u64,
    /// Lines of the audit log.
    pub audit_lines: u64,
    /// Whether the audit log takes nothing now.
    pub audit_stalled: bool,
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
