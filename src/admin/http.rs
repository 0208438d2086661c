//! The HTTP/1.1 server for operators and their programs, on the admin listener and on the socket next to the cache
//! file.
//!
//! Limits the connections, the time and the work of its clients, so that they hardly delay bots. Only the socket
//! accepts requests to forget a site, and only the proxy's own user and root can open the socket.

mod access;
mod changes;
mod connection;
mod decide;
mod documents;
mod explain;
mod filter;
mod health;
mod history;
mod input;
mod limiter;
mod origins;
mod problem;
mod refusals;
mod routes;
mod status;
mod versions;
mod what_if;

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::Router;
use http::{HeaderName, header};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

pub use self::status::LastReload;
use self::{connection::ConnectionInfo, limiter::ConnectionLimiter, problem::Problem};
use crate::{
    proxy::{Listeners, Live},
    ratelimited::ratelimited,
    store::{CopyFile, Disk, FileError},
};

/// The HTTP server for operators.
#[derive(Debug)]
pub struct AdminServer {
    listener: Endpoint,
    /// Has its own limiter, so that connections to the listener do not keep local operators out.
    socket: Endpoint,
}

#[derive(Debug)]
struct Endpoint {
    routes: Router,
    limiter: ConnectionLimiter,
}

/// Facts that responses show and that [`Live`] does not contain.
pub struct ServiceInfo {
    pub listeners: Arc<Listeners>,
    /// Returns the result of the last reload, if any. Must not block.
    pub last_reload: Box<dyn Fn() -> Option<LastReload> + Send + Sync>,
    pub file: Option<PathBuf>,
}

struct Context {
    /// Limits requests that read all origins, such as requests for metrics.
    counting: Arc<Semaphore>,
    live: Arc<Live>,
    service_info: ServiceInfo,
    started: SystemTime,
    /// Limits how many decisions run at the same time for requests that ask for many decisions.
    deciding: Arc<Semaphore>,
    /// Limits explanations, because each takes a thread.
    explaining: Arc<Semaphore>,
    /// Limits slow work: deciding logged requests again, and comparing the versions of a robots.txt.
    assuming: Arc<Semaphore>,
}

/// A Warning field for a response, such as [`NOT_LATEST`].
type Warning = [(HeaderName, &'static str); 1];

// === impl AdminServer ===

impl AdminServer {
    /// Creates the server. Its responses show the running proxy (`live`) and the facts in `service_info`.
    pub fn new(live: Arc<Live>, service_info: ServiceInfo) -> Self {
        let context = Context {
            live,
            service_info,
            started: SystemTime::now(),
            counting: Arc::new(Semaphore::new(COUNTS)),
            deciding: Arc::new(Semaphore::new(DECISIONS)),
            explaining: Arc::new(Semaphore::new(EXPLANATIONS)),
            assuming: Arc::new(Semaphore::new(1)),
        };
        let context = Arc::new(context);
        let endpoint = |routes| Endpoint {
            routes,
            limiter: ConnectionLimiter::default(),
        };
        Self {
            listener: endpoint(routes::of_listener(context.clone())),
            socket: endpoint(routes::of_socket(context)),
        }
    }

    /// Serves a connection to the admin listener. When `until` is cancelled, completes a response that has begun, and
    /// ends.
    pub async fn serve_listener(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, until: CancellationToken) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let local = stream.local_addr();
        let info = ConnectionInfo {
            is_local: local.is_ok_and(|address| address.ip().to_canonical().is_loopback()),
        };
        self.listener.serve(stream, info, Some(peer.ip()), until).await;
    }

    /// Serves a connection to the socket, like [`serve_listener`](Self::serve_listener).
    pub async fn serve_socket(self: Arc<Self>, stream: UnixStream, until: CancellationToken) {
        let info = ConnectionInfo { is_local: true };
        self.socket.serve(stream, info, None, until).await;
    }
}

// === impl Endpoint ===

impl Endpoint {
    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send,
        info: ConnectionInfo,
        address: Option<IpAddr>,
        until: CancellationToken,
    ) {
        let Some(permit) = self.limiter.take(address).await else {
            let peer = address.map(tracing::field::display);
            return ratelimited!(
                info,
                peer,
                "too many connections to the admin listener or the socket, from this address or from all together; a new one was closed"
            );
        };
        connection::serve(stream, info, permit, self.routes.clone(), until).await;
    }
}

// === impl Context ===

impl Context {
    /// Runs `work` with the cache file, on a blocking thread. Fails if there is no such file or it cannot be read now.
    async fn with_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CopyFile) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Problem> {
        let store = self.live.store().clone();
        let working = tokio::task::spawn_blocking(move || {
            let disk = store.disk()?;
            disk.with_file(work).ok()
        });
        working.await.ok().flatten().ok_or(Problem::Disk)
    }

    /// Waits until the proxy's changes of the cache file are on disk, so that the response shows the latest state.
    /// Returns a warning for the response if that fails or takes too long.
    async fn flush_writes(&self) -> Option<Warning> {
        let store = self.live.store();
        let disk = store.disk().filter(|disk| disk.waiting() > 0)?;
        let flushed = tokio::time::timeout(WRITE_TIMEOUT, Disk::flush(disk)).await;
        (flushed != Ok(true)).then_some([(header::WARNING, NOT_LATEST)])
    }
}

/// How many permits the semaphores in [`Context`] have.
const COUNTS: usize = 2;
const DECISIONS: usize = 64;
const EXPLANATIONS: usize = 4;
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// The value of a Warning field (RFC 7234 §5.5), which says that the response may lack the latest changes.
const NOT_LATEST: &str =
    r#"199 robotgate "the disk is slow or cannot be written now; this may not be the latest state""#;
