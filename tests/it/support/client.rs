//! Clients that say exactly what a test tells them to: over a fresh connection, a kept one, a tunnel, TLS, HTTP/2.

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
