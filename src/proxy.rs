//! The pingora side: listens, takes CONNECTs, intercepts, forwards and refuses. It asks
//! [`crate::decision`] and never decides itself.
//!
//! The way of a request:
//!
//! 1. `listen` (`accept`) takes a connection, lets its client in (`clients`, by the bounds of `limits`), ends the TLS of
//!    `[proxy.tls]` (`server_tls`), and hands it to `connection` with what it needs there (`context`). What a
//!    request has to know of its connection (`client_connection`) goes with it.
//! 2. `connection` reads one request head after the other (`head`). A CONNECT goes to `connect`,
//!    which refuses it, opens a blind `tunnel`, or intercepts (`intercept`) and then serves what
//!    comes inside like any other connection, or as HTTP/2 (`streams`). Anything else is a request of a `client`.
//! 3. `gate` serves it, from top to bottom: which origin is meant (`target`), who asks and whether they may (`judge`, which
//!    puts the question to [`crate::decision`] and brings the copy; what has to be fetched for that, `fetching` fetches and
//!    logs), the line in the audit log (`exchange`), and then a refusal (`respond`), an answer from the copy
//!    (`cached_response`) or from robotgate itself (`http://robotgate.internal/`, `internal_site`), or the origin's:
//!    `gate/forward` puts the request to it on a connection of [`crate::upstream`], and `relay` passes heads (`rewrite`,
//!    `fields`, `websocket`) and content both ways. What waits, waits for one `timer`.
//!
//! `rejections` logs clients that reject the certificates of the interception. What is counted on the way is in
//! [`crate::metrics`]; `snapshot` reads the other values when somebody asks for the metrics.

mod cached_response;
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
mod rejections;
mod relay;
mod respond;
mod rewrite;
mod server_tls;
mod snapshot;
mod streams;
mod target;
mod timer;
mod tunnel;
mod websocket;

pub(crate) use self::judge::{NoDecision, decide, operators};
pub use self::{
    check::{Doubts, Unusable, check, check_reload},
    generation::{Generation, SetupError},
    listen::{ListenError, Listeners, Planned, ServeOperator, Speaks},
    live::Live,
};
