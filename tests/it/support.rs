//! The harness: an [`Origin`] that can misbehave, a name server ([`Dns`]), a [`Gate`] (the real binary on a free
//! port) and clients that say exactly what a test tells them to.
//!
//! Nothing here knows what robotgate decides. Nothing sleeps to wait for something: see [`wait`].

mod blackhole;
mod client;
mod dns;
mod expect;
mod fields;
mod gate;
mod io;
mod latch;
mod origin;
pub mod programs;
pub mod terminal;
mod tls;
mod told;
pub mod wait;
mod wire;

pub use self::{
    blackhole::Blackhole,
    client::frames,
    client::{Alpn, Ask, Connected, Connection, End, Frames, Outcome, Response, Tunnel},
    dns::{Answer, Dns},
    expect::{allowed, failed, refused, same_members},
    fields::Field,
    gate::{Builder, Gate, Record, Signal},
    io::{BoxIo, Io},
    latch::Latch,
    origin::{NAME, Origin, Reply, Request, Step},
    tls::{Certificate, Roots, origin_root_pem},
    told::Told,
    wire::Fields,
};
