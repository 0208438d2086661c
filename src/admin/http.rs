//! The admin listener: operators, their programs and schedulers ask over HTTP/1.1.
//!
//! Who asks is bounded in everything: connections at once, the time for a request and for taking its answer, the bytes
//! of a request, questions that are decided at once. So nobody here, however slow or hostile, keeps a bot waiting.
//! Nothing is changed by any request: what is asked is looked up, and a robots.txt may be fetched as the proxy would.

mod access;
mod asked;
mod connection;
mod decide;
mod explain;
mod files;
mod health;
mod origins;
mod problem;
mod refusals;
mod routes;
mod seats;
mod sources;
mod status;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::Router;
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_util::sync::CancellationToken;

pub use self::sources::{Authority, Document, LastReload, Listens, Numbers, Settings, Sources, TrustProblem};
use self::{problem::Problem, seats::Seats};
use crate::{
    proxy::Live,
    seldom::seldom,
    store::{CopyFile, Disk, FileError},
};

/// Answers those who ask, on as many connections as there are seats.
#[derive(Debug)]
pub struct Desk {
    routes: Router,
    seats: Seats,
}

/// What answers are made of.
struct Context {
    /// Turns of those who scrape the metrics, which take memory while they are written.
    scrapes: Semaphore,
    live: Arc<Live>,
    sources: Box<dyn Sources>,
    started: SystemTime,
    /// Turns of those who ask for many decisions.
    deciding: Semaphore,
    /// Turns of explanations, each of which takes a thread.
    explaining: Arc<Semaphore>,
}

// === impl Desk ===

impl Desk {
    /// A desk that tells of `live`, and by `sources` of what is known elsewhere.
    pub fn new(live: Arc<Live>, sources: impl Sources + 'static) -> Self {
        let context = Context {
            live,
            sources: Box::new(sources),
            started: SystemTime::now(),
            scrapes: Semaphore::new(SCRAPES),
            deciding: Semaphore::new(DECISIONS),
            explaining: Arc::new(Semaphore::new(EXPLANATIONS)),
        };
        Self {
            routes: routes::router(Arc::new(context)),
            seats: Seats::default(),
        }
    }
}

// === impl Context ===

impl Context {
    /// Works with the file of the copies, off the asynchronous threads.
    async fn with_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CopyFile) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Problem> {
        let store = self.live.store().clone();
        let working = tokio::task::spawn_blocking(move || {
            let disk = store.disk()?;
            disk.with_file(work).ok()
        });
        working.await.ok().flatten().ok_or(Problem::Disk)
    }

    /// Has written what waits for it, so that the latest is seen; not for ever.
    async fn write_what_waits(&self) {
        if let Some(disk) = self.live.store().disk().filter(|disk| disk.waiting() > 0) {
            // What is there is shown all the same.
            let _ = tokio::time::timeout(TO_WRITE, Disk::flush(disk)).await;
        }
    }
}

/// Serves a connection to its end, or to the answer that is being given when `until` ends.
pub async fn serve(stream: TcpStream, peer: SocketAddr, desk: Arc<Desk>, until: CancellationToken) {
    let Some(seat) = desk.seats.take(peer.ip()).await else {
        return seldom!(info, %peer, "the admin listener has too many connections; one was closed");
    };
    connection::serve(stream, peer, seat, desk.routes.clone(), until).await;
}

/// Scrapes that are written at once.
const SCRAPES: usize = 2;
/// Decisions that are made at once for those who ask for many.
const DECISIONS: usize = 64;
/// Explanations that are made at once.
const EXPLANATIONS: usize = 4;
/// How long somebody waits for what is written meanwhile.
const TO_WRITE: Duration = Duration::from_secs(1);
