//! The clients that are connected: how many connections and requests each has, so that none takes what the others need.
//!
//! A client is an IPv4 address, or the first half of an IPv6 one, which is what one host has at will (RFC 4291 §2.5.4).
//! The table is locked when a connection begins and ends, and never for a request.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

use super::limits::{Allowance, Limit, Tally};
use crate::{
    config::Limits,
    fetch::{Name, Requester},
};

/// All of them.
#[derive(Debug)]
pub(super) struct Clients {
    table: Mutex<Table>,
    pub(super) tally: Tally,
    /// Turns of those that are not let in and are told why. Past them, connections are closed without a word.
    pub(super) turned_away: Arc<Semaphore>,
    /// As many files as one client may have opened for it, where the process may open few.
    share: usize,
}

#[derive(Debug)]
struct Table {
    clients: HashMap<IpAddr, Arc<Client>>,
    /// Of all clients.
    connections: usize,
    /// As many connections as there are files for, of which each takes two: its own and its origin's.
    room: usize,
    /// With so many clients, it is looked for some to forget.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Client {
    connections: AtomicUsize,
    requests: AtomicUsize,
    /// What is left of the certificates that it may have made; `None` where it has asked for none.
    leaves: Mutex<Option<Allowance>>,
}

/// Counts a connection of a client until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    clients: Arc<Clients>,
    key: IpAddr,
    client: Arc<Client>,
}

/// Counts a request of a client until it is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard(Arc<ConnectionGuard>);

// === impl Clients ===

impl Clients {
    /// For a process that may have so many files open.
    pub(super) fn new(now: Instant, files: usize) -> Self {
        let others = OTHER_FILES + 2 * kept_connections(files);
        let room = (files.saturating_sub(others) / 2).max(1);
        Self {
            table: Mutex::new(Table {
                clients: HashMap::new(),
                connections: 0,
                room,
                sweep_at: MANY,
            }),
            share: (room / SHARES).max(1),
            tally: Tally::new(now),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
        }
    }

    /// How many connections there may be.
    pub(super) fn room(&self, limits: &Limits) -> usize {
        limits.connections.min(self.table().room)
    }

    /// Lets a client in, with one more connection.
    ///
    /// # Errors
    /// It has as many as it may have, or all clients together have.
    pub(super) fn enter(
        self: &Arc<Self>,
        from: SocketAddr,
        limits: &Limits,
        now: Instant,
    ) -> Result<Arc<ConnectionGuard>, Limit> {
        let key = key_of(from.ip());
        let mut table = self.table();
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

    /// How many connections there are.
    pub(super) fn connections(&self) -> usize {
        self.table().connections
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Client ===

impl Client {
    /// Whether a new client in its place would be the same.
    fn is_forgettable(&self, limits: &Limits, now: Instant) -> bool {
        let is_full = |leaves: Allowance| leaves.is_full(limits.client_leaves, MINUTE, now);
        self.connections.load(Ordering::Relaxed) == 0 && self.leaves().is_none_or(is_full)
    }

    fn leaves(&self) -> std::sync::MutexGuard<'_, Option<Allowance>> {
        self.leaves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ConnectionGuard ===

impl ConnectionGuard {
    /// Begins a request.
    ///
    /// # Errors
    /// The client has as many under way as it may have.
    pub(super) fn begin_request(self: &Arc<Self>, limits: &Limits) -> Result<RequestGuard, Limit> {
        let before = self.client.requests.fetch_add(1, Ordering::Relaxed);
        // Made first, so that it takes back what was counted.
        let request_guard = RequestGuard(self.clone());
        if before >= limits.client_requests.min(self.clients.share) {
            return Err(Limit::ClientRequests);
        }
        Ok(request_guard)
    }

    /// The client, as one that has robots.txt files fetched.
    pub(super) fn requester(&self, limits: &Limits) -> Requester {
        Requester {
            name: Name::Client(self.key),
            max_fetches: limits.client_fetches.min(self.clients.share),
        }
    }

    /// Takes one of the certificates that the client may have made for new hosts in a minute.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn take_leaf(&self, limits: &Limits, now: Instant) -> Result<(), Limit> {
        let mut leaves = self.client.leaves();
        let leaves = leaves.get_or_insert_with(|| Allowance::full(limits.client_leaves, now));
        match leaves.take(limits.client_leaves, MINUTE, now) {
            true => Ok(()),
            false => Err(Limit::ClientLeaves),
        }
    }

    /// The client, as it is told from others.
    pub(super) fn key(&self) -> IpAddr {
        self.key
    }

    /// Counts that this client exceeded a limit.
    pub(super) fn count_exceeded(&self, limit: Limit, client: SocketAddr) {
        self.clients.tally.note(limit, client, Instant::now());
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut table = self.clients.table();
        table.connections = table.connections.saturating_sub(1);
        let left = self.client.connections.fetch_sub(1, Ordering::Relaxed);
        // What it has used of an allowance is kept in mind; else coming back would fill it.
        if left == 1 && self.client.leaves().is_none() {
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

/// As many connections to origins wait for another request, of HTTP/1.1 and of HTTP/2 each, in a process that may have so many
/// files open.
pub(super) fn kept_connections(files: usize) -> usize {
    (files / 32).clamp(16, 1024)
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
/// Clients that are remembered before it is looked for some to forget.
const MANY: usize = 1024;
/// Files beside those of connections: logs, copies, name servers, fetches of robots.txt files.
const OTHER_FILES: usize = 64;
/// One client has no more than one of so many parts of the connections that there are files for.
const SHARES: usize = 4;
/// How many are told at once that they are not let in.
const TURNED_AWAY: usize = 256;

#[cfg(test)]
mod tests;
