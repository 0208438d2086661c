//! The connections to origins: made, kept for the next request, and given up.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use pingora::{
    connectors::{ConnectorOptions, TransportConnector},
    protocols::{ALPN, Stream},
};

use super::{
    Fault, Server, Timeouts, peer,
    pool::{Key, Pool},
};
use crate::origin::Origin;

/// The connections whose certificates were checked against one set of roots.
pub struct Origins {
    connector: TransportConnector,
    pool: Pool<Stream>,
    /// Whether somebody looks after those that are kept.
    is_swept: AtomicBool,
}

// === impl Origins ===

impl Origins {
    /// With the roots in the file `roots`. At most `max` connections are kept.
    pub fn new(roots: String, max: usize) -> Arc<Self> {
        let mut options = ConnectorOptions::new(1);
        options.ca_file = Some(roots);
        Arc::new(Self {
            connector: TransportConnector::new(Some(options)),
            pool: Pool::new(max),
            is_swept: AtomicBool::new(false),
        })
    }

    /// A connection to `origin` at `address` that has served a request before.
    pub fn kept(&self, origin: &Origin, address: SocketAddr, now: Instant) -> Option<Server> {
        self.pool.take(&Key::new(origin, address), now).map(Server::http1)
    }

    /// Makes a connection to `origin` at `address`, which the egress guard has checked.
    ///
    /// # Errors
    /// There is none to be had.
    pub async fn connect(&self, origin: &Origin, address: SocketAddr, timeouts: Timeouts) -> Result<Server, Fault> {
        let peer = peer(origin, address, ALPN::H1, timeouts);
        let stream = self.connector.new_stream(&peer).await;
        stream.map(Server::http1).map_err(|error| Fault::from_pingora(&error))
    }

    /// Keeps the connection of a request that has ended, where another can follow on it within `idle`.
    pub fn keep(self: &Arc<Self>, origin: &Origin, address: SocketAddr, server: Server, idle: Duration) {
        let Some(stream) = server.into_kept() else {
            return;
        };
        self.pool.keep(Key::new(origin, address), stream, idle, Instant::now());
        if !self.is_swept.swap(true, Ordering::SeqCst) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }
}

/// Closes what was kept for too long or was closed by its origin, for as long as anything is kept.
async fn sweep(origins: std::sync::Weak<Origins>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(origins) = origins.upgrade() else { return };
        if origins.pool.sweep(Instant::now()) > 0 {
            continue;
        }
        origins.is_swept.store(false, Ordering::SeqCst);
        // Something may have been kept in between, by somebody who saw that there is a sweep.
        if origins.pool.sweep(Instant::now()) == 0 || origins.is_swept.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

const SWEEP: Duration = Duration::from_secs(1);
