//! Opens connections to origins, keeps them for the next request, shares them, and closes them.

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
    Fault, Ftp, Server, connect,
    http2::{Bounds, SharedConnection},
    pool::{Pool, PoolKey},
    share_of,
    sharing::{NextStep, Sharing},
};
use crate::{
    egress::Listening,
    origin::{Origin, Scheme},
};

/// A set of connections to origins, with its own file of root certificates.
pub struct Origins {
    connector: TransportConnector,
    /// Idle HTTP/1.1 connections.
    kept: Pool<Stream>,
    /// HTTP/2 connections.
    shared: Sharing,
    /// Whether the task [`sweep`] is running.
    is_swept: AtomicBool,
    /// The addresses of robotgate's own listeners, where FTP data connections must not go.
    listening: Listening,
}

/// Which connections a request can use.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Whether to use HTTP/2 if the origin supports it.
    pub http2: bool,
    /// Whether the request has content.
    pub content: bool,
    /// Whether the request may use a kept HTTP/1.1 connection. The origin may be closing it, so the request must be
    /// repeatable.
    pub kept: bool,
    /// Whether the request needs a new connection that no other request uses.
    pub fresh: bool,
}

pub struct OriginConnection {
    pub server: Server,
    pub address: SocketAddr,
    /// Whether the connection existed before this request, or another request opened it.
    pub reused: bool,
}

// === impl Origins ===

impl Origins {
    /// Creates an empty set. Certificates are verified against the file `roots`.
    ///
    /// Keeps at most about `max` idle HTTP/1.1 connections. If there are about `max` HTTP/2 connections, opening
    /// another connection closes one that is idle.
    pub fn new(roots: String, max: usize, listening: Listening) -> Arc<Self> {
        let mut options = ConnectorOptions::new(1);
        options.ca_file = Some(roots);
        Arc::new(Self {
            connector: TransportConnector::new(Some(options)),
            kept: Pool::new(max),
            shared: Sharing::new(max),
            is_swept: AtomicBool::new(false),
            listening,
        })
    }

