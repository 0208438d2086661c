//! Chunked content in every spelling: the origin receives one request with one framing, or no complete request.

use super::{Scene, WAYS, Way, responses};
use crate::support::End;

const HEAD: &str = "POST {x} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
/// The next request on the connection. It must not become part of the content, and must not reach the origin at all
/// after invalid content.
const NEXT: &str =
    "GET {prefix}/smuggled HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nConnection: close\r\n\r\n";

const BROKEN: &[(&str, &str)] = &[
    ("a sign", "+4\r\nbody\r\n0\r\n\r\n"),
    ("a negative size", "-4\r\nbody\r\n0\r\n\r\n"),
    ("0x", "0x4\r\nbody\r\n0\r\n\r\n"),
    ("an underscore", "0_4\r\nbody\r\n0\r\n\r\n"),
    ("a blank before the size", " 4\r\nbody\r\n0\r\n\r\n"),
    ("a tab before the size", "\t4\r\nbody\r\n0\r\n\r\n"),
    ("two sizes", "4 4\r\nbody\r\n0\r\n\r\n"),
    ("a size of 17 digits", "00000000000000004\r\nbody\r\n0\r\n\r\n"),
    ("a size of 2^64", "10000000000000004\r\nbody\r\n0\r\n\r\n"),
    ("a size of 2^64 - 1", "ffffffffffffffff\r\nbody\r\n0\r\n\r\n"),
    ("letters", "zz\r\nbody\r\n0\r\n\r\n"),
    ("a bare LF after the size", "4\nbody\r\n0\r\n\r\n"),
    ("a bare CR after the size", "4\rbody\r\n0\r\n\r\n"),
    ("a NUL after the size", "4\0\r\nbody\r\n0\r\n\r\n"),
    ("no CRLF after the data", "4\r\nbody0\r\n\r\n"),
    ("a bare LF after the data", "4\r\nbody\n0\r\n\r\n"),
    ("other bytes after the data", "4\r\nbodyXX0\r\n\r\n"),
    ("a bare CR in an extension", "4;a\rb\r\nbody\r\n0\r\n\r\n"),
    ("a bare LF at the end", "4\r\nbody\r\n0\r\n\n"),
    ("a bare LF after the last size", "4\r\nbody\r\n0\n\r\n"),
    ("a bare LF in a trailer", "4\r\nbody\r\n0\r\nX: a\nY: b\r\n\r\n"),
    ("a bare CR in a trailer", "4\r\nbody\r\n0\r\nX: a\rb\r\n\r\n"),
];

/// Names and bytes of content that the gate accepts. The decoded content is always `body`.
const TAKEN: &[(&str, &str)] = &[
    ("plain", "4\r\nbody\r\n0\r\n\r\n"),
    ("leading zeros", "000000000000004\r\nbody\r\n000\r\n\r\n"),
    ("capital letters", "2;A\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"),
    ("an extension", "4;a=b\r\nbody\r\n0;c\r\n\r\n"),
    ("a quoted extension", "4;a=\"\\\";\"\r\nbody\r\n0\r\n\r\n"),
    ("a bare LF in an extension", "4;a\n0\r\nbody\r\n0\r\n\r\n"),
    ("a blank after the size", "4 \r\nbody\r\n0\r\n\r\n"),
    ("a blank before the extension", "4 ;a\r\nbody\r\n0\r\n\r\n"),
    ("no size at the end", "4\r\nbody\r\n\r\n\r\n"),
    (
        "a trailer that frames",
        "4\r\nbody\r\n0\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    (
        "a trailer that names a host",
        "4\r\nbody\r\n0\r\nHost: b.example\r\nCookie: a=b\r\n\r\n",
    ),
    ("a trailer of two lines", "4\r\nbody\r\n0\r\nX: a\r\n b\r\n\r\n"),
];

