//! Listens and accepts. Each connection is a task of its own; when the proxy is to stop, no more
//! are accepted and those that run get a bounded time to end.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use pingora::{
    listeners::tls::Acceptor,
    protocols::{
        GetProxyDigest as _, GetSocketDigest as _, SocketDigest, Ssl as _, Stream, UniqueID as _,
        l4::stream::Stream as L4Stream,
    },
    server::ShutdownWatch,
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    arrival::{Arrival, Vouched},
    client_stream::ClientStream,
    connection::{self, Context},
    generation::Live,
    handshake,
    limits::Limit,
    respond::Problem,
};
use crate::{bot::ClientCertificate, config::Proxy};

/// Bound sockets, not yet accepting.
#[derive(Debug)]
pub struct Listeners(Vec<Listener>);

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    speaks: Speaks,
}

/// What clients speak first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Http,
    Tls,
}

/// What runs, to be waited for and at last cut off.
#[derive(Debug, Clone)]
pub(super) struct Running {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

/// A socket cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}{}", hint(error, key))]
pub struct ListenError {
    address: SocketAddr,
    key: &'static str,
    error: std::io::Error,
}

// === impl Listeners ===

impl Listeners {
    /// Binds all addresses that the configuration names.
    ///
    /// # Errors
    /// One of them cannot be bound; then none is.
    pub async fn bind(proxy: &Proxy) -> Result<Self, ListenError> {
        let plain = proxy.listen.iter().map(|address| (Speaks::Http, *address));
        let tls = proxy.tls.iter().flat_map(|tls| &tls.listen);
        let tls = tls.map(|address| (Speaks::Tls, *address));
        let bind = |(speaks, address)| match listen(address) {
            Ok(socket) => Ok(Listener { socket, speaks }),
            Err(error) => Err(ListenError {
                address,
                key: match speaks {
                    Speaks::Http => "proxy.listen",
                    Speaks::Tls => "proxy.tls.listen",
                },
                error,
            }),
        };
        plain.chain(tls).map(bind).collect::<Result<_, _>>().map(Self)
    }

    /// The addresses with the ports that were bound, and whether TLS is spoken there.
    pub fn addresses(&self) -> impl Iterator<Item = (SocketAddr, bool)> {
        let bound = |listener: &Listener| Some((listener.socket.local_addr().ok()?, listener.speaks == Speaks::Tls));
        self.0.iter().filter_map(bound)
    }

    /// Accepts connections until `shutdown` turns true, then waits for those that run, at most
    /// as long as the configuration says or until `cut_off`. `true` where all of them ended.
    pub async fn serve(self, live: Arc<Live>, shutdown: ShutdownWatch, cut_off: CancellationToken) -> bool {
        let running = Running {
            tasks: TaskTracker::new(),
            cut_off,
        };
        let accepting: Vec<_> = self
            .0
            .into_iter()
            .map(|listener| tokio::spawn(accept(listener, running.clone(), live.clone(), shutdown.clone())))
            .collect();
        for task in accepting {
            // A task that panicked has said so; the others go on to their end.
            let _ = task.await;
        }
        let bound = live.generation().config.proxy.shutdown_timeout;
        running.drain(bound).await
    }
}

// === impl Running ===

impl Running {
    /// Runs `task` to its end or to the cut-off, where it is dropped: an exchange says so in the log
    /// then.
    pub(super) async fn track<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        self.tasks.track_future(self.cut_off.run_until_cancelled(task)).await
    }

    fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        let running = self.clone();
        // Counted before the task has begun.
        let token = self.tasks.token();
        tokio::spawn(async move {
            running.track(serving).await;
            drop(token);
        });
    }

    /// Waits until all have ended, at most for `bound`; then cuts off those that have not.
    async fn drain(&self, bound: Duration) -> bool {
        self.tasks.close();
        let running = self.tasks.len();
        tracing::info!(running, ?bound, "waiting for what runs to end");
        let all_ended = tokio::select! {
            () = self.tasks.wait() => true,
            () = tokio::time::sleep(bound) => false,
            () = self.cut_off.cancelled() => false,
        };
        if !all_ended {
            self.cut_off.cancel();
            self.tasks.wait().await;
        }
        all_ended
    }
}

