//! Accepts connections on one socket, and starts a task for each.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use pingora::{
    listeners::tls::Acceptor,
    protocols::{GetSocketDigest as _, SocketDigest, Ssl as _, Stream, UniqueID as _, l4::stream::Stream as L4Stream},
    server::ShutdownWatch,
};
use rustix::{
    io::Errno,
    net::{SocketFlags, acceptfrom_with},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{ServeOperator, Socket, Speaks, bind::BACKLOG};
use crate::{
    bot::ClientCertificate,
    metrics,
    proxy::{
        client_connection::{ClientConnection, Listener, VerifiedCertificate},
        connection,
        context::{Context, Running},
        generation::Generation,
        handshake,
        limits::Limit,
        live::Live,
        respond::Problem,
    },
    ratelimited::ratelimited,
    wire::Wire,
};

pub(super) struct Accepting {
    pub(super) socket: Socket,
    pub(super) live: Arc<Live>,
    pub(super) operators: ServeOperator,
    pub(super) running: Running,
    pub(super) shutdown: ShutdownWatch,
    pub(super) retire: CancellationToken,
}

// === impl Accepting ===

impl Accepting {
    /// Accepts connections until the socket has to close or, if it is for bots, the proxy stops. Then accepts the
    /// connections that still wait in the kernel's queue.
    pub(super) async fn run(mut self) {
        let for_operators = self.socket.speaks == Speaks::Admin;
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.socket.accept() => accepted,
                () = self.retire.cancelled() => break,
                _ = self.shutdown.wait_for(|stop| *stop), if !for_operators => break,
            };
            match accepted {
                Ok((stream, client)) => self.enter(stream, client),
                Err(error) => {
                    // Most likely, too many files are open. Clients wait in the kernel's queue meanwhile.
                    ratelimited!(
                        error, %error,
                        "cannot accept connections; if too many files are open, raise the limit \
                         (LimitNOFILE of the unit, ulimit -n) or lower proxy.max-connections"
                    );
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // Without a limit, new connections could keep this loop running.
        for _ in 0..BACKLOG {
            let Some(accepted) = waiting(&self.socket.socket) else {
                break;
            };
            if let Ok((stream, client)) = accepted {
                self.enter(stream, client);
            }
            tokio::task::yield_now().await;
        }
    }

    fn enter(&self, stream: TcpStream, client: SocketAddr) {
        let (live, speaks) = (&self.live, self.socket.speaks);
        if speaks == Speaks::Admin {
            return (self.operators)(stream, client, self.retire.clone());
        }
        let generation = live.generation();
        let limits = generation.config.proxy.limits;
        match live.clients.enter(client, &limits, Instant::now()) {
            Ok(guard) => {
                let mut context = Context {
                    live: live.clone(),
                    connection: ClientConnection::direct(client, guard, Listener::default()),
                    running: self.running.clone(),
                    shutdown: self.shutdown.clone(),
                };
                let open = live.metrics.connection_opened(match speaks {
                    Speaks::Http | Speaks::Admin => metrics::Listener::Http,
                    Speaks::Tls => metrics::Listener::Tls,
                });
                match speaks {
                    Speaks::Http | Speaks::Admin => self.running.spawn(async move {
                        let _open = open;
                        let (stream, socket) = prepare(stream, client);
                        context.connection.listener = Listener { socket, tls: false };
                        connection::serve(Box::new(stream), &context).await;
                    }),
                    Speaks::Tls => self.running.spawn(async move {
                        let _open = open;
                        serve_tls(stream, generation, context).await;
                    }),
                }
            }
            Err(limit) => {
                live.clients.count_exceeded(limit, client);
                if let Ok(turn) = live.clients.early_error.clone().try_acquire_owned() {
                    let live = live.clone();
                    self.running.spawn(async move {
                        let turning = turn_away(stream, speaks, limit, &generation, &live);
                        let _ = tokio::time::timeout(TURNING_AWAY, turning).await;
                        drop(turn);
                    });
                }
            }
        }
    }
}

/// Returns a connection from the kernel's queue, or `None` if the queue is empty or cannot be read. Does not use
/// tokio's `accept`, because tokio may not know of the connection yet.
fn waiting(socket: &TcpListener) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    let stream = match acceptfrom_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok((stream, _)) => stream,
        Err(error @ (Errno::CONNABORTED | Errno::INTR)) => return Some(Err(error.into())),
        Err(_) => return None,
    };
    let stream = TcpStream::from_std(std::net::TcpStream::from(stream));
    Some(stream.and_then(|stream| {
        let client = stream.peer_addr()?;
        Ok((stream, client))
    }))
}

async fn turn_away(stream: TcpStream, speaks: Speaks, limit: Limit, generation: &Generation, live: &Live) {
    let stream = L4Stream::from(stream);
    let stream: Stream = match speaks {
        Speaks::Http | Speaks::Admin => Box::new(stream),
        Speaks::Tls => match &generation.server_tls {
            Some(tls) => match Acceptor::from_server_config(tls.config.clone())
                .tls_handshake(stream)
                .await
            {
                Ok(tls) => Box::new(tls),
                Err(_) => return,
            },
            None => return,
        },
    };
    connection::answer_and_close(Wire::new(stream), &Problem::Limit(limit), live).await;
}

async fn serve_tls(stream: TcpStream, generation: Arc<Generation>, mut context: Context) {
    let client = context.connection.client;
    let (stream, socket) = prepare(stream, client);
    context.connection.listener = Listener { socket, tls: true };
    let (Some(server_tls), Some(tls)) = (&generation.server_tls, &generation.config.proxy.tls) else {
        // Unreachable: the TLS listeners close before a configuration without `proxy.tls` is used.
        ratelimited!(error, client = %context.connection.client_for_log(), "the current configuration has no proxy.tls, so a connection was closed");
        return;
    };
    let roots = tls.client_roots.clone();
    let handshake = Acceptor::from_server_config(server_tls.config.clone());
    let handshake = handshake.tls_handshake(stream);
    match tokio::time::timeout(generation.config.proxy.handshake_timeout, handshake).await {
        Ok(Ok(tls)) => {
            drop(generation);
            let certificate = tls.get_ssl().and_then(|tls| tls.peer_certificate_der());
            context.connection.certificate = match certificate.map(ClientCertificate::from_der).transpose() {
                Ok(certificate) => certificate.map(|certificate| Arc::new(VerifiedCertificate { certificate, roots })),
                Err(error) => {
                    return ratelimited!(info, client = %context.connection.client_for_log(), %error, "robotgate closed a client's connection, because it cannot read the client's certificate");
                }
            };
            connection::serve(Box::new(tls), &context).await;
        }
        Ok(Err(error)) => {
            let error = handshake::cause(&error);
            ratelimited!(info, client = %context.connection.client_for_log(), error, "a client's TLS handshake with the proxy failed");
        }
        Err(_) => {
            ratelimited!(info, client = %context.connection.client_for_log(), "a client's TLS handshake with the proxy took too long")
        }
    }
}

fn prepare(stream: TcpStream, client: SocketAddr) -> (L4Stream, Option<Arc<SocketDigest>>) {
    let mut stream = L4Stream::from(stream);
    if let Err(error) = stream.set_nodelay() {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let digest = SocketDigest::from_raw_fd(stream.id());
    // Store the address now: after the client has disconnected, the socket no longer knows it.
    let _ = digest.peer_addr.set(Some(client.into()));
    stream.set_socket_digest(digest);
    let socket = stream.get_socket_digest();
    (stream, socket)
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const TURNING_AWAY: Duration = Duration::from_secs(2);
