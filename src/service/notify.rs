//! What systemd is told of the daemon, by the protocol of `sd_notify(3)`: that it is ready, reloads or stops, a line of
//! status for people, that it lives (the watchdog), and which sockets to keep for the next start.
//!
//! Where no systemd listens (`NOTIFY_SOCKET` is not set) all of it does nothing. It fails nobody: who cannot be told is
//! told of once in the log, and the daemon goes on.

use std::{
    io,
    net::SocketAddr,
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sd_notify::NotifyState;

use super::inherited::name_of;

/// Tells systemd. Clones tell the same one.
#[derive(Debug, Clone)]
pub struct Notifier(Option<Arc<Told>>);

/// What has been told.
#[derive(Debug, Default)]
struct Told {
    status: Mutex<String>,
    trouble: AtomicBool,
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
        self.tell(&[NotifyState::Ready]);
    }

    /// The configuration is being read again; [`Notifier::ready`] has to follow.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(&[NotifyState::Reloading, now]),
            // Newer systemds end a service that says the one without the other.
            Err(error) => tracing::debug!(%error, "systemd is not told of a reload"),
        }
    }

    /// No more clients are taken.
    pub fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// The line that `systemctl status` shows. It may be set often: what has not changed is not told again.
    pub fn status(&self, text: &str) {
        let Some(told) = &self.0 else { return };
        // Of an error with several lines the first says what is wrong.
        let text = crate::text::plain(text.lines().next().unwrap_or_default(), MAX_STATUS);
        let mut last = told.status.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != text {
            last.clear();
            last.push_str(&text);
            drop(last);
            self.tell(&[NotifyState::Status(&text)]);
        }
    }

    /// Has systemd hold a listening socket, so that it stays open over a restart: clients wait then and are not refused.
    /// The next start finds it in [`Inherited`](super::inherited::Inherited). To keep one that is kept already is no harm.
    pub fn keep(&self, address: SocketAddr, socket: BorrowedFd<'_>) {
        let name = name_of(address);
        // A socket that breaks is found out by who accepts from it; nobody else has to look.
        let state = [
            NotifyState::FdStore,
            NotifyState::FdName(&name),
            NotifyState::Custom("FDPOLL=0"),
        ];
        self.tell_with(|| sd_notify::notify_with_fds(&state, &[socket]));
    }

    /// Has systemd close a socket that it kept. While it does not, clients connect to it and wait for nobody.
    pub fn release(&self, address: SocketAddr) {
        self.tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name_of(address))]);
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
                self.tell(&[NotifyState::Watchdog]);
            }
        }
    }

    fn tell(&self, state: &[NotifyState<'_>]) {
        self.tell_with(|| sd_notify::notify(state));
    }

    fn tell_with(&self, send: impl FnOnce() -> io::Result<()>) {
        let Some(told) = &self.0 else { return };
        if let Err(error) = send()
            && !told.trouble.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, "systemd cannot be told how the service is doing");
        }
    }
}

/// Of a status, in bytes.
const MAX_STATUS: usize = 400;
/// A watchdog of a microsecond is a mistake that should not keep a worker busy.
const MIN_BEAT: Duration = Duration::from_millis(10);
