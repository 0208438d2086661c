//! The HTTP/1.1 server for operators and for their programs, such as a scheduler of crawls that asks for decisions.
//! They reach it at the address of the admin listener, and through the socket next to the cache file.
//!
//! Everything that a client can use is limited: connections, the time to send a request and to read its response, the
//! size of a request, and concurrent decisions. So no client of this server, however slow or hostile, delays a bot.
//!
//! On the admin listener, no request changes anything: requests read state, and can make the proxy fetch a robots.txt
//! as it would for a bot. Requests that change something are accepted only on the socket, which only the proxy's own
//! user and root can open.

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
    /// The server on the socket. It has a connection limiter of its own, so that many connections to the listener do
    /// not keep local operators out.
    socket: Endpoint,
}

/// The routes and the connection limiter of one of the two ways to reach the server: the admin listener or the socket.
#[derive(Debug)]
struct Endpoint {
    routes: Router,
    limiter: ConnectionLimiter,
}

/// Facts that responses show and that [`Live`] does not contain: the listeners of the proxy, the result of the last
/// reload, and the path of the configuration file.
pub struct ServiceInfo {
    pub listeners: Arc<Listeners>,
    /// Returns the result of the last reload, if there was one. It must not block.
    pub last_reload: Box<dyn Fn() -> Option<LastReload> + Send + Sync>,
    pub file: Option<PathBuf>,
}

/// The state that the handlers of requests use.
struct Context {
    /// Limits how many requests that read all origins, such as requests for metrics, run at the same time. Each of them
    /// takes time and memory.
    counting: Arc<Semaphore>,
    live: Arc<Live>,
    service_info: ServiceInfo,
    started: SystemTime,
    /// Limits how many decisions run at the same time for requests that ask for many decisions.
    deciding: Semaphore,
    /// Limits how many explanations run at the same time, because each takes a thread.
    explaining: Arc<Semaphore>,
    /// Limits how many slow requests of two kinds run at the same time. The first kind asks what a change would do, so
    /// robotgate decides thousands of logged requests again. The second kind compares versions of a robots.txt.
    assuming: Arc<Semaphore>,
}

/// A Warning field for a response, such as [`NOT_LATEST`].
type Warning = [(HeaderName, &'static str); 1];

// === impl AdminServer ===

impl AdminServer {
    /// Creates the server for a running proxy, `live`, and the service around it.
    pub fn new(live: Arc<Live>, service_info: ServiceInfo) -> Self {
        let context = Context {
            live,
            service_info,
            started: SystemTime::now(),
            counting: Arc::new(Semaphore::new(COUNTS)),
            deciding: Semaphore::new(DECISIONS),
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

    /// Serves a connection to the admin listener until it ends. When `until` is cancelled, ends the connection, but
    /// first completes a response that has begun.
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
                "the admin listener has too many connections; one was closed"
            );
        };
        connection::serve(stream, info, permit, self.routes.clone(), until).await;
    }
}

// === impl Context ===

impl Context {
    /// Runs `work` with the cache file on a blocking thread. Fails if the file cannot be read now, or if robots.txt
    /// copies are not kept on disk.
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

    /// Waits until the proxy's changes of the cache file are on disk. Handlers call this before they read that file, so
    /// that the response shows the latest state. If it takes longer than [`WRITE_TIMEOUT`], returns a warning for the
    /// response.
    async fn flush_writes(&self) -> Option<Warning> {
        let store = self.live.store();
        let disk = store.disk().filter(|disk| disk.waiting() > 0)?;
        let flushed = tokio::time::timeout(WRITE_TIMEOUT, Disk::flush(disk)).await;
        (flushed != Ok(true)).then_some([(header::WARNING, NOT_LATEST)])
    }
}

/// Maximum number of requests that read all origins at the same time.
const COUNTS: usize = 2;
/// Maximum number of decisions that run at the same time for requests that ask for many decisions.
const DECISIONS: usize = 64;
/// Maximum number of explanations that run at the same time.
const EXPLANATIONS: usize = 4;
/// How long a request waits until the proxy's changes of the cache file are on disk.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// A value for the Warning field (RFC 7234 §5.5): the response may not show the latest changes.
const NOT_LATEST: &str = r#"199 robotgate "the disk cannot be written now; this may not be the latest""#;
