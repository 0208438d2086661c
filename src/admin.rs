//! What an operator asks. Over HTTP ([`http`]), of all that the proxy knows; and with a command, of the copies on disk:
//! which origins are known, what of one, in numbers, and to forget one.
//!
//! The file has room for one process. So the proxy that has it open answers on a socket beside it
//! (`serve`), and a command asks there, or opens the file itself where no proxy runs
//! ([`Copies`]). Both look at the file through `view`, by which it is the same answer.
//!
//! Nothing is decided here, and a request of a bot never waits for an answer here.

mod client;
pub mod http;
mod protocol;
mod row;
mod serve;
mod socket;
mod stats;
mod view;

pub use self::{
    client::{AdminError, Copies},
    protocol::Forgot,
    row::{CopyDetail, Detail, Row},
    serve::Serving,
    stats::{Count, Running, Stats},
};
