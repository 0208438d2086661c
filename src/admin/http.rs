//! The admin listener: operators, their programs and schedulers ask over HTTP/1.1.
//!
//! Who asks is bounded in everything: connections at once, the time for a request and for taking its answer, the bytes
//! of a request, questions that are decided at once. So nobody here, however slow or hostile, keeps a bot waiting.
//! Nothing is changed by any request: what is asked is looked up, and a robots.txt may be fetched as the proxy would.

mod access;
mod connection;
mod files;
mod health;
mod problem;
mod routes;
mod seats;
mod sources;

use std::{net::SocketAddr, sync::Arc, time::SystemTime};

use axum::Router;
use tokio::net::TcpStream;

use self::seats::Seats;
pub use self::sources::{Authority, Document, LastReload, Listens, Numbers, Settings, Sources, TrustProblem};
use crate::proxy::Live;

/// Answers those who ask, on as many connections as there are seats.
#[derive(Debug)]
pub struct Desk {
    routes: Router,
    seats: Seats,
}

/// What answers are made of.
struct Context {
    live: Arc<Live>,
    sources: Box<dyn Sources>,
    started: SystemTime,
}

// === impl Desk ===

impl Desk {
    /// A desk that tells of `live`, and by `sources` of what is known elsewhere.
    pub fn new(live: Arc<Live>, sources: impl Sources + 'static) -> Self {
        let context = Context {
            live,
            sources: Box::new(sources),
            started: SystemTime::now(),
        };
        Self {
            routes: routes::router(Arc::new(context)),
            seats: Seats::default(),
        }
    }
}

/// Serves a connection to its end.
pub async fn serve(stream: TcpStream, peer: SocketAddr, desk: Arc<Desk>) {
    let Some(seat) = desk.seats.take().await else {
        return tracing::info!(%peer, "the admin listener has too many connections; one was closed");
    };
    connection::serve(stream, peer, seat, desk.routes.clone()).await;
}
