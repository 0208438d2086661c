//! The sockets on which robotgate listens, and the tasks that accept connections there.
//!
//! All sockets of a configuration are bound before the configuration is used. If one cannot be bound, nothing changes.
//! When a socket has to close, robotgate first accepts the connections that are waiting there.

mod accept;
mod bind;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pingora::server::ShutdownWatch;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

pub use self::bind::ListenError;
use self::{
    accept::Accepting,
    bind::{Bound, SharedPorts, bind},
};
use super::context::Running;
use super::live::Live;
use crate::{config::Config, egress::Listening, text::words};

/// All sockets of the current configuration.
#[derive(Debug)]
pub struct Listeners {
    listeners: Mutex<Vec<Listener>>,
    /// Inherited sockets, for example from systemd. Empty once the first configuration is loaded.
    inherited: Mutex<Vec<Socket>>,
    running: Running,
    shutdown: ShutdownWatch,
    failed: CancellationToken,
}

/// The sockets for a configuration that is not in force yet. The new ones are bound, but do not listen.
#[derive(Debug)]
pub struct Planned {
    sockets: Vec<PlannedSocket>,
    /// Lets new sockets use the ports of old ones, until this value is dropped.
    _shared: SharedPorts,
}

/// The sockets of a configuration. All of them listen, but no task accepts connections on the new ones yet.
#[derive(Debug)]
pub struct Open {
    sockets: Vec<Socket>,
    _shared: SharedPorts,
}

#[derive(Debug)]
struct PlannedSocket {
    named: SocketAddr,
    address: SocketAddr,
    speaks: Speaks,
    socket: Bound,
}

#[derive(Debug, Clone)]
struct Socket {
    /// The address in the configuration. Its port may be 0, for any free port.
    named: SocketAddr,
    address: SocketAddr,
    speaks: Speaks,
    socket: Arc<TcpListener>,
}

words! {
    /// The protocol that clients speak first on a socket.
    pub enum Speaks {
        Http = "http",
        Tls = "tls",
        /// HTTP, from operators instead of bots.
        Admin = "admin",
    }
}

/// A function that serves an operator's connection in a separate task. The task ends when the token is cancelled, which
/// happens when the listening socket closes.
pub type ServeOperator = Arc<dyn Fn(TcpStream, SocketAddr, CancellationToken) + Send + Sync>;

#[derive(Debug)]
struct Listener {
    socket: Socket,
    retire: CancellationToken,
    accepting: JoinHandle<()>,
}

// === impl Listeners ===

impl Listeners {
    /// Creates listeners that accept no connections yet. If a stop takes too long, cancel `cut_off` to end the
    /// connections.
    ///
    /// Must be called within a Tokio runtime.
    pub fn new(shutdown: ShutdownWatch, cut_off: CancellationToken, inherited: Vec<std::net::TcpListener>) -> Self {
        let usable = |socket: std::net::TcpListener| {
            let address = socket.local_addr().ok()?;
            Some(Socket {
                named: address,
                address,
                // `plan` sets the actual protocol.
                speaks: Speaks::Http,
                socket: Arc::new(TcpListener::from_std(socket).ok()?),
            })
        };
        Self {
            listeners: Mutex::default(),
            inherited: Mutex::new(inherited.into_iter().filter_map(usable).collect()),
            running: Running::new(cut_off),
            shutdown,
            failed: CancellationToken::new(),
        }
    }

