//! Listens, takes CONNECTs, intercepts, forwards and refuses, with pingora. It asks [`crate::decision`] and never
//! decides itself.
//!
//! How a request is served:
//!
//! 1. `listen` (`accept`) accepts a connection and admits its client (`clients`, within `limits`). It terminates the
//!    TLS of `[proxy.tls]` (`server_tls`) and passes the connection to `connection`, with the objects that are needed
//!    to serve it (`context`) and a description of it for its requests (`client_connection`).
//! 2. `connection` reads one request head after the other (`head`). It passes a CONNECT to `connect`, which refuses it,
//!    opens a blind `tunnel`, or intercepts it (`intercept`). The requests inside an interception are served like those
//!    of any other connection, or as HTTP/2 (`streams`). Any other request becomes a `client`.
//! 3. `gate` serves the request, from top to bottom. `target` finds the origin. `judge` identifies the bot, gets the
//!    copy and asks [`crate::decision`]; `fetching` fetches and logs a robots.txt for it, and `tdmrep` a `tdmrep.json`.
//!    A request for an origin whose fetch is under way waits for that fetch ([`crate::store`], in `store::fetching`).
//!    `pacing` waits for the request's turn at the site. `exchange` writes the line in the audit log, and withdraws a
//!    response that forbids the use. Then the client gets a refusal
//!    (`respond`), the copy itself (`cached_response`), a page of the internal site (`http://robotgate.internal/`,
//!    `internal_site`), or the origin's response: `gate/forward` sends the request on a connection of
//!    [`crate::upstream`], and `relay` passes heads (`rewrite`, `fields`, `websocket`) and content both ways. All waits
//!    share one `timer`.
//!
//! `changes` notes which sites changed their robots.txt, and what that means. `rejections` logs clients that reject
//! the certificates of the interception. [`crate::metrics`] counts events, and
//! `snapshot` reads the other values when the metrics are requested. `sampler` passes to [`crate::history`] what was
//! counted.

mod cached_response;
mod changes;
mod check;
mod client;
mod client_connection;
mod client_stream;
mod clients;
mod connect;
mod connection;
mod content;
mod context;
mod exchange;
mod fetching;
mod fields;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gate;
mod generation;
mod handshake;
mod head;
mod intercept;
mod internal_site;
mod judge;
mod limits;
mod listen;
mod live;
mod pacing;
mod rejections;
mod relay;
mod respond;
mod rewrite;
mod sampler;
mod seen_texts;
mod server_tls;
mod snapshot;
mod streams;
mod target;
mod tdmrep;
mod timer;
mod tunnel;
mod websocket;

pub(crate) use self::judge::{NoDecision, decide, decide_from_memory, decide_with, operators};
pub use self::{
    check::{Unusable, Warnings, check, check_reload},
    generation::{Generation, SetupError},
    listen::{ListenError, Listeners, Planned, ServeOperator, Speaks},
    live::{Live, beyond_files},
    sampler::Sampler,
};
