//! The daemon, from start to stop: puts a configuration in force, listens, reloads when the file
//! changes or on SIGHUP, opens the audit log anew on SIGUSR1, and ends on SIGTERM or SIGINT, or when its terminal is closed,
//! as soon as running exchanges have ended. Where systemd started it, that is told of all this, and keeps the listening sockets over a restart.
//!
//! It decides nothing about requests and serves none.

mod greeting;
pub mod logging;
mod reload;
mod report;
mod systemd;

use std::{
    io::{self, IsTerminal as _},
    net::SocketAddr,
    os::fd::AsFd as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{Mutex, watch},
};
use tokio_util::sync::CancellationToken;

use self::{
    reload::Source,
    report::Report,
    systemd::{Inherited, Notifier},
};
use crate::{
    admin::{
        Serving,
        http::{AdminServer, LastReload, ServiceInfo},
    },
    audit::{LogFormat, MAX_WAIT},
    config::Config,
    expect::{self, LoadError},
    proxy::{ListenError, Listeners, Live, ServeOperator, SetupError},
    store::Disk,
};

/// The daemon.
#[derive(Debug)]
pub struct Service;

/// What it consists of while it runs.
struct Daemon {
    live: Arc<Live>,
    listeners: Arc<Listeners>,
    /// Answers operators.
    admin_server: Arc<AdminServer>,
    /// The socket beside the copies that are in use, where `robotgate cache` asks.
    socket: Mutex<Option<Serving>>,
    reloads: Reloads,
    notifier: Notifier,
    /// Workers, which a reload cannot change.
    threads: usize,
    /// Gives connections to the admin listener to the [`AdminServer`].
    operators: ServeOperator,
}

/// What came of the last reload, for those who ask later than the log was read.
type Reloads = Arc<ArcSwapOption<LastReload>>;

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error("cannot start threads: {0}")]
    Runtime(io::Error),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("robotgate stopped listening because of an internal error; see the line above")]
    Listening,
}

// === impl Service ===

impl Service {
    /// Runs by the configuration in `file`, or by the built-in one, until a signal ends it. An audit log on standard output
    /// is in `log_format`.
    ///
    /// # Errors
    /// The configuration is wrong, or something that it names cannot be had. Nothing was served then.
    pub fn run(file: Option<&Path>, log_format: LogFormat) -> Result<(), ServiceError> {
        // First, as it changes the environment, which only a lonely thread may.
        let inherited = Inherited::from_env();
        let notifier = Notifier::from_env();
        let ended = Self::start(file, log_format, inherited, &notifier);
        if let Err(error) = &ended {
            notifier.status(&format!("failed: {error}"));
        }
        ended
    }

    fn start(
        file: Option<&Path>,
        log_format: LogFormat,
        inherited: Inherited,
        notifier: &Notifier,
    ) -> Result<(), ServiceError> {
        raise_file_limit();
        // Before the file is read, so that no change is missed.
        let source = file.map(Source::begin);
        let config = file.map_or_else(|| Ok(Config::default()), expect::load)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(config.proxy.threads)
            .thread_name("robotgate")
            .enable_all()
            .build()
            .map_err(ServiceError::Runtime)?;
        let ended = runtime.block_on(Self::serve(config, source, log_format, inherited, notifier));
        // What still runs had its time.
        runtime.shutdown_background();
        ended
    }

