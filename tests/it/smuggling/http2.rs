//! HTTP/2 requests that would mean something else in HTTP/1.1 get a 400 or a reset, and floods of frames end the
//! connection.

use super::{Scene, Way};
use crate::support::{Alpn, End, Frames, NAME, Outcome, Request, wait};

type Fields<'a> = Vec<(&'a [u8], &'a [u8])>;

async fn open(scene: &Scene) -> Frames {
    scene
        .gate
        .connect(&scene.tls.authority())
        .await
        .opened()
        .frames(NAME)
        .await
}

fn good<'a>(authority: &'a str, method: &'a str) -> Fields<'a> {
    vec![
        (b":method", method.as_bytes()),
        (b":scheme", b"https"),
        (b":authority", authority.as_bytes()),
        (b":path", b"/x"),
        (b"user-agent", b"TestBot/1.0"),
    ]
}

#[tokio::test]
async fn the_frames_of_these_tests_are_valid() {
    let scene = Scene::start().await;
    let authority = scene.tls.authority();
    let mut frames = open(&scene).await;
    for _ in 0..2 {
        let stream = frames.send(&good(&authority, "GET"), &[]).await;
        assert_eq!(frames.outcome(stream).await, Outcome::Status(200));
    }
    assert_eq!(scene.tls.count("/x"), 2);
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn a_head_with_another_meaning_in_http_1_is_refused() {
    let scene = Scene::start().await;
    let authority = scene.tls.authority();
    let (with_user, other) = (format!("me@{authority}"), scene.plain.authority());
    let absolute = scene.plain.url("/x");
    let spoil = |at: usize, name: &'static [u8], value: &'static [u8]| {
        let mut fields = good(&authority, "GET");
        fields[at] = (name, value);
        fields
    };
    let more = |name: &'static [u8], value: &'static [u8]| {
        let mut fields = good(&authority, "GET");
        fields.push((name, value));
        fields
    };
    let without = |at: usize| {
        let mut fields = good(&authority, "GET");
        fields.remove(at);
        fields
    };
    let named = |value| {
        let mut fields = good(&authority, "GET");
        fields[2].1 = value;
        fields
    };
    let path = |value| {
        let mut fields = good(&authority, "GET");
        fields[3].1 = value;
        fields
    };
    let payloads: Vec<(&str, Fields<'_>)> = vec![
        ("CRLF in a value", more(b"x", b"a\r\nHost: b.example")),
        ("LF in a value", more(b"x", b"a\nb")),
        ("CR in a value", more(b"x", b"a\rb")),
        ("NUL in a value", more(b"x", b"a\0b")),
        ("DEL in a value", more(b"x", b"a\x7fb")),
        ("a colon in a name", more(b"host: b.example\r\nx", b"a")),
        ("a colon at the end of a name", more(b"x:", b"a")),
        ("a blank in a name", more(b"x y", b"a")),
        ("LF in a name", more(b"x\ny", b"a")),
        ("NUL in a name", more(b"x\0", b"a")),
        ("an empty name", more(b"", b"a")),
        ("a name in capital letters", more(b"X", b"a")),
        ("transfer-encoding", more(b"transfer-encoding", b"chunked")),
        ("connection", more(b"connection", b"close")),
        ("keep-alive", more(b"keep-alive", b"timeout=1")),
        ("proxy-connection", more(b"proxy-connection", b"close")),
        ("upgrade", more(b"upgrade", b"h2c")),
        ("te of more than trailers", more(b"te", b"chunked")),
        ("a length without content", more(b"content-length", b"5")),
        ("a length that is none", more(b"content-length", b"+5")),
        ("host of another", more(b"host", b"b.example")),
        ("an unknown pseudo field", more(b":x", b"a")),
        ("a pseudo field after another", more(b":path", b"/y")),
        ("a status", spoil(4, b":status", b"200")),
        ("no method", without(0)),
        ("no scheme", without(1)),
        ("no authority", without(2)),
        ("no path", without(3)),
        ("an empty method", spoil(0, b":method", b"")),
        ("a method in small letters", spoil(0, b":method", b"get")),
        ("a method with a blank", spoil(0, b":method", b"GET /y HTTP/1.1")),
        ("a method with CRLF", spoil(0, b":method", b"GET\r\nX:")),
        ("another scheme", spoil(1, b":scheme", b"ftp")),
        ("a scheme with more", spoil(1, b":scheme", b"https://b.example/?")),
        ("CONNECT", spoil(0, b":method", b"CONNECT")),
        ("an authority with a user", named(with_user.as_bytes())),
        ("another authority", named(other.as_bytes())),
        ("an authority with a path", named(b"shop.example/y")),
        ("an authority with CRLF", named(b"shop.example\r\nX: a")),
        ("an authority that is empty", named(b"")),
        ("a path with a blank", path(b"/x HTTP/1.1\r\nX: a")),
        ("a path with one blank", path(b"/x y")),
        ("a path with CR", path(b"/x\ry")),
        ("a path with LF", path(b"/x\ny")),
        ("a path with NUL", path(b"/x\0")),
        ("a path with a tab", path(b"/x\ty")),
        ("a path that is a URL", path(absolute.as_bytes())),
        ("a path without a slash", path(b"x")),
        ("an empty path", path(b"")),
        ("a star", path(b"*")),
    ];
    for (name, fields) in payloads {
        let mut frames = open(&scene).await;
        let stream = frames.send(&fields, &[]).await;
        let outcome = frames.outcome(stream).await;
        assert!(
            matches!(outcome, Outcome::Status(400) | Outcome::Reset(_) | Outcome::Closed),
            "{name}: {outcome:?}"
        );
    }
    assert_eq!(scene.tls.requests().len(), 2, "{:#?}", scene.tls.requests());
    scene.still_serves(Way::Tls).await;
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn an_extended_connect_is_not_served() {
    let scene = Scene::start().await;
    let authority = scene.tls.authority();
    let mut fields = good(&authority, "CONNECT");
    fields.insert(1, (b":protocol", b"websocket"));
    let mut frames = open(&scene).await;
    let stream = frames
        .send(&fields, &[b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"])
        .await;
    assert_ne!(frames.outcome(stream).await, Outcome::Status(200));

    // A plain CONNECT has no path and no scheme.
    let plain: Fields<'_> = vec![(b":method", b"CONNECT"), (b":authority", authority.as_bytes())];
    let mut frames = open(&scene).await;
    let stream = frames
        .send(&plain, &[b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"])
        .await;
    assert_ne!(frames.outcome(stream).await, Outcome::Status(200));

    assert_eq!(scene.tls.count("/smuggled"), 0);
    scene.still_serves(Way::Tls).await;
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn a_wrong_content_length_never_completes_a_request() {
    let scene = Scene::start().await;
    let authority = scene.tls.authority();
    for (name, length, data) in [
        ("more than was said", "4", vec![&b"body and more"[..]]),
        (
            "more, in pieces",
            "4",
            vec![&b"body"[..], b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"],
        ),
        ("less than was said", "40", vec![&b"body"[..]]),
        ("something for nothing", "0", vec![&b"body"[..]]),
    ] {
        let mut fields = good(&authority, "POST");
        fields.push((b"content-length", length.as_bytes()));
        let mut frames = open(&scene).await;
        let stream = frames.send(&fields, &data).await;
        let outcome = frames.outcome(stream).await;
        assert!(!matches!(outcome, Outcome::Status(200)), "{name}: {outcome:?}");
    }
    scene.still_serves(Way::Tls).await;
    assert_eq!(scene.tls.count("/smuggled"), 0);
    // With `Content-Length: 0`, the request was complete before its content came.
    let has_content = |request: &Request| request.end != End::Cut && request.field("Content-Length") != Some("0");
    let found = scene.tls.requests_for("/x").into_iter().find(has_content);
    assert!(found.is_none(), "{found:#?}");
}

#[tokio::test]
async fn content_without_a_length_gets_its_own_framing() {
    let scene = Scene::start().await;
    let authority = scene.tls.authority();
    let smuggled = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut frames = open(&scene).await;
    let stream = frames.send(&good(&authority, "POST"), &[smuggled]).await;
    assert_eq!(frames.outcome(stream).await, Outcome::Status(200));

    let mut fields = good(&authority, "GET");
    fields.push((b"cookie", b"a=b"));
    fields.push((b"cookie", b"c=d"));
    fields.push((b"http2-settings", b"AAMAAABk"));
    let stream = frames.send(&fields, &[]).await;
    assert_eq!(frames.outcome(stream).await, Outcome::Status(200));

    let seen = scene.tls.requests_for("/x");
    assert_eq!((seen.len(), scene.tls.count("/smuggled")), (2, 0));
    assert_eq!((seen[0].body.as_slice(), seen[0].end), (&smuggled[..], End::Chunked));
    assert_eq!(seen[1].headers.all("Cookie").collect::<Vec<_>>(), ["a=b; c=d"]);
    assert!(!seen[1].headers.has("HTTP2-Settings"));
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn a_bad_stream_does_not_affect_the_others() {
    let scene = Scene::start().await;
    let authority = scene.tls.authority();
    let mut frames = open(&scene).await;
    for bad in [b"b.example".as_slice(), b"me@shop.example"] {
        let mut fields = good(&authority, "GET");
        fields[2].1 = bad;
        let stream = frames.send(&fields, &[]).await;
        assert_eq!(frames.outcome(stream).await, Outcome::Status(400), "{bad:?}");
    }
    let stream = frames.send(&good(&authority, "GET"), &[]).await;
    assert_eq!(frames.outcome(stream).await, Outcome::Status(200));
}

#[tokio::test]
async fn a_stream_for_another_host_gets_an_error_with_the_cause() {
    let scene = Scene::start().await;
    let tunnel = scene.gate.connect(&scene.tls.authority()).await.opened();
    let mut inside = tunnel.tls(NAME, Alpn::Http2).await;

    let response = inside.get("/x").set("Host", &scene.plain.authority()).await;

    assert_eq!(response.status, 400, "{response:#?}");
    let details = response.proxy_status().param("details").unwrap_or_default();
    assert!(
        details.contains("a different host, port or scheme from the CONNECT"),
        "{details}"
    );
    scene.still_serves(Way::Tls).await;
}

#[tokio::test]
async fn a_flood_of_field_blocks_or_resets_ends_the_connection() {
    let scene = Scene::start().await;
    let mut frames = open(&scene).await;
    // Send an endless head, one frame after the other.
    frames.frame(1, 0, 1, &[]).await;
    let piece = [0x10, 1, b'x', 1, b'y'].repeat(3_000);
    for _ in 0..200 {
        frames.frame(9, 0, 1, &piece).await;
    }
    assert_eq!(frames.outcome(1).await, Outcome::Closed);
    scene.still_serves(Way::Tls).await;

    let authority = scene.tls.authority();
    for (resets, end) in [(20, Outcome::Status(200)), (2_000, Outcome::Closed)] {
        let mut frames = open(&scene).await;
        for _ in 0..resets {
            let stream = frames.send(&good(&authority, "GET"), &[]).await;
            frames.frame(3, 0, stream, &8_u32.to_be_bytes()).await;
        }
        let stream = frames.send(&good(&authority, "GET"), &[]).await;
        assert_eq!(frames.outcome(stream).await, end, "{resets} resets");
        if end == Outcome::Closed {
            wait::within("the end of the flood", frames.drain()).await;
        }
    }
    scene.still_serves(Way::Tls).await;
}