#[tokio::test]
async fn malformed_chunks_never_complete_a_request() {
    let scene = Scene::start().await;
    for way in WAYS {
        for (name, content) in BROKEN {
            let name = format!("{name} ({way:?})");
            let payload = scene.payload(way, &format!("{HEAD}{content}{NEXT}"));
            let mut connection = scene.open(way).await;
            connection.try_send(&payload).await;
            connection.finish().await;
            let received = responses(connection.read_to_end().await).await;
            assert!(received.len() <= 1, "{name}: {received:#?}");
            if let Some(response) = received.first() {
                assert_eq!(response.status, 400, "{name}: {response:#?}");
                let status = response.proxy_status();
                assert_eq!(status.param("error").as_deref(), Some("http_request_error"), "{name}");
                assert!(!response.stays_open, "{name}");
            }
            scene.still_serves(way).await;
        }
        let origin = scene.origin(way);
        assert_eq!(origin.count("/smuggled"), 0, "{:#?}", origin.requests());
        for request in origin.requests_for("/x") {
            assert_eq!(request.end, End::Cut, "no end was made up: {request:#?}");
            assert_eq!(framings(&request.headers), ["chunked"], "{request:#?}");
        }
    }
    let failed = scene
        .gate
        .audit()
        .into_iter()
        .filter(|record| record["event"] == "completion" && record["error"] == "http_request_error");
    assert_eq!(failed.count(), WAYS.len() * BROKEN.len());
}

#[tokio::test]
async fn unusual_chunks_are_forwarded_as_plain_ones() {
    let scene = Scene::start().await;
    let huge = format!("4\r\nbody\r\n0\r\nX: {}\r\n\r\n", "x".repeat(60_000));
    let taken = TAKEN.iter().copied().chain([("a huge trailer", huge.as_str())]);
    for (name, content) in taken {
        for way in WAYS {
            let name = format!("{name} ({way:?})");
            let before = scene.origin(way).requests().len();
            let mut connection = scene.open(way).await;
            // Send the second part after the first response, so that it is clear to which part a response belongs.
            for part in [&format!("{HEAD}{content}"), NEXT] {
                connection.send(scene.payload(way, part)).await;
                let response = connection.response_to("POST").await;
                assert_eq!(response.status, 200, "{name}: {response:#?}");
            }
            let seen = scene.origin(way).requests().split_off(before);
            let [content, next] = &seen[..] else {
                panic!("{name}: {seen:#?}")
            };
            assert_eq!(
                (content.path(), content.body.as_slice()),
                ("/x", &b"body"[..]),
                "{name}"
            );
            assert_eq!(content.end, End::Chunked, "{name}");
            assert_eq!(framings(&content.headers), ["chunked"], "{name}");
            assert_eq!((next.path(), next.end), ("/smuggled", End::Nothing), "{name}");
            assert!(
                !content.headers.has("Trailer") && content.headers.all("Host").count() == 1,
                "{name}"
            );
        }
    }
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn endless_chunks_are_cut_off() {
    let scene = Scene::start().await;
    for (name, start, again) in [
        ("an extension", "4;a=", "x"),
        ("a size", "0", "0"),
        ("trailers", "4\r\nbody\r\n0\r\n", "X: a\r\n"),
        ("a trailer", "4\r\nbody\r\n0\r\nX: ", "x"),
    ] {
        let way = Way::Plain;
        let mut connection = scene.open(way).await;
        connection
            .try_send(&scene.payload(way, &format!("{HEAD}{start}")))
            .await;
        let more = again.repeat(10_000);
        for _ in 0..1_000 {
            if !connection.try_send(more.as_bytes()).await {
                break;
            }
        }
        // The client got an error, or the error was lost when the connection closed. In either case the connection
        // ends.
        connection.read_to_end().await;
        assert!(
            scene
                .plain
                .requests_for("/x")
                .iter()
                .all(|request| request.end == End::Cut),
            "{name}"
        );
        scene.still_serves(way).await;
    }
}

fn framings(headers: &crate::support::Fields) -> Vec<&str> {
    headers
        .all("Transfer-Encoding")
        .chain(headers.all("Content-Length"))
        .collect()
}
