//! The connections to origins: made, kept for the next request, shared, and given up.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
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
    http2::{Bounds, Shared},
    pool::{Key, Pool},
};
use crate::origin::{Origin, Scheme};

/// The connections whose certificates were checked against one set of roots.
pub struct Origins {
    connector: TransportConnector,
    /// Those of HTTP/1.1 that wait for their next request.
    kept: Pool<Stream>,
    /// Those of HTTP/2.
    shared: Mutex<HashMap<Key, Vec<Shared>>>,
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
}

// === impl Origins ===

impl Origins {
    /// With the roots in the file `roots`. At most `max` connections of HTTP/1.1 are kept.
    pub fn new(roots: String, max: usize) -> Arc<Self> {
        let mut options = ConnectorOptions::new(1);
        options.ca_file = Some(roots);
        Arc::new(Self {
            connector: TransportConnector::new(Some(options)),
            kept: Pool::new(max),
            shared: Mutex::default(),
            is_swept: AtomicBool::new(false),
        })
    }

    /// A connection to `origin` at `address` that is there already.
    pub fn there(&self, origin: &Origin, address: SocketAddr, wanted: Wanted, now: Instant) -> Option<Server> {
        let key = Key::new(origin, address);
        if wanted.http2
            && origin.scheme == Scheme::Https
            && let Some(shared) = self
                .shared()
                .get(&key)
                .and_then(|all| all.iter().find(|one| one.has_room(wanted.content)))
        {
            return Some(Server::http2(shared.clone()));
        }
        let kept = wanted.kept.then(|| self.kept.take(&key, now)).flatten();
        kept.map(Server::http1)
    }

    /// Makes a connection to `origin` at `address`, which the egress guard has checked, TCP and TLS together `within` that
    /// time. One of HTTP/2 is kept for so long without a request as `idle` says.
    ///
    /// # Errors
    /// There is none to be had.
    pub async fn connect(
        self: &Arc<Self>,
        origin: &Origin,
        address: SocketAddr,
        http2: bool,
        within: Duration,
        idle: Duration,
    ) -> Result<Server, Fault> {
        let alpn = if http2 { ALPN::H2H1 } else { ALPN::H1 };
        let stream = connect(&self.connector, origin, address, alpn, within).await?;
        if !matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            return Ok(Server::http1(stream));
        }
        let shared = Shared::open(stream, &Bounds::default(), idle).await?;
        let mut all = self.shared();
        if all.values().map(Vec::len).sum::<usize>() >= MAX_SHARED {
            // Those that are in use are as many as their requests.
            all.values()
                .flatten()
                .filter(|one| one.is_idle())
                .for_each(Shared::close);
            forget_closed(&mut all);
        }
        let same = all.entry(Key::new(origin, address)).or_default();
        same.push(shared.clone());
        drop(all);
        self.look_after();
        Ok(Server::http2(shared))
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
        let mut shared = self.shared();
        forget_closed(&mut shared);
        let is_shared = !shared.is_empty();
        drop(shared);
        self.kept.sweep(now) > 0 || is_shared
    }

    fn shared(&self) -> MutexGuard<'_, HashMap<Key, Vec<Shared>>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_closed(shared: &mut HashMap<Key, Vec<Shared>>) {
    shared.retain(|_, same| {
        same.retain(|one| !one.is_closed());
        !same.is_empty()
    });
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
/// Connections of HTTP/2 past which those without a request are closed.
const MAX_SHARED: usize = 1024;
