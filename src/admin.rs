//! The admin API, over HTTP ([`http`]). It is served on the admin listener, where it reports everything that the proxy
//! knows, and on a socket next to the cache file, for the command `robotgate cache`.
//!
//! Only one process can open the cache file. While a proxy has it open, the command asks the proxy over the socket
//! (`socket`). Otherwise it opens the file itself ([`Copies`]). Both read the file through `view`, so their answers are
//! the same.
//!
//! This module decides nothing, and no bot's request waits for it.

mod client;
pub mod http;
mod row;
mod socket;
mod stats;
mod versions;
mod view;

pub use self::{
    client::{AdminError, Copies},
    row::{Detail, Forgot, LastCopy, Row},
    socket::Serving,
    stats::{Count, Running, Stats},
    versions::{Difference, UNCHANGED, Version, VersionError, Versions, short},
};
