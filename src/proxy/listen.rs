//! The sockets that robotgate listens on, and who accepts there: bound before a configuration is put in force, so that
//! one that cannot listen changes nothing, and given up only when what waited on them has been taken.
//!
//! Each connection is a task of its own; when the proxy is to stop, no more are accepted and those that run get a bounded
//! time to end.

mod accept;
mod bind;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pingora::server::ShutdownWatch;
use serde::Serialize;
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
use crate::{config::Config, egress::Listening};

/// All sockets of the configuration in force.
#[derive(Debug)]
pub struct Listeners {
    listeners: Mutex<Vec<Listener>>,
    /// Those that the process was started with, until the first configuration is in force.
    inherited: Mutex<Vec<Socket>>,
    running: Running,
    /// Turns true when the proxy is to stop.
    shutdown: ShutdownWatch,
    /// Ends when the task of a listener fails.
    failed: CancellationToken,
}

/// The sockets of a configuration that is not yet in force. No client reaches those that are new.
#[derive(Debug)]
pub struct Planned {
    sockets: Vec<PlannedSocket>,
    /// Undone when this is dropped.
    _shared: SharedPorts,
}

/// The same, listening. Nobody accepts on those that are new.
#[derive(Debug)]
pub struct Open {
    sockets: Vec<Socket>,
    _shared: SharedPorts,
}

/// A socket of a plan.
#[derive(Debug)]
struct PlannedSocket {
    named: SocketAddr,
    address: SocketAddr,
    speaks: Speaks,
    socket: Bound,
}

/// A bound socket.
#[derive(Debug, Clone)]
struct Socket {
    /// As the configuration names it, where a port 0 stands for any.
    named: SocketAddr,
    address: SocketAddr,
    speaks: Speaks,
    socket: Arc<TcpListener>,
}

/// What clients speak first on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaks {
    Http,
    Tls,
    /// HTTP, with operators.
    Admin,
}

/// Serves an operator's connection, in a task of its own, until its socket is given up.
pub type ServeOperator = Arc<dyn Fn(TcpStream, SocketAddr, CancellationToken) + Send + Sync>;

/// A socket, and the task that accepts on it.
#[derive(Debug)]
struct Listener {
    socket: Socket,
    retire: CancellationToken,
    accepting: JoinHandle<()>,
}

// === impl Listeners ===

