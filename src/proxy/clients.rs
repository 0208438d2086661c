//! Counts and limits the connections and requests of each client, so that one client cannot use up what all share. A
//! client is an IPv4 address, or the first half of an IPv6 address, because one host can use the whole second half (RFC
//! 4291 §2.5.4).
//!
//! The table of clients is locked when a connection begins and ends, but never for a request.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::limits::{Allowance, Limit, Tally};
use crate::{
    audit::ClientMask,
    config::{ClientLimits, Config},
    fetch::{Name, Requester},
};

/// All clients that are connected, and those that have used some of their allowance of certificates.
#[derive(Debug)]
pub(super) struct Clients {
    table: Mutex<ClientStates>,
    tally: Tally,
    mask: ArcSwapOption<ClientMask>,
    /// Permits for telling clients why their connection is refused. Without a permit, the client gets no response.
    pub(super) early_error: Arc<Semaphore>,
    /// The limit of open files allows one client at most this many connections, as many requests, and as many fetches.
    share: usize,
}

#[derive(Debug)]
struct ClientStates {
    clients: HashMap<IpAddr, Arc<ClientState>>,
    connections: usize,
    /// Maximum number of client connections that the limit of open files allows. Each counts as two open files: its own
    /// socket, and that of a connection to an origin.
    room: usize,
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct ClientState {
    connections: AtomicUsize,
    requests: AtomicUsize,
    /// The client's allowance of new certificates. `None` if it is unused.
    leaves: Mutex<Option<Allowance>>,
}

/// Counts one connection of a client until this guard is dropped.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    clients: Arc<Clients>,
    key: IpAddr,
    client: Arc<ClientState>,
}

#[derive(Debug)]
pub(super) struct RequestGuard(Arc<ConnectionGuard>);

// === impl Clients ===

impl Clients {
    pub(super) fn new(now: Instant, files: usize) -> Self {
        let others = OTHER_FILES + 2 * kept_connections(files);
        let room = (files.saturating_sub(others) / 2).max(1);
        Self {
            table: Mutex::new(ClientStates {
                clients: HashMap::new(),
                connections: 0,
                room,
                sweep_at: MANY,
            }),
            share: (room / SHARES).max(1),
            tally: Tally::new(now),
            mask: ArcSwapOption::empty(),
            early_error: Arc::new(Semaphore::new(TURNED_AWAY)),
        }
    }

    pub(super) fn set_mask(&self, mask: Option<ClientMask>) {
        self.mask.store(mask.map(Arc::new));
    }

    /// Returns a client's address for the operational log, masked if so configured (`audit.mask-client`).
    pub(super) fn for_log(&self, client: SocketAddr) -> SocketAddr {
        self.mask.load().as_ref().map_or(client, |mask| mask.client(client))
    }

    pub(super) fn exceeded(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.tally.totals()
    }

    pub(super) fn count_exceeded(&self, limit: Limit, client: SocketAddr) {
        self.tally.note(limit, self.for_log(client), Instant::now());
    }

    pub(super) fn beyond_files(config: &Config, files: usize) -> Vec<String> {
        let clients = Self::new(Instant::now(), files);
        let (limits, share, room) = (&config.proxy.limits, clients.share, clients.table.lock().room);
        let (all, one) = ("all clients together get", "one client gets");
        let keys = [
            ("proxy.max-connections", all, "connections", limits.connections, room),
            (
                "proxy.max-client-connections",
                one,
                "connections",
                limits.client_connections,
                share,
            ),
            (
                "proxy.max-client-requests",
                one,
                "requests",
                limits.client_requests,
                share,
            ),
            (
                "proxy.max-client-fetches",
                one,
                "robots.txt fetches",
                limits.client_fetches,
                share,
            ),
        ];
        // Operators did not choose the defaults, so these cause no warning.
        let is_written = |key: &&str| config.settings.iter().any(|(written, _)| written == *key);
        keys.into_iter()
            .filter(|(key, _, _, wanted, most)| wanted > most && is_written(key))
            .map(|(key, who, what, wanted, most)| {
                let shares = if who == all { 1 } else { SHARES };
                let needed = files_for(wanted.saturating_mul(shares));
                format!(
                    "this process may open {files} files, so {who} at most {most} {what}, not {wanted} ({key}); \
                     {wanted} need {needed} open files (LimitNOFILE of the unit, ulimit -n)"
                )
            })
            .collect()
    }

    pub(super) fn room(&self, limits: &ClientLimits) -> usize {
        limits.connections.min(self.table.lock().room)
    }

