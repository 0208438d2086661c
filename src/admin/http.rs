//! Operators, their programs and schedulers ask over HTTP/1.1: at the admin listener, and on the socket beside the copies.
//!
//! Who asks is bounded in everything: connections at once, the time for a request and for taking its answer, the bytes
//! of a request, questions that are decided at once. So nobody here, however slow or hostile, keeps a bot waiting.
//!
//! At the listener no request changes anything: what is asked is looked up, and a robots.txt may be fetched as the proxy
//! would. What changes something can be asked on the socket alone, which only the proxy's own user and root can open.

mod access;
mod connection;
mod decide;
mod documents;
mod explain;
mod health;
mod input;
mod limiter;
mod origins;
mod problem;
mod refusals;
mod routes;
mod status;

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
    /// Has a limiter of its own, so that many connections at the listener do not keep operators on this machine out.
    socket: Endpoint,
}

/// Where operators connect: its routes, and how many connections it takes.
#[derive(Debug)]
struct Endpoint {
    routes: Router,
    limiter: ConnectionLimiter,
}

/// What the service knows beside the proxy, for the answers about its state.
pub struct ServiceInfo {
    pub listeners: Arc<Listeners>,
    /// What came of the last reload, if there was one. It must not block.
    pub last_reload: Box<dyn Fn() -> Option<LastReload> + Send + Sync>,
    /// The configuration file.
    pub file: Option<PathBuf>,
}

/// What answers are made of.
struct Context {
    /// Turns of those who have everything counted, for the metrics or else, which takes time and memory.
    counting: Arc<Semaphore>,
    live: Arc<Live>,
    service_info: ServiceInfo,
    started: SystemTime,
    /// Turns of those who ask for many decisions.
    deciding: Semaphore,
    /// Turns of explanations, each of which takes a thread.
    explaining: Arc<Semaphore>,
}

/// A field of an answer that says what is amiss with it.
type Warning = [(HeaderName, &'static str); 1];

// === impl AdminServer ===

impl AdminServer {
    /// A server for `live` and the service around it.
    pub fn new(live: Arc<Live>, service_info: ServiceInfo) -> Self {
        let context = Context {
            live,
            service_info,
            started: SystemTime::now(),
            counting: Arc::new(Semaphore::new(COUNTS)),
            deciding: Semaphore::new(DECISIONS),
            explaining: Arc::new(Semaphore::new(EXPLANATIONS)),
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

    /// Serves a connection to the admin listener to its end, or to the answer that is being given when `until` ends.
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

    /// Serves a connection to the socket, in the same way.
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
    /// Works with the file of the copies, off the asynchronous threads.
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

    /// Has written what waits for it, so that the latest is seen; not for ever. What is there is shown all the same, with
    /// a warning.
    async fn write_what_waits(&self) -> Option<Warning> {
        let store = self.live.store();
        let disk = store.disk().filter(|disk| disk.waiting() > 0)?;
        let flushed = tokio::time::timeout(TO_WRITE, Disk::flush(disk)).await;
        (flushed != Ok(true)).then_some([(header::WARNING, NOT_LATEST)])
    }
}

/// Of those who have everything counted, how many are served at once.
const COUNTS: usize = 2;
/// Decisions that are made at once for those who ask for many.
const DECISIONS: usize = 64;
/// Explanations that are made at once.
const EXPLANATIONS: usize = 4;
/// How long somebody waits for what is written meanwhile.
const TO_WRITE: Duration = Duration::from_secs(1);
/// In the form of RFC 7234 §5.5.
const NOT_LATEST: &str = r#"199 robotgate "the disk cannot be written now; this may not be the latest""#;
