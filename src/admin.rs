//! What an operator asks, over HTTP ([`http`]): of all that the proxy knows at the admin listener, and the same on a
//! socket beside the file of the copies, for the command `cache`.
//!
//! That file has room for one process. So the proxy that has it open answers for it (`socket`), and the command asks
//! there, or opens the file itself where no proxy runs ([`Copies`]). Both look at the file through `view`, by which it is
//! the same answer.
//!
//! Nothing is decided here, and a request of a bot never waits for an answer here.

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