/// A listening socket that a crowd of bots does not overrun.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As after any restart: what an earlier connection left behind is no reason not to start.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: Listener, running: Running, live: Arc<Live>, mut shutdown: ShutdownWatch) {
    let mut told: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            _ = shutdown.wait_for(|stop| *stop) => return,
        };
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most often the process has too many files open. The waiting connections stay
                // in the kernel's queue meanwhile.
                if told.is_none_or(|told| told.elapsed() >= ACCEPT_TOLD) {
                    told = Some(Instant::now());
                    tracing::error!(
                        %error,
                        "connections cannot be accepted; where it is for want of files, raise the limit \
                         (LimitNOFILE of the unit, ulimit -n) or lower proxy.max-connections"
                    );
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let limits = live.generation().config.proxy.limits;
        match live.clients.enter(client, &limits, Instant::now()) {
            Ok(visit) => {
                let context = Context {
                    live: live.clone(),
                    arrival: Arrival::direct(client, visit),
                    running: running.clone(),
                    shutdown: shutdown.clone(),
                };
                running.spawn(serve(stream, listener.speaks, context));
            }
            Err(limit) => {
                live.clients.tally.note(limit, client, Instant::now());
                if let Ok(turn) = live.clients.turned_away.clone().try_acquire_owned() {
                    let (live, speaks) = (live.clone(), listener.speaks);
                    running.spawn(async move {
                        // Past it, nobody waits for who was not let in.
                        let _ = tokio::time::timeout(TURNING_AWAY, turn_away(stream, speaks, limit, &live)).await;
                        drop(turn);
                    });
                }
            }
        }
    }
}

/// Tells a client why it is not let in.
async fn turn_away(stream: TcpStream, speaks: Speaks, limit: Limit, live: &Live) {
    let stream = L4Stream::from(stream);
    let stream: Stream = match speaks {
        Speaks::Http => Box::new(stream),
        Speaks::Tls => match &live.generation().server_tls {
            Some(config) => match Acceptor::from_server_config(config.clone()).tls_handshake(stream).await {
                Ok(tls) => Box::new(tls),
                Err(_) => return,
            },
            None => return,
        },
    };
    connection::answer_and_close(stream, &Problem::Limit(limit), live).await;
}

async fn serve(stream: TcpStream, speaks: Speaks, mut context: Context) {
    let client = context.arrival.client;
    let stream = prepare(stream, context.arrival.clone());
    if speaks == Speaks::Http {
        return connection::serve(Box::new(stream), &context).await;
    }
    let generation = context.live.generation();
    let (Some(server_config), Some(tls)) = (&generation.server_tls, &generation.config.proxy.tls) else {
        tracing::warn!(%client, "the configuration in force has no proxy.tls, so a connection was closed");
        return;
    };
    let roots = tls.client_roots.clone();
    let handshake = Acceptor::from_server_config(server_config.clone());
    let handshake = handshake.tls_handshake(stream);
    match tokio::time::timeout(generation.config.proxy.handshake_timeout, handshake).await {
        Ok(Ok(tls)) => {
            drop(generation);
            let certificate = tls.get_ssl().and_then(|tls| tls.peer_certificate_der());
            context.arrival.certificate = match certificate.map(ClientCertificate::from_der).transpose() {
                Ok(certificate) => certificate.map(|certificate| Arc::new(Vouched { certificate, roots })),
                Err(error) => return tracing::info!(%client, %error, "a connection was closed"),
            };
            let stream = ClientStream::new(Box::new(tls), &[], context.arrival.clone());
            connection::serve(Box::new(stream), &context).await;
        }
        Ok(Err(error)) => {
            let error = handshake::cause(&error);
            tracing::info!(%client, error, "a client's TLS handshake with the proxy failed");
        }
        Err(_) => tracing::info!(%client, "a client's TLS handshake with the proxy took too long"),
    }
}

/// Makes of a socket what pingora works with.
fn prepare(stream: TcpStream, arrival: Arrival) -> L4Stream {
    let mut stream = L4Stream::from(stream);
    if let Err(error) = stream.set_nodelay() {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let digest = SocketDigest::from_raw_fd(stream.id());
    // Asked of the socket later, it may be gone with the client.
    let _ = digest.peer_addr.set(Some(arrival.client.into()));
    stream.set_socket_digest(digest);
    stream.set_proxy_digest(arrival.into_digest());
    stream
}

fn hint(error: &std::io::Error, key: &str) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("; another program listens there, perhaps another robotgate: stop it or change {key}")
        }
        std::io::ErrorKind::PermissionDenied => format!("; ports below 1024 need a privilege: choose another in {key}"),
        std::io::ErrorKind::AddrNotAvailable => format!("; this machine has no such address: correct {key}"),
        _ => String::new(),
    }
}

/// Connections that may wait to be accepted; the system may grant fewer.
const BACKLOG: u32 = 4096;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const ACCEPT_TOLD: Duration = Duration::from_secs(1);
/// For telling a client that it is turned away.
const TURNING_AWAY: Duration = Duration::from_secs(2);
