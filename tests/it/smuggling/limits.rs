//! The size of a head, and the time to send it.

use std::time::Duration;

use super::{Scene, WAYS, Way, is_refused, responses};
use crate::support::wait;

/// Pause between two bytes, much shorter than the time for the whole head.
const DRIP: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_head_over_the_limits_gets_a_431() {
    let scene = Scene::with("[proxy]\nmax-header-bytes = \"4KiB\"\nmax-header-fields = 20").await;
    for way in WAYS {
        for (what, fields, cause) in [
            (
                "a long value",
                format!("X: {}\r\n", "x".repeat(5_000)),
                "longer than 4 KiB",
            ),
            (
                "a very long one",
                format!("X: {}\r\n", "x".repeat(1_000_000)),
                "longer than 4 KiB",
            ),
            (
                "a long name",
                format!("{}: x\r\n", "x".repeat(5_000)),
                "longer than 4 KiB",
            ),
            ("many fields", "X: 1\r\n".repeat(20), "more than 20 fields"),
        ] {
            let head = format!("GET {{x}} HTTP/1.1\r\nHost: {{host}}\r\n{fields}\r\n");
            let received = responses(scene.send(way, &scene.payload(way, &head)).await).await;
            is_refused(&received, 431, cause, &format!("{what} ({way:?})"));
        }
        let fits = format!("X: {}\r\n{}", "x".repeat(3_000), "Y: 1\r\n".repeat(16));
        let head = format!(
            "GET {{x}} HTTP/1.1\r\nHost: {{host}}\r\nUser-Agent: TestBot/1.0\r\n{fits}Connection: close\r\n\r\n"
        );
        let received = responses(scene.send(way, &scene.payload(way, &head)).await).await;
        assert_eq!(received[0].status, 200, "{received:#?}");
    }
    assert_eq!((scene.plain.count("/x"), scene.tls.count("/x")), (2, 1));
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn the_limits_can_be_raised_to_those_of_pingora() {
    let scene = Scene::with("[proxy]\nmax-header-bytes = \"512KiB\"\nmax-header-fields = 256").await;
    for way in WAYS {
        for fields in [format!("X: {}\r\n", "x".repeat(500_000)), "X: 1\r\n".repeat(252)] {
            let head = format!(
                "POST {{x}} HTTP/1.1\r\nHost: {{host}}\r\nUser-Agent: TestBot/1.0\r\n{fields}\
                 Content-Length: 700000\r\n\r\n{}",
                "b".repeat(700_000)
            );
            let mut connection = scene.open(way).await;
            connection.send(scene.payload(way, &head)).await;
            let response = connection.response_to("POST").await;
            assert_eq!(response.status, 200, "{way:?}: {response:#?}");
        }
    }
    assert!(
        scene
            .plain
            .requests_for("/x")
            .iter()
            .all(|request| request.body.len() == 700_000)
    );
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn a_dripping_head_ends_at_the_header_timeout() {
    let scene = Scene::with("[proxy]\nheader-timeout = \"700ms\"").await;
    for way in [Way::Plain, Way::Tls] {
        let mut connection = scene.open(way).await;
        let head = scene.payload(
            way,
            "GET {x} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nX: ",
        );
        connection.send(head).await;
        let mut received = wait::until_async("an answer", async || {
            connection.try_send(b"x").await;
            tokio::time::timeout(DRIP, connection.read()).await.ok()
        })
        .await;
        received.extend(connection.read_to_end().await);
        is_refused(&responses(received).await, 408, "in time", &format!("{way:?}"));
        assert_eq!(scene.origin(way).count("/x"), 0);
        scene.still_serves(way).await;
    }
}
