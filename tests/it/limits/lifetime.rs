//! Time limits: content that stops arriving, and tunnels and WebSockets that do not end.

use super::logged_total;
use crate::support::{Alpn, Connection, Gate, NAME, Origin, Reply, Step, failed};

const LIFE: &str = "tunnel-timeout = \"600ms\"";
const UPGRADED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

async fn echo() -> Origin {
    Origin::start()
        .otherwise(|request| match request.path() {
            "/robots.txt" => Reply::status(404),
            _ => Reply::script([Step::send(UPGRADED), Step::Echo]),
        })
        .tls()
        .spawn()
        .await
}

async fn talk(mut connection: Connection) {
    while connection.try_send(b"ping").await {
        match connection.try_read().await {
            Some(bytes) if !bytes.is_empty() => {}
            _ => return,
        }
    }
}

#[tokio::test]
async fn content_that_stops_arriving_is_a_408_and_counted() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::with("[proxy]\nbody-timeout = \"200ms\"").await;
    let mut connection = gate.dial().await;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot/1.0\r\nContent-Length: 100\r\n\r\nsome",
        origin.url("/x"),
        origin.authority(),
    );
    connection.send(head).await;

    failed(&connection.response_to("POST").await, 408, &["http_request_error"]);

    assert_eq!(logged_total(&gate, "body-timeout").await, 1);
    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "http_request_error", "{completions:#?}");
}

#[tokio::test]
async fn a_busy_tunnel_ends_after_its_lifetime() {
    let origin = echo().await;
    let gate = Gate::with(&format!("[proxy]\n{LIFE}\n[https]\nmode = \"tunnel\"")).await;
    let tunnel = gate
        .connect(&origin.authority())
        .user_agent("TestBot/1.0")
        .await
        .opened();
    let tunnel = tunnel.trusting(crate::support::Roots::of_origins());
    // On a busy machine the limit can expire before the handshake is done.
    if let Ok(mut inside) = tunnel.try_tls(NAME, Alpn::Http1).await {
        inside.try_send(b"GET / HTTP/1.1\r\n\r\n").await;
        talk(inside).await;
    }

    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "lifetime", "{completions:#?}");
    assert_eq!(logged_total(&gate, "tunnel-timeout").await, 1);
}

#[tokio::test]
async fn a_busy_websocket_ends_after_its_lifetime() {
    let origin = echo().await;
    let gate = Gate::with(&format!("[proxy]\n{LIFE}")).await;
    let mut inside = gate
        .connect(&origin.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http1)
        .await;
    let upgrade = inside
        .get("/chat")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(upgrade.await.status, 101);

    talk(inside).await;

    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "lifetime", "{completions:#?}");
    assert_eq!(logged_total(&gate, "tunnel-timeout").await, 1);
}

#[tokio::test]
async fn a_tunnel_that_ends_as_idle_is_counted() {
    let origin = echo().await;
    let gate = Gate::with("[proxy]\ntunnel-idle-timeout = \"200ms\"\n[https]\nmode = \"tunnel\"").await;
    let _silent = gate
        .connect(&origin.authority())
        .user_agent("TestBot/1.0")
        .await
        .opened();

    let (_, completions) = gate.audited(1).await;

    assert_eq!(completions[0]["error"], "idle", "{completions:#?}");
    assert_eq!(logged_total(&gate, "tunnel-idle-timeout").await, 1);
}
