//! Protocol upgrades.

use super::{Scene, WAYS, is_refused, responses};
use crate::support::{Ask, Connection, Gate, Origin, Reply, Step};

const HANDSHAKE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

#[tokio::test]
async fn only_an_upgrade_to_websocket_is_accepted() {
    let scene = Scene::start().await;
    let plain = "Connection: Upgrade\r\n";
    let good = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for way in WAYS {
        for (name, fields, cause) in [
            ("h2c", format!("{plain}Upgrade: h2c\r\n"), "HTTP/2 without TLS"),
            (
                "h2c with settings",
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n".to_owned(),
                "HTTP/2 without TLS",
            ),
            (
                "settings alone",
                "HTTP2-Settings: AAMAAABk\r\n".to_owned(),
                "HTTP/2 without TLS",
            ),
            (
                "h2c that Connection does not name",
                "Upgrade: H2C\r\n".to_owned(),
                "HTTP/2 without TLS",
            ),
            (
                "h2c in a list",
                format!("{plain}Upgrade: websocket, h2c\r\n{good}"),
                "HTTP/2 without TLS",
            ),
            (
                "HTTP/2.0",
                format!("{plain}Upgrade: HTTP/2.0\r\n"),
                "HTTP/2 without TLS",
            ),
            ("TLS", format!("{plain}Upgrade: TLS/1.0\r\n"), "upgrade to TLS"),
            (
                "two fields",
                format!("{plain}Upgrade: websocket\r\nUpgrade: h2c\r\n{good}"),
                "several Upgrade",
            ),
            (
                "a bad version",
                format!("{plain}Upgrade: websocket\r\n{}", good.replace("13", "1337")),
                "the value 13",
            ),
            (
                "no key",
                format!("{plain}Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"),
                "Sec-WebSocket-Key",
            ),
            (
                "content",
                format!("{plain}Upgrade: websocket\r\n{good}Content-Length: 5\r\n"),
                "must not have content",
            ),
            (
                "no Connection",
                format!("Upgrade: websocket\r\n{good}"),
                "Connection field does not list it",
            ),
        ] {
            let head = format!("GET {{x}} HTTP/1.1\r\nHost: {{host}}\r\nUser-Agent: TestBot/1.0\r\n{fields}\r\nhello");
            let received = responses(scene.send(way, &scene.payload(way, &head)).await).await;
            is_refused(&received, 400, cause, &format!("{name} ({way:?})"));
        }
        assert_eq!(scene.origin(way).count("/x"), 0);
        scene.still_serves(way).await;
    }
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn an_unknown_upgrade_is_forwarded_as_an_ordinary_request() {
    let scene = Scene::start().await;
    for way in WAYS {
        for fields in [
            "Connection: close, Upgrade\r\n",
            "Connection: close, Upgrade\r\nUpgrade: foo/2\r\n",
            "Connection: close, X-Mine\r\nX-Mine: 1\r\n",
        ] {
            let head = format!("GET {{x}} HTTP/1.1\r\nHost: {{host}}\r\nUser-Agent: TestBot/1.0\r\n{fields}\r\n");
            let received = responses(scene.send(way, &scene.payload(way, &head)).await).await;
            assert_eq!(received.len(), 1, "{received:#?}");
            assert_eq!(received[0].status, 200, "{fields}: {received:#?}");
        }
        for forwarded in scene.origin(way).requests_for("/x") {
            for name in ["Connection", "Upgrade", "X-Mine"] {
                assert!(!forwarded.headers.has(name), "{forwarded:#?}");
            }
        }
    }
    scene.every_forwarded_request_is_logged().await;
}

/// Requests a WebSocket, and sends a request in place of WebSocket data.
async fn handshake(gate: &Gate, origin: &Origin) -> (crate::support::Response, Connection) {
    let mut connection = gate.dial().await;
    let ask: Ask<'_> = connection.get(&origin.url("/x"));
    let ask = HANDSHAKE.iter().fold(ask, |ask, (name, value)| ask.header(name, value));
    let response = ask.await;
    let smuggled = format!(
        "GET /smuggled HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        origin.authority()
    );
    connection.try_send(smuggled.as_bytes()).await;
    connection.finish().await;
    (response, connection)
}

#[tokio::test]
async fn a_response_that_accepts_no_websocket_opens_no_tunnel() {
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    for (name, answer, status) in [
        ("200", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(), 200),
        (
            "426",
            "HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n".to_owned(),
            426,
        ),
        (
            "another protocol",
            format!("HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n{accept}\r\n"),
            502,
        ),
        (
            "no proof",
            "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".to_owned(),
            502,
        ),
        (
            "a proof of another handshake",
            format!(
                "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{}\r\n",
                accept.replace("s3", "S3")
            ),
            502,
        ),
        (
            "no Upgrade",
            format!("HTTP/1.1 101 S\r\nConnection: Upgrade\r\n{accept}\r\n"),
            502,
        ),
    ] {
        let origin = Origin::start()
            .reply("/x", Reply::script([Step::send(answer)]))
            .spawn()
            .await;
        let gate = Gate::start().await;

        let (response, mut connection) = handshake(&gate, &origin).await;
        connection.read_to_end().await;

        assert_eq!(response.status, status, "{name}: {response:#?}");
        if status == 502 {
            assert_eq!(
                response.proxy_status().param("error").as_deref(),
                Some("http_protocol_error"),
                "{name}"
            );
        }
        assert_eq!(origin.count("/smuggled"), 0, "{name}");
        let completion = gate.completion_of(&gate.decision_for(&origin.url("/x")).await).await;
        assert_eq!(completion["status"], status, "{name}: {completion:#}");
    }
}
