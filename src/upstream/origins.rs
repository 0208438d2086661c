//! The connections to origins: made, kept for the next request, shared, and given up.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use pingora::{
    connectors::{ConnectorOptions, TransportConnector},
    protocols::{ALPN, Stream},
};

use super::{
    Fault, Server, connect,
    http2::{Bounds, SharedConnection},
    pool::{Key, Pool},
    share_of,
    sharing::{Sharing, Turn},
};
use crate::origin::{Origin, Scheme};

/// The connections whose certificates were checked against one set of roots.
pub struct Origins {
    connector: TransportConnector,
    /// Those of HTTP/1.1 that wait for their next request.
    kept: Pool<Stream>,
    /// Those of HTTP/2.
    shared: Sharing,
    /// Whether somebody looks after them.
    is_swept: AtomicBool,
}

/// Which connections a request may go on.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// One of HTTP/2, where the origin has that.
    pub http2: bool,
    /// For a request with content.
    pub content: bool,
    /// One of HTTP/1.1 that the origin may be about to close, since the request can be put twice.
    pub kept: bool,
    /// A new one that no other request gets.
    pub fresh: bool,
}

/// A connection for a request.
pub struct Reached {
    pub server: Server,
    pub address: SocketAddr,
    /// Whether it was kept, or another request has made it.
    pub was_there: bool,
}

// === impl Origins ===

impl Origins {
    /// With the roots in the file `roots`. At most about `max` connections of HTTP/1.1 are kept without a request, and as many
    /// of HTTP/2.
    pub fn new(roots: String, max: usize) -> Arc<Self> {
        let mut options = ConnectorOptions::new(1);
        options.ca_file = Some(roots);
        Arc::new(Self {
            connector: TransportConnector::new(Some(options)),
            kept: Pool::new(max),
            shared: Sharing::new(max),
            is_swept: AtomicBool::new(false),
        })
    }

    /// A connection to `origin` at one of `addresses`, which the egress guard has checked: one that is there already, else a
    /// new one to the first address that answers. TCP and TLS may take as long as `within` says for all of them together, and
    /// a connection of HTTP/2 is kept without a request for `idle`. The address that was tried last is noted in `tried`.
    ///
    /// # Errors
    /// There is none to be had; of several addresses, why not to the last one.
    pub async fn reach(
        self: &Arc<Self>,
        origin: &Origin,
        addresses: &[SocketAddr],
        wanted: Wanted,
        within: Duration,
        idle: Duration,
        tried: &mut Option<SocketAddr>,
    ) -> Result<Reached, Fault> {
        let started = Instant::now();
        for address in addresses {
            if let Some(server) = self.there(origin, *address, wanted, started) {
                *tried = Some(*address);
                return Ok(Reached {
                    server,
                    address: *address,
                    was_there: true,
                });
            }
        }
        let mut last = Fault::Unroutable;
        for (number, address) in addresses.iter().enumerate() {
            let spent = started.elapsed();
            if number > 0 && spent >= within {
                break;
            }
            *tried = Some(*address);
            let share = share_of(within, spent, addresses.len() - number);
            match self.connect(origin, *address, wanted, share, idle).await {
                Ok((server, was_there)) => {
                    return Ok(Reached {
                        server,
                        address: *address,
                        was_there,
                    });
                }
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// A connection to `origin` at `address` that is there already.
    fn there(&self, origin: &Origin, address: SocketAddr, wanted: Wanted, now: Instant) -> Option<Server> {
        if wanted.fresh {
            return None;
        }
        let key = Key::new(origin, address);
        if wanted.may_share(origin)
            && let Some(shared) = self.shared.there(&key, wanted.content, now)
        {
            return Some(Server::http2(shared));
        }
        let kept = wanted.kept.then(|| self.kept.take(&key, now)).flatten();
        kept.map(Server::http1)
    }

    /// Makes a connection to `origin` at `address`. Where another request is making one, this one waits for it, and shares it
    /// if it is one of HTTP/2. The connection, and whether another request has made it.
    async fn connect(
        self: &Arc<Self>,
        origin: &Origin,
        address: SocketAddr,
        wanted: Wanted,
        within: Duration,
        idle: Duration,
    ) -> Result<(Server, bool), Fault> {
        if !wanted.may_share(origin) {
            let stream = connect(&self.connector, origin, address, ALPN::H1, within).await?;
            return Ok((Server::http1(stream), false));
        }
        if wanted.fresh {
            let stream = connect(&self.connector, origin, address, ALPN::H2H1, within).await?;
            let server = match stream.selected_alpn_proto() {
                // What others ask for on a connection can break it, so this one is not shared.
                Some(ALPN::H2) => Server::http2(SharedConnection::open(stream, &Bounds::default(), ALONE).await?),
                _ => Server::http1(stream),
            };
            return Ok((server, false));
        }
        let key = Key::new(origin, address);
        // Who has waited in vain connects, with as much time as anybody: it is no fault of the origin's.
        let turn = tokio::time::timeout(within, self.shared.turn(&key, wanted.content)).await;
        let making = match turn.unwrap_or(Turn::Alone) {
            Turn::There(shared) => return Ok((Server::http2(shared), true)),
            Turn::First(making) => Some(making),
            Turn::Alone => None,
        };
        let stream = connect(&self.connector, origin, address, ALPN::H2H1, within).await?;
        if !matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            self.shared.note_http1(&key, Instant::now());
            self.look_after();
            return Ok((Server::http1(stream), false));
        }
        let shared = SharedConnection::open(stream, &Bounds::default(), idle).await?;
        self.shared.keep(&key, shared.clone(), Instant::now());
        self.look_after();
        if let Some(making) = making {
            making.share();
        }
        Ok((Server::http2(shared), false))
    }

    /// Keeps the connection of a request that has ended, where another can follow on it within `idle`.
    pub fn keep(self: &Arc<Self>, origin: &Origin, address: SocketAddr, server: Server, idle: Duration) {
        if let Some(stream) = server.into_kept() {
            self.kept.keep(Key::new(origin, address), stream, idle, Instant::now());
            self.look_after();
        }
    }

    fn look_after(self: &Arc<Self>) {
        if !self.is_swept.load(Ordering::Relaxed) && !self.is_swept.swap(true, Ordering::SeqCst) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Drops what cannot be used any more. Whether anything is left.
    fn sweep(&self, now: Instant) -> bool {
        let is_shared = self.shared.sweep(now);
        self.kept.sweep(now) > 0 || is_shared
    }
}

// === impl Wanted ===

impl Wanted {
    /// Whether a connection to `origin` may turn out to be one of HTTP/2.
    fn may_share(self, origin: &Origin) -> bool {
        self.http2 && origin.scheme == Scheme::Https
    }
}

/// Drops connections that were kept for too long or that their origins closed, for as long as there are any.
async fn sweep(origins: Weak<Origins>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(origins) = origins.upgrade() else { return };
        if origins.sweep(Instant::now()) {
            continue;
        }
        origins.is_swept.store(false, Ordering::SeqCst);
        // There may be another since then, of somebody who saw that this goes on.
        if !origins.sweep(Instant::now()) || origins.is_swept.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

const SWEEP: Duration = Duration::from_secs(1);
/// How long a connection of HTTP/2 that is not shared outlives its request.
const ALONE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
