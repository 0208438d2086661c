//! The admin API, over HTTP ([`http`]). It shows what the proxy knows and decides. Operators reach it at the address of
//! the admin listener. The command `robotgate cache` reaches it through a socket next to the cache file.
//!
//! Only one process can open the cache file. While a proxy has it open, the command asks the proxy over the socket
//! (`socket`). Otherwise it opens the file itself ([`Copies`]). The proxy and the command read the file with the same
//! code, `view`, so their answers are the same.
//!
//! Requests of bots never wait for this module. It only asks for decisions, which the module `decision` makes.

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