    /// Binds the sockets that `config` names and that are not open yet. They do not listen until [`Planned::open`], and
    /// close if the plan is dropped.
    ///
    /// Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Fails if a socket cannot be bound.
    pub fn plan(&self, config: &Config) -> Result<Planned, ListenError> {
        let mut all = self.sockets();
        all.extend(self.inherited.lock().iter().cloned());
        let mut others = all.clone();
        let exact = |(named, speaks)| {
            // With port 0, which means any free port, HTTP and TLS may have the same address. Each then needs its own
            // socket.
            let is_same = |socket: &Socket| match socket.named == named {
                true => socket.speaks == speaks || named.port() != 0,
                false => socket.address == named,
            };
            let same = others.iter().position(is_same);
            (named, speaks, same.map(|at| others.swap_remove(at)))
        };
        let found: Vec<(SocketAddr, Speaks, Option<Socket>)> = wanted(config).map(exact).collect();
        let mut shared = SharedPorts::default();
        let mut sockets = Vec::with_capacity(found.len());
        for (named, speaks, same) in found {
            let (socket, address) = match same {
                Some(same) => (Bound::Listening(same.socket), same.address),
                None => bind(named, speaks, &all, &others, &mut shared)?,
            };
            sockets.push(PlannedSocket {
                named,
                address,
                speaks,
                socket,
            });
            // If the configuration now names 0.0.0.0, keep an old socket for 127.0.0.1. It still gets the connections
            // to 127.0.0.1, and closing it could lose those that wait.
            let (within, outside) = others.drain(..).partition(|other| is_within(other.address, address));
            others = outside;
            sockets.extend(within.into_iter().map(|within: Socket| PlannedSocket {
                named: within.named,
                address: within.address,
                speaks,
                socket: Bound::Listening(within.socket),
            }));
        }
        Ok(Planned {
            sockets,
            _shared: shared,
        })
    }

    /// Closes the sockets that are not in `open`, after accepting the connections that are waiting there.
    pub async fn retire(&self, open: &Open) {
        let retired: Vec<Listener> = {
            let mut listeners = self.listeners.lock();
            let (kept, retired) = listeners.drain(..).partition(|listener| open.has(&listener.socket));
            *listeners = kept;
            retired
        };
        for mut listener in retired {
            listener.end().await;
            let Socket { address, speaks, .. } = listener.socket;
            if !open.sockets.iter().any(|socket| socket.address == address) {
                tracing::info!(%address, speaks = speaks.as_str(), "stopped listening on this address, because the configuration no longer names it");
            }
        }
    }

    /// Begins to accept connections on the sockets in `open`.
    pub fn start_accepting(&self, open: Open, live: &Arc<Live>, operators: &ServeOperator) {
        // This closes the inherited sockets that the configuration does not use.
        self.inherited.lock().clear();
        let mut listeners = self.listeners.lock();
        for socket in open.sockets {
            if listeners.iter().any(|listener| listener.socket.is(&socket)) {
                continue;
            }
            let (address, speaks) = (socket.address, socket.speaks);
            tracing::info!(%address, tls = speaks == Speaks::Tls, speaks = speaks.as_str(), "listening");
            let retire = CancellationToken::new();
            let accepting = Accepting {
                socket: socket.clone(),
                live: live.clone(),
                operators: operators.clone(),
                running: self.running.clone(),
                shutdown: self.shutdown.clone(),
                retire: retire.clone(),
            };
            listeners.push(Listener {
                socket,
                retire,
                accepting: tokio::spawn(watched(accepting.run(), self.failed.clone())),
            });
        }
    }

    /// Returns the bound addresses with their actual ports, and the protocol on each.
    pub fn addresses(&self) -> Vec<(SocketAddr, Speaks)> {
        let sockets = self.sockets().into_iter();
        sockets.map(|socket| (socket.address, socket.speaks)).collect()
    }

    /// Waits until the task of a listener panics.
    pub async fn failed(&self) {
        self.failed.cancelled().await;
    }

    /// Waits until all connections of bots have ended. Returns `false` if some were cut off, after `bound` or because
    /// `cut_off` of [`new`](Self::new) was cancelled.
    ///
    /// Call this after the proxy has begun to stop.
    pub async fn drain(&self, bound: Duration) -> bool {
        let (for_operators, for_bots): (Vec<_>, Vec<_>) = {
            let mut listeners = self.listeners.lock();
            (listeners.drain(..)).partition(|listener| listener.socket.speaks == Speaks::Admin)
        };
        *self.listeners.lock() = for_operators;
        for listener in for_bots {
            // An error means that the task panicked, which was already reported. Its connections continue.
            let _ = listener.accepting.await;
        }
        self.running.drain(bound).await
    }