    async fn serve(
        config: Config,
        source: Option<Source>,
        log_format: LogFormat,
        mut inherited: Inherited,
        notifier: &Notifier,
    ) -> Result<(), ServiceError> {
        // Before anything that takes time, so that no signal is missed.
        let mut stop = Stop::new().map_err(ServiceError::Signals)?;
        let hangup = signal(SignalKind::hangup()).map_err(ServiceError::Signals)?;
        let rotate = signal(SignalKind::user_defined1()).map_err(ServiceError::Signals)?;
        let (shutdown, stopping) = watch::channel(false);
        let cut_off = CancellationToken::new();
        let listeners = Arc::new(Listeners::new(stopping.clone(), cut_off.clone(), inherited.take()));
        let planned = listeners.plan(&config)?;
        let threads = config.proxy.threads;
        let opening = tokio::spawn(log_slow_opening());
        let live = Live::new(config, log_format)?;
        opening.abort();
        let open = planned.open(live.generation().listening())?;
        let reloads = Reloads::default();
        let service_info = ServiceInfo {
            listeners: listeners.clone(),
            last_reload: Box::new({
                let reloads = reloads.clone();
                move || reloads.load().as_deref().cloned()
            }),
            file: source.as_ref().map(|source| source.file().to_owned()),
        };
        let admin_server = Arc::new(AdminServer::new(live.clone(), service_info));
        let daemon = Arc::new(Daemon {
            live,
            listeners,
            socket: Mutex::default(),
            reloads,
            notifier: notifier.clone(),
            threads,
            operators: Arc::new({
                let admin_server = admin_server.clone();
                move |stream, peer, until| drop(tokio::spawn(admin_server.clone().serve_listener(stream, peer, until)))
            }),
            admin_server,
        });
        let Daemon {
            live,
            listeners,
            operators,
            ..
        } = &*daemon;
        // Before it is told that all is up.
        daemon.answer_on_socket().await;
        announce(live, source.as_ref().map(Source::file));
        listeners.take_up(open, live, operators);
        let in_use: Vec<_> = listeners.addresses().into_iter().map(|(address, _)| address).collect();
        inherited.log_unused(&in_use, notifier);
        daemon.have_sockets_kept(&[]);
        greeting::show(
            &live.generation().config,
            source.as_ref().map(Source::file),
            &listeners.addresses(),
            log_format,
        );

        tokio::spawn(reopen_logs(live.clone(), rotate));
        let report = Report::ready(notifier.clone(), live.clone(), daemon.reloads.clone());
        tokio::spawn(notifier.clone().watchdog_task());
        let reporting = tokio::spawn(report.clone().keep_up());
        let reloading = tokio::spawn(reload::run(daemon.clone(), source, hangup, stopping, report.clone()));
        let signal = tokio::select! {
            signal = stop.requested() => signal,
            // Listening ends by itself only when its task fails.
            () = listeners.failed() => {
                daemon.close_socket().await;
                close_files(live).await;
                return Err(ServiceError::Listening);
            }
        };
        tracing::info!(signal, "stopping");
        reporting.abort();
        let waiting = tokio::spawn(report::log_drain(
            live.clone(),
            live.generation().config.proxy.shutdown_timeout,
        ));
        tokio::spawn(report.drain(live.generation().config.proxy.shutdown_timeout));
        live.note_stop();
        // Nobody may be left to tell.
        let _ = shutdown.send(true);
        let ending = async {
            // One that has begun is seen to its end, as long as that takes no time.
            let _ = tokio::time::timeout(RELOAD_TO_END, reloading).await;
            if !listeners.drain(live.generation().config.proxy.shutdown_timeout).await {
                tracing::warn!("cut off the exchanges that were still open");
            }
            waiting.abort();
            daemon.close_socket().await;
            close_files(live).await;
        };
        tokio::pin!(ending);
        tokio::select! {
            () = &mut ending => {}
            signal = stop.requested() => {
                tracing::warn!(signal, "a second signal: stopping at once");
                cut_off.cancel();
                ending.await;
            }
        }
        tracing::info!("stopped");
        Ok(())
    }
}

// === impl Daemon ===

impl Daemon {
    /// Answers on a socket beside the copies that are in use now.
    async fn answer_on_socket(&self) {
        let mut socket = self.socket.lock().await;
        // First, as the other may be of the same place.
        if let Some(before) = socket.take() {
            before.stop().await;
        }
        let store = self.live.store();
        *socket = (store.disk()).and_then(|disk| Serving::start(disk.path(), self.admin_server.clone()));
    }

    /// Has systemd keep the sockets that are listened on now over a restart, and those no more that were `before`.
    fn have_sockets_kept(&self, before: &[SocketAddr]) {
        let open = self.listeners.open();
        for address in before
            .iter()
            .filter(|before| open.iter().all(|(address, _)| address != *before))
        {
            self.notifier.release(*address);
        }
        for (address, socket) in open.iter().filter(|(address, _)| !before.contains(address)) {
            self.notifier.keep(*address, socket.as_fd());
        }
    }

