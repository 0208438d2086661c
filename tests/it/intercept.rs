//! `https.mode = "intercept"`: requests in a CONNECT are like other requests, and each is decided on its own.

mod certificates;
mod clients;
mod inside;
mod plain_inside;
mod websocket;

use crate::support::{Alpn, Connection, Gate, NAME};

/// Sends a CONNECT for `authority`, and starts TLS in the tunnel with the server name `shop.example`.
pub async fn open(gate: &Gate, authority: &str, alpn: Alpn) -> Connection {
    gate.connect(authority).await.opened().tls(NAME, alpn).await
}
