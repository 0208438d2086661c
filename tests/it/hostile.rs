//! Bad input from clients: answered, named in the log where that helps, and never forwarded on a guess.

mod answers;
mod clients;
mod forgery;
mod framing;
mod http2;
mod origins;
mod targets;

use crate::support::{Connection, Gate, Origin, Response, allowed};

/// An origin that has no rules, and a gate.
async fn start() -> (Origin, Gate) {
    (Origin::start().anything("page").spawn().await, Gate::start().await)
}

/// The gate is as well as before: it serves the next client, and nothing in it has panicked.
async fn is_well(gate: &mut Gate, origin: &Origin) {
    allowed(&gate.get(&origin.url("/still-well")).await, "no-robots");
    assert!(gate.runs());
    let panic = gate.log().into_iter().find(|line| line.says("panicked"));
    assert!(panic.is_none(), "{panic:#?}");
}

/// The response in bytes that came back on a connection; `None` where the gate just closed it.
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