    /// Returns the open sockets with their addresses.
    pub fn open(&self) -> Vec<(SocketAddr, Arc<TcpListener>)> {
        let sockets = self.sockets().into_iter();
        sockets.map(|socket| (socket.address, socket.socket)).collect()
    }

    fn sockets(&self) -> Vec<Socket> {
        let listeners = self.listeners.lock();
        listeners.iter().map(|listener| listener.socket.clone()).collect()
    }
}

/// Returns the addresses of `config` that are in use, perhaps by the running robotgate, with their configuration keys.
/// Fails if robotgate cannot listen on an address for another reason.
pub(super) fn check(config: &Config) -> Result<Vec<(SocketAddr, &'static str)>, ListenError> {
    let mut taken = Vec::new();
    for (address, speaks) in wanted(config) {
        if bind::check(address, speaks)? {
            taken.push((address, speaks.key()));
        }
    }
    Ok(taken)
}

fn wanted(config: &Config) -> impl Iterator<Item = (SocketAddr, Speaks)> {
    let proxy = &config.proxy;
    let plain = proxy.listen.iter().map(|address| (*address, Speaks::Http));
    let tls = proxy.tls.iter().flat_map(|tls| &tls.listen);
    let admin = config.admin.listen.iter().map(|address| (*address, Speaks::Admin));
    // Admin listeners come first: a program may wait only until a listener for bots is open, and then use the admin
    // listeners too.
    admin.chain(plain).chain(tls.map(|address| (*address, Speaks::Tls)))
}

/// Returns whether a socket on `wide` also gets the connections to `address`, as `0.0.0.0` gets those to `127.0.0.1`.
fn is_within(address: SocketAddr, wide: SocketAddr) -> bool {
    wide.port() == address.port() && wide.ip().is_unspecified() && (wide.is_ipv6() || address.is_ipv4())
}

/// Cancels the token `failed` if `accepting` panics.
async fn watched(accepting: impl Future<Output = ()>, failed: CancellationToken) {
    let failing = failed.drop_guard();
    accepting.await;
    failing.disarm();
}

// === impl Planned ===

impl Planned {
    /// Begins to listen on all sockets, and adds their addresses to `listening`. Connections to the new sockets wait
    /// until [`Listeners::start_accepting`].
    ///
    /// # Errors
    /// Fails if another program has begun to listen on an address in the meantime.
    pub fn open(self, listening: &Listening) -> Result<Open, ListenError> {
        let addresses: Vec<SocketAddr> = self.sockets.iter().map(|socket| socket.address).collect();
        // Add the addresses before the sockets listen. Otherwise a bot's request to such an address could reach
        // robotgate itself.
        listening.add(&addresses);
        let open = |planned: PlannedSocket| {
            Ok(Socket {
                socket: planned.socket.listen(planned.address, planned.speaks)?,
                named: planned.named,
                address: planned.address,
                speaks: planned.speaks,
            })
        };
        Ok(Open {
            sockets: self.sockets.into_iter().map(open).collect::<Result<_, _>>()?,
            _shared: self._shared,
        })
    }
}

// === impl Open ===

impl Open {
    fn has(&self, other: &Socket) -> bool {
        self.sockets.iter().any(|socket| socket.is(other))
    }
}

// === impl Socket ===

impl Socket {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.socket, &other.socket) && self.speaks == other.speaks
    }
}

// === impl Listener ===

impl Listener {
    async fn end(&mut self) {
        self.retire.cancel();
        // An error means that the task panicked, which was already reported.
        let _ = (&mut self.accepting).await;
    }
}

// === impl Speaks ===

impl Speaks {
    fn key(self) -> &'static str {
        match self {
            Speaks::Http => "proxy.listen",
            Speaks::Tls => "proxy.tls.listen",
            Speaks::Admin => "admin.listen",
        }
    }
}
