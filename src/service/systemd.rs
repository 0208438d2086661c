//! What passes between systemd and the daemon.
//!
//! It is told, by the protocol of `sd_notify(3)`: that the daemon is ready, reloads or stops, a line of status for people,
//! that it lives (the watchdog), and which sockets to keep for the next start. Where no systemd listens (`NOTIFY_SOCKET`
//! is not set) all of it does nothing. A failure is written to the log once, and the daemon goes on.
//!
//! It passes on listening sockets: those that it kept over a restart, and those of a `.socket` unit (`sd_listen_fds(3)`).
//! They are known by their address.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use listenfd::ListenFd;
use sd_notify::NotifyState;

use crate::text::plain;

/// Tells systemd. Clones tell the same one.
#[derive(Debug, Clone)]
pub struct Notifier(Option<Arc<LastSent>>);

/// What was sent last, so that nothing is sent twice.
#[derive(Debug, Default)]
struct LastSent {
    status: Mutex<String>,
    trouble: AtomicBool,
}

/// The sockets, and what is known of them.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Socket>);

#[derive(Debug)]
struct Socket {
    address: SocketAddr,
    /// `None` once it was taken.
    listener: Option<TcpListener>,
    /// Whether systemd keeps it by our own wish, and would go on when we close it.
    kept: bool,
}

// === impl Notifier ===

impl Notifier {
    /// For the systemd that started this process, if one did that wants to be told.
    pub fn from_env() -> Self {
        let wanted = std::env::var_os("NOTIFY_SOCKET").is_some_and(|path| !path.is_empty());
        Self(wanted.then(Arc::default))
    }

    /// Clients are served, by a configuration that is in force. Also said when a reload has ended, whichever way.
    pub fn ready(&self) {
        self.notify(&[NotifyState::Ready]);
    }

    /// The configuration is being read again; [`Notifier::ready`] has to follow.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.notify(&[NotifyState::Reloading, now]),
            // Newer systemds end a service that says the one without the other.
            Err(error) => tracing::debug!(%error, "cannot tell systemd about a reload"),
        }
    }

    /// No more clients are taken.
    pub fn stopping(&self) {
        self.notify(&[NotifyState::Stopping]);
    }

    /// The line that `systemctl status` shows. It may be set often: what has not changed is not told again.
    pub fn status(&self, text: &str) {
        let Some(sent) = &self.0 else { return };
        // Of an error with several lines the first says what is wrong.
        let text = plain(text.lines().next().unwrap_or_default(), MAX_STATUS);
        let mut last = sent.status.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != text {
            last.clear();
            last.push_str(&text);
            drop(last);
            self.notify(&[NotifyState::Status(&text)]);
        }
    }

    /// Has systemd hold a listening socket, so that it stays open over a restart: clients wait then and are not refused.
    /// The next start finds it in [`Inherited`]. To keep one that is kept already is no harm.
    pub fn keep(&self, address: SocketAddr, socket: BorrowedFd<'_>) {
        let name = name_of(address);
        // A socket that breaks is found out by who accepts from it; nobody else has to look.
        let state = [
            NotifyState::FdStore,
            NotifyState::FdName(&name),
            NotifyState::Custom("FDPOLL=0"),
        ];
        self.notify_with(|| sd_notify::notify_with_fds(&state, &[socket]));
    }

    /// Has systemd close a socket that it kept. While it does not, clients connect to it and wait for nobody.
    pub fn release(&self, address: SocketAddr) {
        self.notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name_of(address))]);
    }

    /// Tells systemd that the daemon lives, for as long as it does: twice in the time after which systemd would kill it
    /// (`WatchdogSec`), and only when a task that was just started has run. So a runtime whose workers are all stuck
    /// is not taken for one that works. Returns at once where nobody watches.
    pub async fn watchdog_task(self) {
        let Some(within) = sd_notify::watchdog_enabled().filter(|_| self.0.is_some()) else {
            return;
        };
        // A beat that comes late does not make the next one come early.
        let mut beat = tokio::time::interval((within / 2).max(MIN_BEAT));
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            beat.tick().await;
            if tokio::spawn(tokio::task::yield_now()).await.is_ok() {
                self.notify(&[NotifyState::Watchdog]);
            }
        }
    }

    fn notify(&self, state: &[NotifyState<'_>]) {
        self.notify_with(|| sd_notify::notify(state));
    }

    fn notify_with(&self, send: impl FnOnce() -> io::Result<()>) {
        let Some(sent) = &self.0 else { return };
        if let Err(error) = send()
            && !sent.trouble.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, "cannot report the status to systemd");
        }
    }
}

// === impl Inherited ===

impl Inherited {
    /// Takes what systemd passed on. The environment changes, so no other thread may run yet.
    pub fn from_env() -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::with_capacity(passed.len());
        let names = names.split(':').chain(std::iter::repeat(""));
        for (index, name) in (0..passed.len()).zip(names) {
            match passed
                .take_tcp_listener(index)
                .and_then(|socket| socket.map(Socket::new).transpose())
            {
                Ok(socket) => sockets.extend(socket.map(|socket| socket.named(name))),
                Err(error) => tracing::warn!(
                    name,
                    %error,
                    "systemd passed something that is not a listening TCP socket; robotgate ignores it"
                ),
            }
        }
        Self(sockets)
    }

    /// The sockets. Nothing that asks for them blocks.
    pub fn take(&mut self) -> Vec<TcpListener> {
        self.0.iter_mut().filter_map(|socket| socket.listener.take()).collect()
    }

    /// Tells of those that are not `in_use`: they were closed, so that no client waits there for an answer that never
    /// comes.
    pub fn log_unused(self, in_use: &[SocketAddr], notifier: &Notifier) {
        for Socket { address, kept, .. } in self.0 {
            if in_use.contains(&address) {
                continue;
            }
            if kept {
                notifier.release(address);
                tracing::info!(%address, "closed a socket from before the restart, because the configuration does \
                     not name it");
            } else {
                tracing::warn!(
                    %address,
                    "systemd passed a socket that the configuration does not name, so robotgate does not answer \
                     there; add its address to proxy.listen, or remove it from the .socket unit"
                );
            }
        }
    }
}

// === impl Socket ===

impl Socket {
    fn new(listener: TcpListener) -> io::Result<Self> {
        if !rustix::net::sockopt::socket_acceptconn(&listener)? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener: Some(listener),
            kept: false,
        })
    }

    fn named(mut self, name: &str) -> Self {
        self.kept = name == name_of(self.address);
        self
    }
}

/// What a socket is called while systemd keeps it. Such a name may hold no `:`.
fn name_of(address: SocketAddr) -> String {
    address.to_string().replace(':', "_")
}

/// Of a status, in bytes.
const MAX_STATUS: usize = 400;
/// A watchdog of a microsecond is a mistake that should not keep a worker busy.
const MIN_BEAT: Duration = Duration::from_millis(10);
