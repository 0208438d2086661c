//! The proxy: it accepts connections, and forwards or refuses each request by means of the library pingora. It asks
//! [`crate::decision`] whether a request is allowed, and never decides that itself.
//!
//! How a request is served:
//!
//! 1. `listen/accept` accepts a connection, unless the client, or all clients together, have reached their limit of
//!    connections (`clients`). On a listener of `[proxy.tls]`, it terminates the TLS with the settings of `server_tls`.
//!    `client_connection` describes the connection, and `context` has the objects that are needed to serve it.
//! 2. `connection` reads one request head after the other (`head`). It passes a CONNECT to `connect`, and every
//!    other request to `gate`. `connect` refuses the CONNECT, opens a blind `tunnel`, or intercepts it (`intercept`).
//!    `gate` reads the request's content and sends the response by means of `client`. The requests inside an
//!    intercepted CONNECT are served in the same way, or as HTTP/2 (`streams`).
//! 3. `gate` checks the client's limits, and whether the request has passed through this proxy before. Then it serves the
//!    request in these steps:
//!    - `target` finds the origin and the path that the request asks for.
//!    - `judge` identifies the bot, gets the copy of the origin's robots.txt, and asks [`crate::decision`]. If there is
//!      no fresh copy, `fetching` fetches one and logs the fetch. robotgate gets a `tdmrep.json` in the same way
//!      (`tdmrep`).
//!    - `pacing` waits until the site's pace allows the request. After a wait, `judge` decides again.
//!    - `exchange` writes the decision to the audit log. If the decision refuses the request, `gate` sends the refusal
//!      (`respond`). If the origin's response forbids the bot's use of its content, the bot gets a refusal instead of
//!      the response.
//! 4. The client gets one of these responses:
//!    - a refusal or an error (`respond`)
//!    - robotgate's copy of the robots.txt, if the bot asked for that file and `robots.serve-copies` is set
//!      (`cached_response`)
//!    - a page of the internal site, `http://robotgate.internal/` (`internal_site`)
//!    - the origin's response: `gate/forward` sends the request on a connection of [`crate::upstream`], and `relay`
//!      passes heads (`rewrite`, `fields`, `websocket`) and content between the client and the origin
//!
//! `changes` logs which sites changed their robots.txt, and `rejections` logs clients that do not trust robotgate's
//! certificates. [`crate::metrics`] counts events. `snapshot` reads the values that are not counted, and `sampler`
//! passes the counts to [`crate::history`].

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
