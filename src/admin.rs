//! Answers operators, over HTTP ([`http`]) and for the commands `robotgate cache` and `robotgate health`. Requests of
//! bots never call this module, but bots and operators share the permits for fetches and for long decisions.
//!
//! Only one process can open the cache file. So while a proxy runs, `robotgate cache` ([`Copies`]) asks the proxy over
//! a socket (`socket`); otherwise it opens the file itself. The proxy and the command read the file with `view`.

mod client;
pub mod http;
mod probe;
mod row;
mod socket;
mod stats;
mod versions;
mod view;

pub use self::{
    client::{AdminError, Copies},
    probe::{Endpoint, Probe, ProbeAnswer, ProbeError, from_here},
    row::{Detail, Forgot, LastCopy, Row},
    socket::Serving,
    stats::{Count, Running, Stats},
    versions::{Difference, UNCHANGED, Version, VersionError, Versions, short},
};
