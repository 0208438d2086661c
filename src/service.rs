//! The daemon: it reloads on SIGHUP, or when the configuration file or a file with secrets changes. It opens the audit
//! log again on SIGUSR1, or after the log's file was renamed, removed or replaced. It stops on SIGTERM, on SIGINT, or
//! when its terminal is closed. Before it stops, it waits up to `proxy.shutdown-timeout` for the running exchanges to
//! end.
//!
//! This module neither decides nor serves requests.

mod audit_file;
mod greeting;
mod history;
pub mod logging;
mod reload;
mod status_reporter;
mod stop;
mod systemd;

use std::{io, net::SocketAddr, os::fd::AsFd as _, path::Path, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Mutex, watch},
};
use tokio_util::sync::CancellationToken;

use self::{
    reload::WatchedConfig,
    status_reporter::StatusReporter,
    stop::{Stop, close_files},
    systemd::{Inherited, Notifier},
};
use crate::{
    admin::{
        Serving,
        http::{AdminServer, LastReload, ServiceInfo},
    },
    audit::LogFormat,
    config::{Config, Sources},
    expect::{self, LoadError},
    files::hits_file_limit,
    proxy::{ListenError, Listeners, Live, ServeOperator, SetupError},
};

/// The daemon: robotgate as a service that runs until a signal ends it.
#[derive(Debug)]
pub struct Service;

struct Daemon {
    live: Arc<Live>,
    listeners: Arc<Listeners>,
    admin_server: Arc<AdminServer>,
    /// The Unix socket next to the cache file, for `robotgate cache` and `robotgate health`.
    socket: Mutex<Option<Serving>>,
    reloads: Reloads,
    notifier: Notifier,
    /// Number of worker threads, which a reload cannot change.
    threads: usize,
    operators: ServeOperator,
}

type Reloads = Arc<ArcSwapOption<LastReload>>;

/// Why the daemon cannot start or, for [`Listening`](Self::Listening), why it stopped without a signal.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error("cannot create the event loop: {}{}", .0, match hits_file_limit(.0) {
        true => "; raise the limit of open files with ulimit -n or LimitNOFILE",
        false => "",
    })]
    Runtime(io::Error),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("stopped because of an internal error in a listener; report it with the panic message above")]
    Listening,
}

// === impl Service ===

impl Service {
    /// Runs with the configuration from `sources` until a signal ends it. `log_format` is for an audit log on standard
    /// output.
    ///
    /// # Errors
    /// Fails if the daemon cannot start, for example because the configuration is invalid or an address is in use.
    /// Fails later with [`ServiceError::Listening`] if a listener fails.
    pub fn run(sources: &Sources, log_format: LogFormat) -> Result<(), ServiceError> {
        // Take systemd's sockets first: this changes the environment, which only a single-threaded process may do.
        let inherited = Inherited::from_env();
        let notifier = Notifier::from_env();
        let ended = Self::start(sources, log_format, inherited, &notifier);
        if let Err(error) = &ended {
            notifier.status(&format!("failed: {error}"));
        }
        ended
    }

    fn start(
        sources: &Sources,
        log_format: LogFormat,
        inherited: Inherited,
        notifier: &Notifier,
    ) -> Result<(), ServiceError> {
        raise_file_limit();
        // Watch the configuration file before reading it, so that no change is missed.
        let source = WatchedConfig::begin(sources);
        let config = expect::load(sources)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(config.proxy.threads)
            .thread_name("robotgate")
            .enable_all()
            .build()
            .map_err(ServiceError::Runtime)?;
        let ended = runtime.block_on(Self::serve(
            config,
            absolute(sources).options(),
            source,
            log_format,
            inherited,
            notifier,
        ));
        // Do not wait for the remaining tasks: `serve` has given them time to end.
        runtime.shutdown_background();
        ended
    }

