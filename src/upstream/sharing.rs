//! The connections of HTTP/2 that requests share, and those that are being made for several requests at once.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::SetOnce;

use super::{
    http2::SharedConnection,
    pool::{Key, SHARDS, Shards},
};

/// All of them, by the server that they lead to.
#[derive(Debug)]
pub struct Sharing {
    known: Shards<Known>,
    /// Connections in one part of the map past which one without a request is closed for each new one.
    max: usize,
}

/// What is known of the connections to one server.
#[derive(Debug, Default)]
struct Known {
    connections: Vec<Connection>,
    /// Set while one is made that others wait for; then whether it was one to share.
    making: Option<Arc<SetOnce<bool>>>,
    /// Until when the server is taken to speak HTTP/1.1 alone, so that nobody waits for another's connection.
    http1_until: Option<Instant>,
}

#[derive(Debug)]
struct Connection {
    shared: SharedConnection,
    /// When it was last given out.
    used: Instant,
}

/// What becomes of a request that finds no connection.
#[derive(Debug)]
pub enum Turn<'a> {
    /// Somebody has made one meanwhile.
    There(SharedConnection),
    /// It makes one that others wait for.
    First(Making<'a>),
    /// It makes one, and so may others at the same time.
    Alone,
}

/// A connection that is being made. When this is dropped, those who wait for it go on.
#[derive(Debug)]
pub struct Making<'a> {
    sharing: &'a Sharing,
    key: Key,
    made: Arc<SetOnce<bool>>,
    is_shared: bool,
}

// === impl Sharing ===

impl Sharing {
    /// Past about `max` connections, those without a request are closed.
    pub fn new(max: usize) -> Self {
        Self {
            known: Shards::new(),
            max: max.div_ceil(SHARDS),
        }
    }

    /// A connection that takes another request, one with `content` or one without.
    pub fn there(&self, key: &Key, content: bool, now: Instant) -> Option<SharedConnection> {
        self.known.of(key).get_mut(key)?.there(content, now)
    }

    /// Finds out who makes the connection that a request needs, which may take as long as a connection does.
    pub async fn turn(&self, key: &Key, content: bool) -> Turn<'_> {
        for _ in 0..MAX_WAITS {
            let made = {
                let mut shard = self.known.of(key);
                let known = shard.entry(key.clone()).or_default();
                let now = Instant::now();
                if let Some(shared) = known.there(content, now) {
                    return Turn::There(shared);
                }
                match &known.making {
                    _ if known.http1_until.is_some_and(|until| until > now) => return Turn::Alone,
                    // A connection has one request with content at a time.
                    Some(_) if content => return Turn::Alone,
                    Some(made) => made.clone(),
                    None => {
                        let made = Arc::new(SetOnce::new());
                        known.making = Some(made.clone());
                        return Turn::First(Making {
                            sharing: self,
                            key: key.clone(),
                            made,
                            is_shared: false,
                        });
                    }
                }
            };
            if !*made.wait().await {
                return Turn::Alone;
            }
        }
        Turn::Alone
    }

    /// Shares a new connection. Where there are too many, the one without a request that was used least recently is
    /// closed; those that have requests are as many as these need.
    pub fn keep(&self, key: &Key, shared: SharedConnection, now: Instant) {
        let mut shard = self.known.of(key);
        let count: usize = shard.values().map(|known| known.connections.len()).sum();
        let surplus = match count >= self.max {
            true => least_recently_used(&mut shard),
            false => None,
        };
        let known = shard.entry(key.clone()).or_default();
        known.http1_until = None;
        known.connections.push(Connection { shared, used: now });
        drop(shard);
        if let Some(surplus) = surplus {
            surplus.close();
        }
    }

    /// Notes that a server did not agree on HTTP/2.
    pub fn note_http1(&self, key: &Key, now: Instant) {
        let mut shard = self.known.of(key);
        if shard.len() < MAX_KNOWN {
            shard.entry(key.clone()).or_default().http1_until = Some(now + HTTP1_FOR);
        }
    }

    /// Forgets what has ended. Whether anything is left.
    pub fn sweep(&self, now: Instant) -> bool {
        let mut is_left = false;
        for mut shard in self.known.each() {
            let mut gone = Vec::new();
            shard.retain(|_, known| {
                gone.extend(known.connections.extract_if(.., |one| one.shared.is_closed()));
                known.http1_until = known.http1_until.filter(|until| *until > now);
                !known.is_empty()
            });
            is_left |= !shard.is_empty();
            drop(shard);
        }
        is_left
    }
}

/// Takes out the connection without a request that was used least recently.
fn least_recently_used(shard: &mut HashMap<Key, Known>) -> Option<SharedConnection> {
    let idle = shard.values_mut().flat_map(|known| {
        let same = known.connections.iter().enumerate();
        let oldest = same.filter(|(_, one)| one.shared.is_idle());
        let oldest = oldest.min_by_key(|(_, one)| one.used).map(|(at, one)| (at, one.used));
        oldest.map(|(at, used)| (used, at, known))
    });
    let (_, at, known) = idle.min_by_key(|(used, ..)| *used)?;
    Some(known.connections.swap_remove(at).shared)
}

// === impl Known ===

impl Known {
    fn there(&mut self, content: bool, now: Instant) -> Option<SharedConnection> {
        let mut all = self.connections.iter_mut();
        let one = all.find(|one| one.shared.has_room(content))?;
        one.used = now;
        Some(one.shared.clone())
    }

    fn is_empty(&self) -> bool {
        self.connections.is_empty() && self.making.is_none() && self.http1_until.is_none()
    }
}

// === impl Making ===

impl Making<'_> {
    /// Has those who wait share the connection, which is kept by now.
    pub fn share(mut self) {
        self.is_shared = true;
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut shard = self.sharing.known.of(&self.key);
        if let Some(known) = shard.get_mut(&self.key) {
            known.making = None;
            if known.is_empty() {
                shard.remove(&self.key);
            }
        }
        drop(shard);
        // Nobody else sets it.
        let _ = self.made.set(self.is_shared);
    }
}

/// So often a request waits for another's connection that turns out to be full. More would have it wait while the connections
/// are made one after the other.
const MAX_WAITS: usize = 2;
/// How long a server is taken to speak HTTP/1.1 alone. HTTP/2 is offered to it all the same.
const HTTP1_FOR: Duration = Duration::from_secs(60);
/// Servers in one part of the map past which it is not noted which ones speak HTTP/1.1 alone.
const MAX_KNOWN: usize = 256;

#[cfg(test)]
mod tests;
