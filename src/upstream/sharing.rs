//! The HTTP/2 connections that several requests share. If several requests need a connection to the same server, one
//! opens it and the others wait for it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::SetOnce;

use super::{
    http2::SharedConnection,
    pool::{PoolKey, SHARDS, Shards},
};

#[derive(Debug)]
pub struct Sharing {
    servers: Shards<ServerState>,
    /// Once a shard has this many connections, each new connection causes an idle one to be closed.
    max: usize,
}

#[derive(Debug, Default)]
struct ServerState {
    connections: Vec<Connection>,
    /// `Some` while a request opens a connection that others wait for. The value says whether they can share it.
    opening: Option<Arc<SetOnce<bool>>>,
    /// Until this time, the server is assumed to have no HTTP/2, so requests do not wait for a connection to share.
    http1_until: Option<Instant>,
}

#[derive(Debug)]
struct Connection {
    shared: SharedConnection,
    used: Instant,
}

/// What a request does after it has found no connection that it can share.
#[derive(Debug)]
pub enum NextStep<'a> {
    /// Another request has opened this connection in the meantime.
    Use(SharedConnection),
    /// Open a connection. Other requests wait for it.
    Open(OpeningGuard<'a>),
    /// Open a connection. Other requests can do so at the same time.
    OpenAlone,
}

/// A connection that is being opened. Dropping the guard wakes the requests that wait for the connection.
#[derive(Debug)]
pub struct OpeningGuard<'a> {
    sharing: &'a Sharing,
    key: PoolKey,
    made: Arc<SetOnce<bool>>,
    is_shared: bool,
}

// === impl Sharing ===

impl Sharing {
    pub fn new(max: usize) -> Self {
        Self {
            servers: Shards::new(),
            max: max.div_ceil(SHARDS),
        }
    }

    pub fn existing(&self, key: &PoolKey, content: bool, now: Instant) -> Option<SharedConnection> {
        self.servers.of(key).get_mut(key)?.existing(content, now)
    }

    /// Decides how a request gets a connection. Waits if another request is just opening a connection that both could
    /// share.
    pub async fn next_step(&self, key: &PoolKey, content: bool) -> NextStep<'_> {
        for _ in 0..MAX_WAITS {
            let made = {
                let mut shard = self.servers.of(key);
                let servers = shard.entry(key.clone()).or_default();
                let now = Instant::now();
                if let Some(shared) = servers.existing(content, now) {
                    return NextStep::Use(shared);
                }
                match &servers.opening {
                    _ if servers.http1_until.is_some_and(|until| until > now) => return NextStep::OpenAlone,
                    // A connection carries only one request with content at a time.
                    Some(_) if content => return NextStep::OpenAlone,
                    Some(made) => made.clone(),
                    None => {
                        let made = Arc::new(SetOnce::new());
                        servers.opening = Some(made.clone());
                        return NextStep::Open(OpeningGuard {
                            sharing: self,
                            key: key.clone(),
                            made,
                            is_shared: false,
                        });
                    }
                }
            };
            if !*made.wait().await {
                return NextStep::OpenAlone;
            }
        }
        NextStep::OpenAlone
    }

    /// Lets requests share this connection. If its shard is full, closes the least recently used idle connection there.
    pub fn keep(&self, key: &PoolKey, shared: SharedConnection, now: Instant) {
        let mut shard = self.servers.of(key);
        let count: usize = shard.values().map(|servers| servers.connections.len()).sum();
        let surplus = match count >= self.max {
            true => least_recently_used(&mut shard),
            false => None,
        };
        let servers = shard.entry(key.clone()).or_default();
        servers.http1_until = None;
        servers.connections.push(Connection { shared, used: now });
        drop(shard);
        if let Some(surplus) = surplus {
            surplus.close();
        }
    }

    /// Records that a server did not choose HTTP/2 in the TLS handshake.
    pub fn note_http1(&self, key: &PoolKey, now: Instant) {
        let mut shard = self.servers.of(key);
        if shard.len() < MAX_KNOWN {
            shard.entry(key.clone()).or_default().http1_until = Some(now + HTTP1_FOR);
        }
    }

    /// Removes closed connections and empty server states. Returns whether any server state is left.
    pub fn sweep(&self, now: Instant) -> bool {
        let mut is_left = false;
        for mut shard in self.servers.each() {
            let mut gone = Vec::new();
            shard.retain(|_, servers| {
                gone.extend(servers.connections.extract_if(.., |one| one.shared.is_closed()));
                servers.http1_until = servers.http1_until.filter(|until| *until > now);
                !servers.is_empty()
            });
            is_left |= !shard.is_empty();
            drop(shard);
        }
        is_left
    }
}

/// Removes and returns the least recently used idle connection of the shard.
fn least_recently_used(shard: &mut HashMap<PoolKey, ServerState>) -> Option<SharedConnection> {
    let idle = shard.values_mut().flat_map(|servers| {
        let same = servers.connections.iter().enumerate();
        let oldest = same.filter(|(_, one)| one.shared.is_idle());
        let oldest = oldest.min_by_key(|(_, one)| one.used).map(|(at, one)| (at, one.used));
        oldest.map(|(at, used)| (used, at, servers))
    });
    let (_, at, servers) = idle.min_by_key(|(used, ..)| *used)?;
    Some(servers.connections.swap_remove(at).shared)
}

// === impl ServerState ===

impl ServerState {
    fn existing(&mut self, content: bool, now: Instant) -> Option<SharedConnection> {
        let mut all = self.connections.iter_mut();
        let one = all.find(|one| one.shared.has_room(content))?;
        one.used = now;
        Some(one.shared.clone())
    }

    fn is_empty(&self) -> bool {
        self.connections.is_empty() && self.opening.is_none() && self.http1_until.is_none()
    }
}

// === impl OpeningGuard ===

impl OpeningGuard<'_> {
    /// Tells the waiting requests that they can share the connection. Call [`Sharing::keep`] first.
    pub fn share(mut self) {
        self.is_shared = true;
    }
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        let mut shard = self.sharing.servers.of(&self.key);
        if let Some(servers) = shard.get_mut(&self.key) {
            servers.opening = None;
            if servers.is_empty() {
                shard.remove(&self.key);
            }
        }
        drop(shard);
        // This cannot fail, because no other code sets `made`.
        let _ = self.made.set(self.is_shared);
    }
}

/// How many times a request waits for another request's connection, before it opens its own. With more waits, many
/// requests would get their connections one after the other.
const MAX_WAITS: usize = 2;
/// How long a server is assumed to support only HTTP/1.1. New connections still offer it HTTP/2.
const HTTP1_FOR: Duration = Duration::from_secs(60);
/// In a shard with this many servers, [`Sharing::note_http1`] records nothing.
const MAX_KNOWN: usize = 256;

#[cfg(test)]
mod tests;
