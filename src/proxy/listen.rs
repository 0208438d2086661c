//! Listens and accepts. Each connection is a task of its own; when the proxy is to stop, no more
//! are accepted and those that run get a bounded time to end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use pingora::protocols::{GetSocketDigest as _, SocketDigest, UniqueID as _, l4::stream::Stream as L4Stream};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::{self, Context},
    generation::Live,
};
use pingora::server::ShutdownWatch;

/// Bound sockets, not yet accepting.
#[derive(Debug)]
pub struct Listeners(Vec<TcpListener>);

/// What runs, to be waited for and at last cut off.
#[derive(Debug, Clone)]
pub(super) struct Running {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

/// A socket cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}{}", hint(error))]
pub struct ListenError {
    address: SocketAddr,
    error: std::io::Error,
}

// === impl Listeners ===

impl Listeners {
    /// Binds all of `addresses`.
    ///
    /// # Errors
    /// One of them cannot be bound; then none is.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, ListenError> {
        let mut listeners = Vec::with_capacity(addresses.len());
        for address in addresses {
            let listener = listen(*address).map_err(|error| ListenError {
                address: *address,
                error,
            })?;
            listeners.push(listener);
        }
        Ok(Self(listeners))
    }

    /// The addresses with the ports that were bound.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().filter_map(|listener| listener.local_addr().ok())
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

    fn spawn(&self, stream: TcpStream, context: Context) {
        let running = self.clone();
        // Counted before the task has begun.
        let token = self.tasks.token();
        tokio::spawn(async move {
            let stream = Box::new(prepare(stream, context.client));
            running.track(connection::serve(stream, &context)).await;
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

async fn accept(listener: TcpListener, running: Running, live: Arc<Live>, mut shutdown: ShutdownWatch) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = shutdown.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, client)) => {
                let context = Context {
                    live: live.clone(),
                    client,
                    running: running.clone(),
                    inside: false,
                    shutdown: shutdown.clone(),
                };
                running.spawn(stream, context);
            }
            Err(error) => {
                // Most often the process has too many files open. The waiting connections stay
                // in the kernel's queue meanwhile.
                tracing::error!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Makes of a socket what pingora works with.
fn prepare(stream: TcpStream, client: SocketAddr) -> L4Stream {
    let mut stream = L4Stream::from(stream);
    if let Err(error) = stream.set_nodelay() {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let digest = SocketDigest::from_raw_fd(stream.id());
    // Asked of the socket later, it may be gone with the client.
    let _ = digest.peer_addr.set(Some(client.into()));
    stream.set_socket_digest(digest);
    stream
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; another program listens there, perhaps another robotgate: stop it or change \
             proxy.listen"
        }
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege: choose another in proxy.listen",
        std::io::ErrorKind::AddrNotAvailable => "; this machine has no such address: correct proxy.listen",
        _ => "",
    }
}

/// Connections that may wait to be accepted; the system may grant fewer.
const BACKLOG: u32 = 4096;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
