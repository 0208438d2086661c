//! The test harness: an [`Origin`] that can misbehave, a name server ([`Dns`]), a [`Gate`] (the real binary on a free
//! port), and clients that send exactly what a test tells them to.
//!
//! The harness does not know how robotgate should decide. To wait for an event, it polls until a deadline ([`wait`])
//! instead of sleeping for a fixed time.

mod blackhole;
mod cli_output;
mod client;
mod dns;
mod early_origin;
mod expect;
mod fields;
mod gate;
mod io;
mod latch;
mod link;
mod origin;
pub mod programs;
mod redis;
pub mod terminal;
mod tls;
pub mod wait;
mod wire;

pub use self::{
    blackhole::Blackhole,
    cli_output::CliOutput,
    client::frames,
    client::{Alpn, Ask, Connected, Connection, End, Frames, Outcome, Response, Tunnel},
    dns::{Dns, DnsAnswer},
    early_origin::EarlyOrigin,
    expect::{allowed, failed, refused, same_members},
    fields::Field,
    gate::{Builder, Gate, Record, Signal},
    io::{BoxIo, Io},
    latch::Latch,
    link::{Fault, Link},
    origin::{NAME, Origin, ROBOTS, Reply, Request, Step},
    redis::Redis,
    tls::{Certificate, Roots, origin_root_pem},
    wire::Fields,
};