    /// Returns the limits for one client that also depend on the limit of open files: the key of each, and the limit
    /// that applies.
    pub(super) fn client_limits(&self, limits: &ClientLimits) -> [(&'static str, usize); 3] {
        [
            (Limit::ClientConnections, limits.client_connections),
            (Limit::ClientRequests, limits.client_requests),
            (Limit::ClientFetches, limits.client_fetches),
        ]
        .map(|(limit, configured)| (limit.key(), configured.min(self.share)))
    }

    pub(super) fn enter(
        self: &Arc<Self>,
        from: SocketAddr,
        limits: &ClientLimits,
        now: Instant,
    ) -> Result<Arc<ConnectionGuard>, Limit> {
        let key = key_of(from.ip());
        let mut table = self.table.lock();
        if table.connections >= limits.connections.min(table.room) {
            return Err(Limit::Connections);
        }
        if table.clients.len() >= table.sweep_at {
            table.clients.retain(|_, client| !client.is_forgettable(limits, now));
            table.sweep_at = MANY.max(2 * table.clients.len());
        }
        let client = table.clients.entry(key).or_default();
        if client.connections.load(Ordering::Relaxed) >= limits.client_connections.min(self.share) {
            return Err(Limit::ClientConnections);
        }
        client.connections.fetch_add(1, Ordering::Relaxed);
        let client = client.clone();
        table.connections += 1;
        drop(table);
        Ok(Arc::new(ConnectionGuard {
            clients: self.clone(),
            key,
            client,
        }))
    }

    pub(super) fn connections(&self) -> usize {
        self.table.lock().connections
    }
}

// === impl ClientState ===

impl ClientState {
    /// Returns whether the table can forget this client, because its state equals that of a client that was never seen.
    fn is_forgettable(&self, limits: &ClientLimits, now: Instant) -> bool {
        let is_full = |leaves: Allowance| leaves.is_full(limits.client_leaves, MINUTE, now);
        self.connections.load(Ordering::Relaxed) == 0 && self.leaves.lock().is_none_or(is_full)
    }
}

// === impl ConnectionGuard ===

impl ConnectionGuard {
    pub(super) fn begin_request(self: &Arc<Self>, limits: &ClientLimits) -> Result<RequestGuard, Limit> {
        let before = self.client.requests.fetch_add(1, Ordering::Relaxed);
        // Create the guard before the check. If the check fails, dropping the guard subtracts this request again.
        let request_guard = RequestGuard(self.clone());
        if before >= limits.client_requests.min(self.clients.share) {
            return Err(Limit::ClientRequests);
        }
        Ok(request_guard)
    }

    pub(super) fn requester(&self, limits: &ClientLimits) -> Requester {
        Requester {
            name: Name::Client(self.key),
            max_fetches: limits.client_fetches.min(self.clients.share),
        }
    }

    pub(super) fn take_leaf(&self, limits: &ClientLimits, now: Instant) -> Result<(), Limit> {
        let mut leaves = self.client.leaves.lock();
        let leaves = leaves.get_or_insert_with(|| Allowance::full(limits.client_leaves, now));
        match leaves.take(limits.client_leaves, MINUTE, now) {
            true => Ok(()),
            false => Err(Limit::ClientLeaves),
        }
    }

    pub(super) fn key(&self) -> IpAddr {
        self.key
    }

    pub(super) fn count_exceeded(&self, limit: Limit, client: SocketAddr) {
        self.clients.count_exceeded(limit, client);
    }

    pub(super) fn for_log(&self, client: SocketAddr) -> SocketAddr {
        self.clients.for_log(client)
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut table = self.clients.table.lock();
        table.connections = table.connections.saturating_sub(1);
        let left = self.client.connections.fetch_sub(1, Ordering::Relaxed);
        // Keep a client that has used some of its allowance, so that reconnecting does not refill the allowance.
        if left == 1 && self.client.leaves.lock().is_none() {
            table.clients.remove(&self.key);
        }
    }
}

// === impl RequestGuard ===

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.client.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit
        .current
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

/// Returns how many idle connections to origins to keep, separately for HTTP/1.1 and HTTP/2.
pub(super) fn kept_connections(files: usize) -> usize {
    (files / 32).clamp(16, 1024)
}

fn files_for(connections: usize) -> usize {
    let without_kept = connections.saturating_mul(2).saturating_add(OTHER_FILES);
    let mut files = without_kept;
    // If the process may open more files, robotgate also keeps more idle connections, which need open files themselves.
    // The loop ends, because the number of idle connections has a maximum.
    loop {
        let needed = without_kept.saturating_add(2 * kept_connections(files));
        if needed == files {
            return files;
        }
        files = needed;
    }
}

fn key_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

const MINUTE: Duration = Duration::from_secs(60);
/// A table with fewer clients than this is not searched for clients to forget.
const MANY: usize = 1024;
/// Number of open files, including sockets, for other purposes than client connections and idle connections to origins:
/// for logs, stored robots.txt copies, requests to name servers, and fetches.
const OTHER_FILES: usize = 64;
/// The limit of open files allows a number of connections. One client may use 1/`SHARES` of them.
const SHARES: usize = 4;
/// Maximum number of refused connections to which robotgate responds at the same time.
const TURNED_AWAY: usize = 256;

#[cfg(test)]
mod tests;