    /// Before the file is closed that the socket is beside.
    async fn close_socket(&self) {
        if let Some(socket) = self.socket.lock().await.take() {
            socket.stop().await;
        }
    }
}

/// Tells that opening the copies on disk takes long: another process holds the file, or it is checked after a crash.
async fn log_slow_opening() {
    loop {
        tokio::time::sleep(OPENING_PERIOD).await;
        tracing::info!(
            "still starting: opening the file of cache.path; another process may have it open, or robotgate is \
             checking it after a crash"
        );
    }
}

/// Opens the audit log anew on each signal, after someone has moved its file away. No configuration is read for it, so a
/// file with a mistake in it does not keep a full disk from being cleared.
async fn reopen_logs(live: Arc<Live>, mut requests: Signal) {
    while requests.recv().await.is_some() {
        // Those that a reload has replaced write what is left, to where it belongs.
        let generation = live.generation();
        // A disk is asked: not on a thread that serves requests.
        let reopening = tokio::task::spawn_blocking(move || generation.reopen_audit_log());
        match reopening.await {
            Ok(Ok(true)) => tracing::info!("audit log reopened"),
            Ok(Ok(false)) => tracing::info!("the audit log goes to standard output, so there is no file to reopen"),
            Ok(Err(error)) => tracing::error!(%error, "cannot reopen the audit log; robotgate keeps writing to the \
                 old file"),
            Err(error) => tracing::error!(%error, "cannot reopen the audit log: internal error"),
        }
    }
}

/// Each exchange takes two sockets, and the usual soft limit is 1,024 files.
fn raise_file_limit() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

/// The signals that end the daemon.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Whether a person started the daemon, who may close the terminal.
    at_terminal: bool,
}

// === impl Stop ===

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            at_terminal: io::stderr().is_terminal(),
        })
    }

    async fn requested(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                // A terminal that is closed is none any more. Any other SIGHUP is for a reload.
                Some(()) = self.hangup.recv() => if self.at_terminal && !io::stderr().is_terminal() {
                    return "SIGHUP";
                }
            }
        }
    }
}

fn announce(live: &Live, file: Option<&Path>) {
    let generation = live.generation();
    let (system, extra) = generation.roots();
    if system == 0 {
        tracing::warn!(
            "the system has no root certificates, so no https origin can be verified; install \
             them (on Debian and Ubuntu: apt install ca-certificates) or name some in \
             https.extra-roots"
        );
    }
    if let Some(authority) = generation.authority() {
        tracing::info!(
            certificate = %generation.config.https.ca_certificate.display(),
            fingerprint = authority.fingerprint(),
            "intercepting https with this authority"
        );
    }
    tracing::info!(
        generation = generation.number,
        system_roots = system,
        extra_roots = extra,
        bots = generation.config.bots.len(),
        "configuration loaded"
    );
    reload::log_warnings(&generation.config, file);
    if let Some(disk) = live.store().disk() {
        tracing::info!(path = %disk.path().display(), "keeping what is known of sites on disk");
    }
}

/// Ends the fetches that run and waits until every log and every copy is written, off the asynchronous threads; not for
/// ever, as what they are written to may take nothing.
async fn close_files(live: &Arc<Live>) {
    let (logs, store) = (live.audit_logs(), live.store().clone());
    // Their records belong into the logs.
    let _ = tokio::time::timeout(MAX_WAIT, store.end_fetches()).await;
    let closing_logs = tokio::task::spawn_blocking(move || logs.iter().for_each(|log| log.close()));
    let closing_copies = tokio::task::spawn_blocking(move || store.disk().map(Disk::close));
    let (logs, copies) = tokio::join!(
        tokio::time::timeout(MAX_WAIT, closing_logs),
        tokio::time::timeout(MAX_WAIT, closing_copies),
    );
    if logs.is_err() {
        tracing::error!("the last lines of the audit log are lost, because its output does not accept them");
    }
    if copies.is_err() {
        tracing::error!("the latest copies were not written, because the disk does not accept them");
    }
}

/// How long a start is silent.
const OPENING_PERIOD: Duration = Duration::from_secs(1);
/// For a reload that runs when the daemon is to stop.
const RELOAD_TO_END: Duration = Duration::from_secs(5);
