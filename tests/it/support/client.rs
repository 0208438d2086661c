//! Clients that send exactly what a test tells them to: over a new connection, an open one, a tunnel, TLS or HTTP/2.

mod ask;
mod connect;
mod connection;
pub mod frames;
mod h2;
mod response;

pub use self::{
    ask::Ask,
    connect::{Alpn, Connected, Tunnel, connect},
    connection::Connection,
    frames::{Frames, Outcome},
    response::Response,
};
pub use super::wire::End;