    async fn serve(
        config: Config,
        config_options: String,
        source: Option<WatchedConfig>,
        log_format: LogFormat,
        mut inherited: Inherited,
        notifier: &Notifier,
    ) -> Result<(), ServiceError> {
        // Begin to receive signals first, so that no signal is missed.
        let mut stop = Stop::new().map_err(ServiceError::Signals)?;
        let hangup = signal(SignalKind::hangup()).map_err(ServiceError::Signals)?;
        let rotate = signal(SignalKind::user_defined1()).map_err(ServiceError::Signals)?;
        let (shutdown, stopping) = watch::channel(false);
        let cut_off = CancellationToken::new();
        let listeners = Arc::new(Listeners::new(stopping.clone(), cut_off.clone(), inherited.take()));
        let planned = listeners.plan(&config)?;
        let threads = config.proxy.threads;
        let opening = tokio::spawn(log_slow_opening());
        let live = Live::new(config, log_format, config_options)?;
        history::restore(&live).await;
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
        daemon.answer_on_socket().await;
        announce(live, source.as_ref().map(WatchedConfig::file));
        let generation = live.generation();
        generation.log_start(
            source.as_ref().map(WatchedConfig::file),
            &generation.listening().addresses(),
        );
        listeners.start_accepting(open, live, operators);
        let in_use: Vec<_> = listeners.addresses().into_iter().map(|(address, _)| address).collect();
        inherited.log_unused(&in_use, notifier);
        daemon.have_sockets_kept(&[]);
        greeting::show(
            &live.generation().config,
            source.as_ref().map(WatchedConfig::file),
            &listeners.addresses(),
            log_format,
        );

        tokio::spawn(audit_file::keep_open(live.clone(), rotate));
        let report = StatusReporter::ready(notifier.clone(), live.clone(), daemon.reloads.clone());
        tokio::spawn(notifier.clone().watchdog_task());
        let keeping = history::keep(live.clone());
        let reporting = tokio::spawn(report.clone().keep_up());
        let reloading = tokio::spawn(reload::run(daemon.clone(), source, hangup, stopping, report.clone()));
        let signal = tokio::select! {
            signal = stop.requested() => signal,
            () = listeners.failed() => {
                daemon.close_socket().await;
                close_files(live, INTERNAL_ERROR, None).await;
                return Err(ServiceError::Listening);
            }
        };
        tracing::info!(signal, "stopping");
        let aborted = live.metrics().aborted();
        reporting.abort();
        let waiting = tokio::spawn(status_reporter::log_drain(
            live.clone(),
            live.generation().config.proxy.shutdown_timeout,
        ));
        tokio::spawn(report.drain(live.generation().config.proxy.shutdown_timeout));
        live.note_stop();
        let _ = shutdown.send(true);
        let ending = async {
            let _ = tokio::time::timeout(RELOAD_TO_END, reloading).await;
            if !listeners.drain(live.generation().config.proxy.shutdown_timeout).await {
                tracing::warn!("cut off the exchanges that were still open");
            }
            waiting.abort();
            daemon.close_socket().await;
            // Save the history before the cache file is closed: until then, no other robotgate writes the history.
            keeping.finish().await;
            close_files(live, signal, Some(aborted)).await;
        };
        tokio::pin!(ending);
        tokio::select! {
            () = &mut ending => {}
            signal = stop.requested() => {
                tracing::warn!(signal, "second signal: stopping immediately");
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
    async fn answer_on_socket(&self) {
        let mut socket = self.socket.lock().await;
        // Stop the old socket first: the new one may have the same path.
        if let Some(before) = socket.take() {
            before.stop().await;
        }
        let store = self.live.store();
        *socket = (store.disk()).and_then(|disk| Serving::start(disk.path(), self.admin_server.clone()));
    }

    /// Asks systemd to keep the open listening sockets across a restart, and to close those in `before` that robotgate
    /// has closed.
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

    /// Call this before the cache file is closed: afterwards, the path can be the socket of another robotgate.
    async fn close_socket(&self) {
        if let Some(socket) = self.socket.lock().await.take() {
            socket.stop().await;
        }
    }
}

/// robotgate's hints contain commands with the path of the configuration file, and people may run these commands in
/// another folder.
fn absolute(sources: &Sources) -> Sources {
    let mut sources = sources.clone();
    if let Some(file) = &mut sources.file
        && let Ok(absolute) = std::path::absolute(&*file)
    {
        *file = absolute;
    }
    sources
}

/// Logs once a second that robotgate is still starting. Usually, it is opening the cache file then.
async fn log_slow_opening() {
    loop {
        tokio::time::sleep(OPENING_PERIOD).await;
        tracing::info!(
            "still starting: probably opening the file of cache.path; another process may have it open, or robotgate \
             is checking it after a crash"
        );
    }
}

/// Raises the limit of open files to the maximum. An exchange can take two sockets, and the usual limit is 1,024.
fn raise_file_limit() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files, so robotgate can serve fewer connections; raise it with ulimit -n or LimitNOFILE");
    }
}

fn announce(live: &Live, file: Option<&Path>) {
    let generation = live.generation();
    let (system, extra) = generation.roots();
    if system == 0 {
        tracing::warn!(
            "robotgate found no root certificates of the system, so it can verify https sites only with those in \
             https.extra-roots; install some (on Debian and Ubuntu: apt install ca-certificates), and restart \
             robotgate"
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
        tracing::info!(path = %disk.path().display(), "keeping robots.txt files on disk");
    }
}

/// The cause of a stop without a signal, in the audit log.
const INTERNAL_ERROR: &str = "internal error";
const OPENING_PERIOD: Duration = Duration::from_secs(1);
/// How long a stop waits for a running reload.
const RELOAD_TO_END: Duration = Duration::from_secs(5);