impl Listeners {
    /// Accepts nothing yet. What runs at last is cut off by `cut_off`. Of the sockets that the process was started with,
    /// `inherited`, the first configuration takes what it names, and the others are closed then.
    ///
    /// It has to be called within a runtime.
    pub fn new(shutdown: ShutdownWatch, cut_off: CancellationToken, inherited: Vec<std::net::TcpListener>) -> Self {
        let usable = |socket: std::net::TcpListener| {
            let address = socket.local_addr().ok()?;
            Some(Socket {
                named: address,
                address,
                // Until the configuration says what.
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

    /// The sockets that `config` names: those that are there already, and others, which are bound now and accept
    /// nothing yet. Dropped, it leaves no trace.
    ///
    /// It has to be called within a runtime.
    ///
    /// # Errors
    /// One of them cannot be bound.
    pub fn plan(&self, config: &Config) -> Result<Planned, ListenError> {
        let mut all = self.sockets();
        all.extend(self.inherited().iter().cloned());
        let mut others = all.clone();
        let exact = |(named, speaks)| {
            // Of one port 0, each that speaks something else has a socket of its own.
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
            // What comes to 127.0.0.1 goes to that socket for as long as there is one beside that of 0.0.0.0, and would
            // be lost on the way if it were closed.
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

    /// Accepts no more where `open` does not, when what has come there by now is taken: it is served by the
    /// configuration that is in force still.
    pub async fn retire(&self, open: &Open) {
        let retired: Vec<Listener> = {
            let mut listeners = self.lock();
            let (kept, retired) = listeners.drain(..).partition(|listener| open.has(&listener.socket));
            *listeners = kept;
            retired
        };
        for mut listener in retired {
            listener.end().await;
            let Socket { address, speaks, .. } = listener.socket;
            if !open.sockets.iter().any(|socket| socket.address == address) {
                tracing::info!(%address, speaks = speaks.as_str(), "stopped listening");
            }
        }
    }

    /// Accepts where `open` does.
    pub fn take_up(&self, open: Open, live: &Arc<Live>, operators: &ServeOperator) {
        // Those that are not in use are closed with this.
        self.inherited().clear();
        let mut listeners = self.lock();
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

    /// The addresses with the ports that were bound, and what is spoken there.
    pub fn addresses(&self) -> Vec<(SocketAddr, Speaks)> {
        let sockets = self.sockets().into_iter();
        sockets.map(|socket| (socket.address, socket.speaks)).collect()
    }

    /// Waits until the task of a listener ends by a fault in it.
    pub async fn failed(&self) {
        self.failed.cancelled().await;
    }

    /// After the proxy was told to stop: waits until no bot's connection is accepted any more and then for all that runs,
    /// at most for `bound` or until it is cut off. `true` where all of it ended. Operators are answered to the end.
    pub async fn drain(&self, bound: Duration) -> bool {
        let (for_operators, for_bots): (Vec<_>, Vec<_>) = {
            let mut listeners = self.lock();
            (listeners.drain(..)).partition(|listener| listener.socket.speaks == Speaks::Admin)
        };
        *self.lock() = for_operators;
        for listener in for_bots {
            // A task that panicked has said so; the others go on to their end.
            let _ = listener.accepting.await;
        }
        self.running.drain(bound).await
    }

    /// The sockets, by their addresses.
    pub fn open(&self) -> Vec<(SocketAddr, Arc<TcpListener>)> {
        let sockets = self.sockets().into_iter();
        sockets.map(|socket| (socket.address, socket.socket)).collect()
    }

    fn sockets(&self) -> Vec<Socket> {
        self.lock().iter().map(|listener| listener.socket.clone()).collect()
    }

    fn inherited(&self) -> MutexGuard<'_, Vec<Socket>> {
        self.inherited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the addresses of `config` are such as can be listened on. Those that are taken, perhaps by the robotgate that
/// runs, are returned with the keys that name them.
///
/// # Errors
/// One of them is not.
pub(super) fn check(config: &Config) -> Result<Vec<(SocketAddr, &'static str)>, ListenError> {
    let mut taken = Vec::new();
    for (address, speaks) in wanted(config) {
        if bind::check(address, speaks)? {
            taken.push((address, speaks.key()));
        }
    }
    Ok(taken)
}

/// Each address of the configuration.
fn wanted(config: &Config) -> impl Iterator<Item = (SocketAddr, Speaks)> {
    let proxy = &config.proxy;
    let plain = proxy.listen.iter().map(|address| (*address, Speaks::Http));
    let tls = proxy.tls.iter().flat_map(|tls| &tls.listen);
    let admin = config.admin.listen.iter().map(|address| (*address, Speaks::Admin));
    // Who waits for bots to be served, as systemd does, finds that operators are.
    admin.chain(plain).chain(tls.map(|address| (*address, Speaks::Tls)))
}

/// Whether `wide` takes what comes to `address`, too.
fn is_within(address: SocketAddr, wide: SocketAddr) -> bool {
    wide.port() == address.port() && wide.ip().is_unspecified() && (wide.is_ipv6() || address.is_ipv4())
}

/// Runs `accepting`, which ends only when it is told to; else `failed` is.
async fn watched(accepting: impl Future<Output = ()>, failed: CancellationToken) {
    let failing = failed.drop_guard();
    accepting.await;
    failing.disarm();
}

// === impl Planned ===

impl Planned {
    /// Listens, which `listening` is told of. From here on clients may connect to new sockets, and wait there.
    ///
    /// # Errors
    /// Another program has begun to listen there meanwhile.
    pub fn open(self, listening: &Listening) -> Result<Open, ListenError> {
        let addresses: Vec<SocketAddr> = self.sockets.iter().map(|socket| socket.address).collect();
        // First, as some request may be about to go there.
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
    /// Whether this is the other, and speaks the same.
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.socket, &other.socket) && self.speaks == other.speaks
    }
}

// === impl Listener ===

impl Listener {
    async fn end(&mut self) {
        self.retire.cancel();
        // A task that panicked has said so.
        let _ = (&mut self.accepting).await;
    }
}

// === impl Speaks ===

impl Speaks {
    pub fn as_str(self) -> &'static str {
        match self {
            Speaks::Http => "http",
            Speaks::Tls => "tls",
            Speaks::Admin => "admin",
        }
    }

    /// The key that names its addresses.
    fn key(self) -> &'static str {
        match self {
            Speaks::Http => "proxy.listen",
            Speaks::Tls => "proxy.tls.listen",
            Speaks::Admin => "admin.listen",
        }
    }
}
