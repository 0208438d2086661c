//! Protocol upgrades, inside a CONNECT and with `ws` and `wss` URLs, are decided and then passed through.

use crate::support::{Alpn, Ask, Connection, Gate, NAME, Origin, ROBOTS, Reply, Step, failed, refused};

const UPGRADED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

async fn echo(tls: bool) -> Origin {
    let origin = Origin::start()
        .robots(ROBOTS)
        .otherwise(|_| Reply::script([Step::send(UPGRADED), Step::Echo]));
    if tls {
        origin.tls().spawn().await
    } else {
        origin.spawn().await
    }
}

async fn inside_tls(gate: &Gate, origin: &Origin) -> Connection {
    let tunnel = gate.connect(&origin.authority()).await.opened();
    tunnel.tls(NAME, Alpn::Http1).await
}

fn upgrade<'a>(inside: &'a mut Connection, path: &str) -> Ask<'a> {
    inside
        .get(path)
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[tokio::test]
async fn an_upgrade_is_decided_and_then_forwarded() {
    for tls in [true, false] {
        let origin = echo(tls).await;
        let gate = Gate::start().await;
        let tunnel = gate.connect(&origin.authority()).await.opened();
        let mut inside = if tls {
            tunnel.tls(NAME, Alpn::Http1).await
        } else {
            tunnel.plain()
        };

        let response = upgrade(&mut inside, "/chat").await;
        assert_eq!(response.status, 101, "{response:#?}");
        assert_eq!(response.field("Upgrade"), Some("websocket"));
        for message in ["first", "second"] {
            inside.send(message).await;
            assert_eq!(inside.read_exactly(message.len()).await, message.as_bytes());
        }
        assert_eq!(origin.only_request_for("/chat").field("Upgrade"), Some("websocket"));
    }
}

#[tokio::test]
async fn a_disallowed_upgrade_is_refused() {
    let origin = echo(true).await;
    let gate = Gate::start().await;
    let mut inside = inside_tls(&gate, &origin).await;

    refused(&upgrade(&mut inside, "/private/chat").await, "rule");

    assert_eq!(origin.count("/private/chat"), 0);
}

/// aiohttp sends a request with a `ws` URL to the proxy that the environment variable `ws_proxy` names.
#[tokio::test]
async fn a_ws_url_is_the_http_url_of_the_same_origin() {
    for tls in [false, true] {
        let origin = echo(tls).await;
        let gate = Gate::start().await;
        let as_ws = |path: &str| {
            origin
                .url(path)
                .replacen("http", if tls { "WS" } else { "ws" }, 1)
                .replace("WSs", "wss")
        };

        let mut connection = gate.dial().await;
        assert_eq!(upgrade(&mut connection, &as_ws("/chat?a=1")).await.status, 101);
        connection.send("hello").await;
        assert_eq!(connection.read_exactly(5).await, b"hello");
        let decision = gate.decision_for(&origin.url("/chat?a=1")).await;
        assert_eq!(
            (&decision["verdict"], &decision["origin"]),
            (&"allow".into(), &origin.url("").into())
        );
        assert_eq!(origin.only_request_for("/chat").target, "/chat?a=1");

        let mut connection = gate.dial().await;
        refused(&upgrade(&mut connection, &as_ws("/private")).await, "rule");

        let response = gate.get(&as_ws("/x")).await;
        failed(&response, 400, &["http_request_error"]);
        assert!(
            response.text().contains("ws and wss URLs for a WebSocket"),
            "{response:#?}"
        );
        assert_eq!((origin.count("/private"), origin.count("/x")), (0, 0));
    }
}

#[tokio::test]
async fn a_silent_websocket_is_closed_as_idle() {
    let origin = echo(true).await;
    let gate = Gate::with("[proxy]\ntunnel-idle-timeout = \"300ms\"").await;
    let mut inside = inside_tls(&gate, &origin).await;

    assert_eq!(upgrade(&mut inside, "/chat").await.status, 101);

    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "idle", "{completions:#?}");
    assert_eq!(completions[0]["status"], 101, "{completions:#?}");
}