    /// Returns a connection to `origin` at one of `addresses`, which the egress guard has checked: an existing one, or
    /// else a new one to the first address that accepts it. `tried` gets the address that was tried last
    /// or, if there was no route to it, an earlier one.
    ///
    /// Connecting takes at most about `within` for all addresses together. Waiting for a connection that another
    /// request is opening can take up to `within` more.
    ///
    /// # Errors
    /// Fails with the fault of the address in `tried` if none accepts a connection in time.
    pub async fn reach(
        self: &Arc<Self>,
        origin: &Origin,
        addresses: &[SocketAddr],
        wanted: Wanted,
        within: Duration,
        idle: Duration,
        tried: &mut Option<SocketAddr>,
    ) -> Result<OriginConnection, Fault> {
        let started = Instant::now();
        for address in addresses {
            if let Some(server) = self.existing(origin, *address, wanted, started) {
                *tried = Some(*address);
                return Ok(OriginConnection {
                    server,
                    address: *address,
                    reused: true,
                });
            }
        }
        let mut last = Fault::Unroutable;
        for (number, address) in addresses.iter().enumerate() {
            let spent = started.elapsed();
            if number > 0 && spent >= within {
                break;
            }
            let earlier = tried.replace(*address);
            let share = share_of(within, spent, addresses.len() - number);
            match self.connect(origin, *address, wanted, share, idle).await {
                Ok((server, reused)) => {
                    return Ok(OriginConnection {
                        server,
                        address: *address,
                        reused,
                    });
                }
                // Many machines cannot reach IPv6 addresses, so the fault of an earlier address says more than
                // `Unroutable`.
                Err(Fault::Unroutable) if number > 0 => *tried = earlier,
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    fn existing(&self, origin: &Origin, address: SocketAddr, wanted: Wanted, now: Instant) -> Option<Server> {
        if wanted.fresh || !origin.scheme.is_web() {
            return None;
        }
        let key = PoolKey::new(origin, address);
        if wanted.may_share(origin)
            && let Some(shared) = self.shared.existing(&key, wanted.content, now)
        {
            return Some(Server::http2(shared));
        }
        let kept = wanted.kept.then(|| self.kept.take(&key, now)).flatten();
        kept.map(Server::http1)
    }

    /// Opens a connection to `address`, or waits for and shares an HTTP/2 connection that another request is opening.
    /// Also returns whether another request opened the connection.
    async fn connect(
        self: &Arc<Self>,
        origin: &Origin,
        address: SocketAddr,
        wanted: Wanted,
        within: Duration,
        idle: Duration,
    ) -> Result<(Server, bool), Fault> {
        match origin.scheme {
            Scheme::Http | Scheme::Https => {}
            Scheme::Ftp => {
                let ftp = Ftp::connect(address, &self.listening, within).await?;
                return Ok((Server::Ftp(Box::new(ftp)), false));
            }
        }
        if !wanted.may_share(origin) {
            let stream = connect(&self.connector, origin, address, ALPN::H1, within).await?;
            return Ok((Server::http1(stream), false));
        }
        if wanted.fresh {
            let stream = connect(&self.connector, origin, address, ALPN::H2H1, within).await?;
            let server = match stream.selected_alpn_proto() {
                // The request asked for a connection of its own, so do not share this one.
                Some(ALPN::H2) => Server::http2(SharedConnection::open(stream, &Bounds::default(), ALONE).await?),
                _ => Server::http1(stream),
            };
            return Ok((server, false));
        }
        let key = PoolKey::new(origin, address);
        // After this wait, connecting may take the whole `within` again: the wait was not the origin's fault.
        let next_step = tokio::time::timeout(within, self.shared.next_step(&key, wanted.content)).await;
        let opening = match next_step.unwrap_or(NextStep::OpenAlone) {
            NextStep::Use(shared) => return Ok((Server::http2(shared), true)),
            NextStep::Open(opening) => Some(opening),
            NextStep::OpenAlone => None,
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
        if let Some(opening) = opening {
            opening.share();
        }
        Ok((Server::http2(shared), false))
    }

    /// Keeps the connection of a completed request for up to `idle`, if it is an HTTP/1.1 connection that another
    /// request can use.
    pub fn keep(self: &Arc<Self>, origin: &Origin, address: SocketAddr, server: Server, idle: Duration) {
        if let Some(stream) = server.into_kept() {
            self.kept
                .keep(PoolKey::new(origin, address), stream, idle, Instant::now());
            self.look_after();
        }
    }

    fn look_after(self: &Arc<Self>) {
        if !self.is_swept.load(Ordering::Relaxed) && !self.is_swept.swap(true, Ordering::SeqCst) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn sweep(&self, now: Instant) -> bool {
        let is_shared = self.shared.sweep(now);
        self.kept.sweep(now) > 0 || is_shared
    }
}

// === impl Wanted ===

impl Wanted {
    fn may_share(self, origin: &Origin) -> bool {
        self.http2 && origin.scheme == Scheme::Https
    }
}

/// Periodically drops connections that can no longer be used. Ends when nothing is kept.
async fn sweep(origins: Weak<Origins>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(origins) = origins.upgrade() else { return };
        if origins.sweep(Instant::now()) {
            continue;
        }
        origins.is_swept.store(false, Ordering::SeqCst);
        // Just before this `store`, a request may have kept a connection and started no task, because this task still
        // ran. So end only if nothing is left, or if another task has started.
        if !origins.sweep(Instant::now()) || origins.is_swept.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

const SWEEP: Duration = Duration::from_secs(1);
/// How long an HTTP/2 connection that is not shared may be without streams (`idle` in [`SharedConnection::open`]).
const ALONE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, task::yield_now, time};

    use super::*;
    use crate::egress::Roots;

    async fn silent() -> (Arc<Origins>, Origin, TcpListener, Roots) {
        let roots = Roots::gather(&[]).expect("a file in memory");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let origin = format!("https://shop.example:{}", address.port());
        let origin = origin.parse().expect("an origin");
        (
            Origins::new(roots.path(), 16, Listening::default()),
            origin,
            listener,
            roots,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waited_for_another_has_the_full_connect_timeout() {
        let within = Duration::from_millis(100);
        let (origins, origin, listener, _roots) = silent().await;
        let address = listener.local_addr().expect("a bound socket has an address");
        let connect = |within| {
            let (origins, origin) = (origins.clone(), origin.clone());
            let wanted = Wanted {
                http2: true,
                content: false,
                kept: false,
                fresh: false,
            };
            tokio::spawn(async move {
                let connecting = origins.connect(&origin, address, wanted, within, within);
                connecting.await.map(drop)
            })
        };

        let first = connect(within * 100);
        yield_now().await;
        let began = time::Instant::now();
        let second = connect(within);
        yield_now().await;
        // The code under test could also use the real clock, so let real time pass too.
        std::thread::sleep(within);

        assert_eq!(second.await.expect("no panic"), Err(Fault::ConnectionTimeout));
        let took = began.elapsed();
        assert!(took >= within * 2, "{took:?}: as long to wait, and as long to connect");
        assert!(took < within * 3, "{took:?}");
        assert!(!first.is_finished(), "it connects still");
    }
}
