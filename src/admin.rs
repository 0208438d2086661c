//! The admin API, over HTTP ([`http`]): at the admin listener for everything that the proxy knows, and on a socket
//! beside the cache file, for the command `cache`.
//!
//! Only one process can open the cache file. While a proxy has it open, the command asks the proxy over the socket
//! (`socket`). Otherwise it opens the file itself ([`Copies`]). Both read the file through `view`, so their answers are
//! the same.
//!
//! Nothing is decided here, and no bot's request waits for this API.

mod client;
pub mod http;
mod row;
mod socket;
mod stats;
mod view;

pub use self::{
    client::{AdminError, Copies},
    row::{Detail, Forgot, LastCopy, Row},
    socket::Serving,
    stats::{Count, Running, Stats},
};
