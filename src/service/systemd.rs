//! Exchanges messages and sockets with systemd (`sd_notify(3)`, `sd_listen_fds(3)`). A message that cannot be sent does
//! not stop the daemon.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use listenfd::ListenFd;
use parking_lot::Mutex;
use sd_notify::NotifyState;

use crate::text::plain;

/// Sends messages to systemd.
#[derive(Debug, Clone)]
pub struct Notifier(Option<Arc<LastSent>>);

#[derive(Debug, Default)]
struct LastSent {
    status: Mutex<String>,
    trouble: AtomicBool,
}

/// The sockets that systemd passed.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Socket>);

#[derive(Debug)]
struct Socket {
    address: SocketAddr,
    listener: Option<TcpListener>,
    /// Whether systemd keeps the socket because of [`Notifier::keep`]. [`Notifier::release`] makes systemd close it.
    kept: bool,
}

// === impl Notifier ===

impl Notifier {
    /// Creates a notifier, which sends nothing unless systemd expects messages (`NOTIFY_SOCKET`).
    pub fn from_env() -> Self {
        let wanted = std::env::var_os("NOTIFY_SOCKET").is_some_and(|path| !path.is_empty());
        Self(wanted.then(Arc::default))
    }

    /// Reports that the daemon serves clients, or that a reload has ended.
    pub fn ready(&self) {
        self.notify(&[NotifyState::Ready]);
    }

    /// Reports that the configuration is being read again. [`Notifier::ready`] must follow.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.notify(&[NotifyState::Reloading, now]),
            // With `Type=notify-reload`, systemd requires the time (`systemd.service(5)`), so do not report without it.
            Err(error) => tracing::debug!(%error, "cannot tell systemd about a reload"),
        }
    }

    /// Reports that the daemon is stopping.
    pub fn stopping(&self) {
        self.notify(&[NotifyState::Stopping]);
    }

    /// Sets the line that `systemctl status` shows. Unchanged text is not sent again.
    pub fn status(&self, text: &str) {
        let Some(sent) = &self.0 else { return };
        let text = plain(text.lines().next().unwrap_or_default(), MAX_STATUS);
        let mut last = sent.status.lock();
        if *last != text {
            last.clear();
            last.push_str(&text);
            drop(last);
            self.notify(&[NotifyState::Status(&text)]);
        }
    }

    /// Asks systemd to keep a listening socket across a restart, so that clients wait instead of being refused. The
    /// next start finds it in [`Inherited`].
    pub fn keep(&self, address: SocketAddr, socket: BorrowedFd<'_>) {
        let name = name_of(address);
        // systemd need not watch the socket for errors: the daemon notices them itself.
        let state = [
            NotifyState::FdStore,
            NotifyState::FdName(&name),
            NotifyState::Custom("FDPOLL=0"),
        ];
        self.notify_with(|| sd_notify::notify_with_fds(&state, &[socket]));
    }

    /// Asks systemd to close a socket that it keeps.
    pub fn release(&self, address: SocketAddr) {
        self.notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name_of(address))]);
    }

    /// If systemd's watchdog is on, tells it regularly that the daemon is alive. Before each message, a new task has to
    /// run, so the messages stop if all worker threads are blocked.
    pub async fn watchdog_task(self) {
        let Some(within) = sd_notify::watchdog_enabled().filter(|_| self.0.is_some()) else {
            return;
        };
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
            tracing::warn!(%error, "cannot send a message to systemd, which may therefore end or restart robotgate");
        }
    }
}

// === impl Inherited ===

impl Inherited {
    /// Takes the sockets that systemd passed. Changes the environment, so no other thread may run yet.
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

    /// Takes the listening sockets. They are non-blocking.
    pub fn take(&mut self) -> Vec<TcpListener> {
        self.0.iter_mut().filter_map(|socket| socket.listener.take()).collect()
    }

    /// Logs the passed sockets that are not in `in_use`. If systemd keeps such a socket, tells systemd to close it:
    /// otherwise, clients could connect to it and wait forever.
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
                     there; add its address to proxy.listen, proxy.tls.listen or admin.listen and restart robotgate, \
                     or remove it from the .socket unit"
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

/// The names of sockets must not contain `:` (`sd_notify(3)`).
fn name_of(address: SocketAddr) -> String {
    address.to_string().replace(':', "_")
}

/// Maximum length of a status line, in bytes.
const MAX_STATUS: usize = 400;
/// Prevents a busy loop if `WatchdogSec` is tiny by mistake.
const MIN_BEAT: Duration = Duration::from_millis(10);
