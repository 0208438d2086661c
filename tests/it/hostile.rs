//! Bad input from clients and origins: robotgate logs it if that is useful, never forwards a guess at what a client
//! meant, and still serves others.

mod answers;
mod clients;
mod forgery;
mod framing;
mod http2;
mod origins;
mod targets;

use crate::support::{Connection, Gate, Origin, Response, allowed};

async fn start() -> (Origin, Gate) {
    (Origin::start().anything("page").spawn().await, Gate::start().await)
}

async fn gate_still_works(gate: &mut Gate, origin: &Origin) {
    allowed(&gate.get(&origin.url("/still-well")).await, "no-robots");
    assert!(gate.runs());
    let panic = gate.log().into_iter().find(|line| line.says("panicked"));
    assert!(panic.is_none(), "{panic:#?}");
}

/// Parses the response in the bytes of a connection. Returns `None` if the gate closed without a response.
async fn parse(bytes: Vec<u8>) -> Option<Response> {
    if bytes.is_empty() {
        return None;
    }
    let (near, far) = tokio::io::duplex(bytes.len());
    let mut sender = Connection::over_io(far);
    sender.send(bytes).await;
    drop(sender);
    Some(Connection::over_io(near).response_to("GET").await)
}
