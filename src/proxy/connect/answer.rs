//! The responses to a CONNECT.

use tokio::io::AsyncWriteExt as _;

use crate::proxy::{
    client_stream::ClientStream,
    context::{LINGER, linger},
    exchange::Exchange,
    respond::OwnResponse,
};

/// Responds to a CONNECT without opening a tunnel, and closes the connection, because what the client has sent after
/// the CONNECT was meant for the tunnel.
pub(in crate::proxy) async fn answer_and_close(
    mut stream: ClientStream,
    answer: &OwnResponse,
    exchange: &mut Exchange,
) {
    let sent = async {
        stream.write_all(&answer.to_http1(true)).await?;
        stream.flush().await
    };
    exchange.status = sent.await.is_ok().then(|| answer.head.status.as_u16());
    exchange.passed.set((0, answer.body.len() as u64));
    exchange.complete().await;
    let _ = stream.shutdown().await;
    linger(&mut stream, LINGER).await;
}

/// The response that opens a tunnel. It has no header fields, because some clients would read them as bytes of the
/// tunnel (RFC 9110 §9.3.6).
pub(in crate::proxy) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
