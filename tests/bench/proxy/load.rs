//! The load generator: clients that each repeat one action, on the benchmark's own threads.

mod client;
mod connect;
mod http1;
mod http2;
mod request;
mod tally;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{runtime, sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

use self::client::Client;
pub use self::{
    request::{Host, Request},
    tally::Tally,
};
use super::{Outcome, process};

/// The connections and requests of the clients.
#[derive(Clone, Copy)]
pub struct Plan {
    pub protocol: Protocol,
    pub pattern: Pattern,
    pub request: Request,
    pub connections: usize,
    /// Concurrent requests on each connection, for HTTP/2.
    pub streams: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Protocol {
    /// Plain HTTP/1.1; in absolute form if there is a proxy.
    Plain,
    /// HTTP/1.1 over TLS; inside a CONNECT if there is a proxy.
    Http1,
    /// HTTP/2 over TLS; inside a CONNECT if there is a proxy.
    Http2,
    /// Like `Http1`, but inside a CONNECT that the proxy does not intercept.
    Tunnel,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Pattern {
    /// One request after the other on kept connections.
    Kept,
    /// A new connection for each request.
    New,
    /// One request on each connection, which then stays idle.
    Idle,
    /// One request on each connection, whose response is not read.
    Unread,
}

/// The address to connect to: a proxy, or `None` for the origin itself.
pub type Proxy = Option<SocketAddr>;

pub struct Measured {
    pub elapsed: Duration,
    pub tally: Tally,
}

struct Stage {
    plan: Plan,
    proxy: Proxy,
    /// Number of clients that have received a response.
    ready: AtomicUsize,
    /// Number of clients that have received another response after all clients were ready.
    warm: AtomicUsize,
    measuring: AtomicBool,
    /// Cancelled when every client is ready and may continue.
    all_ready: CancellationToken,
    over: CancellationToken,
    /// Limits how many clients connect at the same time, so that no listener's queue overflows.
    connecting: Semaphore,
}

impl Plan {
    /// Runs the clients for `time`, after a `warm_up` during which they already send requests. Calls `look` before and
    /// after that time.
    pub fn measure(
        &self,
        proxy: Proxy,
        warm_up: Duration,
        time: Duration,
        mut look: impl FnMut(Phase),
    ) -> Outcome<Measured> {
        let (elapsed, tally) = self.perform(proxy, |stage| {
            // During this wait, proxies open their connections to the origin.
            stage.wait(&stage.warm, || false);
            thread::sleep(warm_up);
            look(Phase::Before);
            let started = Instant::now();
            stage.measuring.store(true, Ordering::Relaxed);
            thread::sleep(time);
            stage.measuring.store(false, Ordering::Relaxed);
            let elapsed = started.elapsed();
            look(Phase::After);
            elapsed
        })?;
        Ok(Measured { elapsed, tally })
    }

    /// Connects all clients, and calls `look` while their connections are open.
    pub fn hold<T>(&self, proxy: Proxy, look: impl FnOnce() -> T) -> Outcome<T> {
        self.perform(proxy, |_| look()).map(|(seen, _)| seen)
    }

    fn perform<T>(&self, proxy: Proxy, conduct: impl FnOnce(&Stage) -> T) -> Outcome<(T, Tally)> {
        let stage = Arc::new(Stage {
            plan: *self,
            proxy,
            ready: AtomicUsize::new(0),
            warm: AtomicUsize::new(0),
            measuring: AtomicBool::new(false),
            all_ready: CancellationToken::new(),
            over: CancellationToken::new(),
            connecting: Semaphore::new(CONNECTING),
        });
        let threads = process::threads().min(self.connections);
        let mut running = Vec::new();
        for thread in 0..threads {
            let stage = stage.clone();
            running.push(thread::spawn(move || run(&stage, thread, threads)));
        }
        let began = stage.wait(&stage.ready, || running.iter().any(thread::JoinHandle::is_finished));
        stage.all_ready.cancel();
        let seen = began.then(|| conduct(&stage));
        stage.over.cancel();
        let mut tally = Tally::default();
        for thread in running {
            tally.add(thread.join().map_err(|_| "the load generator panicked")??);
        }
        match seen {
            Some(seen) => Ok((seen, tally)),
            None => {
                let ready = stage.ready.load(Ordering::Relaxed);
                let why = tally.first_error.unwrap_or_else(|| "no answer".to_owned());
                Err(format!(
                    "only {ready} of {} connections got the expected answer: {why}",
                    self.connections
                )
                .into())
            }
        }
    }
}

/// The start and the end of the measured time.
#[derive(Clone, Copy)]
pub enum Phase {
    Before,
    After,
}

// === impl Stage ===

impl Stage {
    /// Waits until `counted` reaches the number of clients. Returns false if that takes too long, or `failed` returns
    /// true.
    fn wait(&self, counted: &AtomicUsize, failed: impl Fn() -> bool) -> bool {
        let mut patience = Instant::now() + PATIENCE;
        let mut last = 0;
        loop {
            let now = counted.load(Ordering::Relaxed);
            if now >= self.plan.connections {
                return true;
            }
            if now > last {
                patience = Instant::now() + PATIENCE;
            }
            if Instant::now() > patience || failed() {
                return false;
            }
            last = now;
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }
}

fn run(stage: &Arc<Stage>, thread: usize, threads: usize) -> Outcome<Tally> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut clients = JoinSet::new();
        for number in (thread..stage.plan.connections).step_by(threads) {
            clients.spawn(Client::new(stage.clone(), number)?.run());
        }
        let mut tally = Tally::default();
        let finish = async {
            while let Some(done) = clients.join_next().await {
                tally.add(done?);
            }
            Ok::<_, tokio::task::JoinError>(())
        };
        let too_late = async {
            stage.over.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            finished = finish => finished?,
            () = too_late => return Err("a request was never answered".into()),
        }
        Ok(tally)
    })
}

/// How long to wait until one more client gets a response, and until the last requests end.
const PATIENCE: Duration = Duration::from_secs(5);
const CONNECTING: usize = 64;
